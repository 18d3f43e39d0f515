"""The syncer: makes one edge cluster run what its mailbox says, and tells how it went.

Reads the mailbox (SyncerConfigs and the objects they name) and the edge, both by watches. Writes
objects at the edge by server-side apply, statuses, marks and upsynced copies in the mailbox, and
a journal on its own disk. It dials out to both; nothing dials in.

Invariants: nothing is deleted at the edge unless the journal says that we placed it and the
evidence of ``fleet.syncing.evidence`` holds. What cannot be known is treated as unchanged. One
object's failure delays no other. Whatever moment the process dies at, the next one continues.
"""
