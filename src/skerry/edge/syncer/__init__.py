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

The life of one ConfigMap, and what a process that dies after each line leaves to the next one:

    the mailbox shows it     nothing; the next list shows it again
    the intent is flushed    a record without a UID: the edge is asked, whatever its watch shows
    the edge has applied it  the same record, and an object that names our field manager: ours
    the record has the UID   if that was not flushed yet, one more apply of the same content
    its status goes back     nothing of that is recorded: both sides are compared anew
    the mailbox lacks it     the record; it is proposed to the deletion budget once more
    the edge has deleted it  the record, which is forgotten when the edge no longer shows the object

Invariants:

* Nothing is deleted at the edge unless the journal says that we placed it, its absence is believed
  (``logic.fleet.syncing.evidence``) and the deletion budget has room or a person agreed.
* What cannot be known is treated as unchanged.
* What is done is recorded before it is done: whatever moment the process dies at, the next one
  continues.
* One object's failure delays no other.
"""
