"""What a syncer decides, without doing any of it.

A mailbox says what one edge cluster shall run; the syncer makes it so, tells how it went, and
brings back what was born at the edge. Each decision is a pure function of one object's rows, and
each table has a module of its name:

- ``wanted``, ``present``, ``recorded``: the mailbox's wishes, the edge's objects, the journal.
- ``evidence``: when the absence of a wish may be believed.
- ``difference``: from these, the plan for one object that goes down.
- ``status_writeback``: the plan for what the mailbox does not say yet about it.
- ``upsync``: the plan for one object that was born at the edge.

What they are made of: ``carrying`` (what of an object travels), ``delivery`` (the marks on mailbox
objects), ``outcome`` (how things stand with one object) and ``conditions`` (with all of them;
``reported`` is how others read them), ``cause`` (why what stands at the edge is not well),
``deletion_budget`` (how much may go before a person is asked). What a SyncerConfig covers is
``logic.machinery.edges.scope``, which the hub's admission asks too. ``access`` and ``manifest`` are
about the rights a syncer needs at its edge, ``certificates`` about those it has at its hub.

The rule above all others: unknown is not absent (``logic.fleet.tables.completeness``).
"""
