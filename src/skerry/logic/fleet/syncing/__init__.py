"""What a syncer decides, without doing any of it.

A mailbox says what one edge cluster shall run; the syncer makes it so, tells how it went, and
brings back what was born at the edge. All its decisions are here, as pure functions of what was
observed, one object at a time:

- ``refs``: names of objects, the same on both sides.
- ``scope``: what a SyncerConfig covers, each way.
- ``carrying``: what of an object travels, and what stays because it is of the place.
- ``projection``: an edge object as seen through the fields that are ours.
- ``records``: what was placed, as it is remembered on disk.
- ``evidence``: when absence may be believed; identity of the hub, the budget for deletions.
- ``downsync``, ``returning``, ``upsync``: the decisions for one object, each way.
- ``delivery``: the marks on mailbox objects that tell how it went.
- ``conditions``: the same for people, on the SyncerConfig.
- ``access``: what a syncer must be allowed at the edge.

The rule above all others: absence is not evidence. Something is deleted only if we placed it
(recorded with the UID it got), the place that no longer names it is the one that named it (same
store), was read completely, and at a later revision.
"""
