"""What an edge may do at the hub: the rules of its access, as RBAC's are those of everybody else.

* ``scope``: what a SyncerConfig covers, compiled once and asked per object.
* ``rights``: what an edge with that scope may read and write in its mailbox.

The server asks these; it knows nothing of how objects come to be placed.
"""
