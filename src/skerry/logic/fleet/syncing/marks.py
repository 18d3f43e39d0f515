"""Labels and annotations by which the hub, its users and the syncer speak to each other.

Those a workload owner sets on an object travel with its copy into the mailbox.
"""

from __future__ import annotations

DOMAIN = "edge.kcp.io/"

# Set by the translator on what it puts into a mailbox.
PROJECTED = "edge.kcp.io/projected"

# Asked for by the owner of an object, with the value "true".
CREATE_ONLY = "edge.kcp.io/create-only"
ORPHAN_ON_DELETE = "edge.kcp.io/orphan-on-delete"
ADOPT = "edge.kcp.io/adopt"
RECREATE = "edge.kcp.io/recreate"

# The original's way to say create-only, with the value "false".
DOWNSYNC_OVERWRITE = "edge.kcp.io/downsync-overwrite"

# Written by the syncer on mailbox objects: what it applied, or why it could not.
APPLIED = "edge.kcp.io/applied"
SYNC_ERROR = "edge.kcp.io/sync-error"
# On what it brought up from the edge; the value the original uses is "true".
UPSYNCED = "edge.kcp.io/upsynced"

# On the SyncerConfig, by a person who was asked.
APPROVE_DELETIONS = "edge.kcp.io/approve-deletions"
ACCEPT_IDENTITY = "edge.kcp.io/accept-store-identity"

# In whose name fields are owned at the edge, and in the mailbox.
EDGE_MANAGER = "skerry-syncer"
MAILBOX_MANAGER = "skerry-syncer-upsync"
