"""The annotations of audit events: of decisions (``skerry history export``), of tunnels."""

from __future__ import annotations

from typing import Final

RECORD: Final = "edge.kcp.io/record"
REASON: Final = "edge.kcp.io/reason"
DESTINATIONS: Final = "edge.kcp.io/destinations"
CAUSE: Final = "edge.kcp.io/cause"
CAUSE_AUDIT_ID: Final = "edge.kcp.io/cause-audit-id"

# On events of sessions through an edge's tunnel: which edge, by its path, what was asked for, and
# how many bytes were sent to the edge and received from it.
TUNNEL_EDGE: Final = "edge.kcp.io/tunnel-edge"
TUNNEL_NAMESPACE: Final = "edge.kcp.io/tunnel-namespace"
TUNNEL_POD: Final = "edge.kcp.io/tunnel-pod"
TUNNEL_CONTAINER: Final = "edge.kcp.io/tunnel-container"
TUNNEL_ACTION: Final = "edge.kcp.io/tunnel-action"
TUNNEL_COMMAND: Final = "edge.kcp.io/tunnel-command"
TUNNEL_SENT: Final = "edge.kcp.io/tunnel-sent-bytes"
TUNNEL_RECEIVED: Final = "edge.kcp.io/tunnel-received-bytes"
