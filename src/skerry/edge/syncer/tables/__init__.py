"""The syncer's inputs as tables, each kept up by its watch or its file.

* ``wanted``: ``mailbox`` (the objects), ``syncer_config`` (which of them count), ``served_types``
  (which types there can be), ``store_identity`` (whose answers these are);
* ``present``: ``edge_cache`` with our own ``edge_writes`` laid over; ``missing_rights`` for what
  the edge does not show;
* ``recorded``: ``sync_records`` on a ``journal``.

They answer for one key at a time, say whether they are complete, and send a signal per change.
Nothing here decides anything.
"""
