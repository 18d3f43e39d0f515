"""The syncer: makes one edge cluster run what its mailbox says, and tells how it went.

It is three controllers of the usual shape over three tables. ``wanted`` is the mailbox within the
scope of its SyncerConfigs, ``present`` is the edge, ``recorded`` is a journal on the syncer's own
disk (``tables``). Which event enqueues which key is in ``events``; what each controller decides is
pure and in ``logic.fleet.syncing``; every write passes an executor, so that a dry run is the
executor's own.

* ``downsync``: mailbox to edge, by server-side apply.
* ``status_writeback``: statuses and marks, edge to mailbox.
* ``upsync``: reports of objects born at the edge, edge to mailbox.

Beside them: ``outcomes`` (how things stand with every object), ``causes`` (why one is not well),
``reporting`` (conditions for people), ``deletion_budget`` (which asks a person), ``heartbeat``,
``edge_witness``, ``metrics``, ``state`` (what they all share),
``identity`` (by which credential the hub knows this edge) and ``tunnel`` (through which people at
the hub reach pods, where the edge's owner wants that). ``session`` puts it all together for as
long as both sides stay who they are; ``syncer`` elects one session per edge. It dials out to both
sides; nothing dials in.

Invariants:

* Nothing is deleted at the edge unless the journal says that we placed it, its absence is believed
  (``logic.fleet.syncing.evidence``) and the deletion budget has room or a person agreed.
* What cannot be known is treated as unchanged.
* What is done is recorded before it is done: whatever moment the process dies at, the next one
  continues.
* One object's failure delays no other.
"""
