"""Tells a workload's owner, in the workload's workspace, how it fares at all its destinations.

Reads EdgePlacements, their slices and the summaries themselves in the view of the provider's
export ``edge.kcp.io``; mailbox workspaces in the provider's workspace; APIBindings and
CustomResourceDefinitions everywhere, to know what workspaces serve; the Leases and SyncerConfigs of
mailboxes, to know which edges were heard of and what they hold back; and of each kind that some
workspace with a placement serves, the objects in all workspaces at once: sources and copies come
through the same watch, cut down on arrival to what a summary needs.

Writes StatusSummary and ClusterStatusSummary objects; of EdgePlacements ``observedGeneration``, the
counts of destinations and objects, and the conditions ``Delivered``, ``Healthy``, ``Held`` and
``Ready``, with an Event for each change of mind; and the status of a source object where a
placement asks for it.

Invariants: once quiet, there is one summary for each placed object whose kind has a status, equal
to what ``logic.fleet.summary`` computes from the copies; and no other. A summary is observed twice
a second at most, however many reports come in. None is deleted before everything that could be its
cause has been read.

``events`` feeds the tables of ``logic.fleet.summary.tables`` and enqueues what they say has
changed; ``watches`` knows which kinds there are and what has been read of them; ``observe`` and
``decide`` compare one summary with its tally, ``status`` one placement with its standing,
``sources`` one source's status with what its destinations report; ``verdicts`` judges the
destinations of placements with a Rollout. ``leases`` is the timer by which Leases lapse,
``projections`` what is kept of watched objects, ``names`` how summaries are called, ``controller``
the wiring. What is watched is watched once for all who read it: ``feed``.

The way of one report, a Deployment that has become healthy at one edge of a thousand:

    the syncer writes the copy's status   the watch shows the copy; what is kept of it is a report
    the tables settle                     one summary and one placement are touched
    their keys are enqueued               now, or when their pace allows: half a second, a second
    the summary is observed               all reports until then are in its tally, added up already
    it is written, if it differs          its own event enqueues it once more, and finds it equal

Tables are in memory and filled from watches. A process that starts has all of them to fill before
it says anything about a kind; what was written before stays until then, as it was.
"""
