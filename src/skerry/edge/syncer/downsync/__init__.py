"""The controller that makes the edge run what the mailbox wants.

Reads the tables ``wanted`` (mailbox and SyncerConfigs), ``present`` (edge) and ``recorded``
(journal). Writes objects at the edge, entries of the journal, and the outcome of each object.

``observe`` reads one object's rows; ``logic.fleet.syncing.difference`` decides; ``execute`` carries
the plan out and takes note of what came of it. ``containers`` says whether a Namespace or a
definition holds anything that is to stay, which no deletion may take along.
"""
