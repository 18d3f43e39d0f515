"""The annotations of audit events that decisions are exported as (``skerry history export``)."""

from __future__ import annotations

from typing import Final

RECORD: Final = "edge.kcp.io/record"
REASON: Final = "edge.kcp.io/reason"
DESTINATIONS: Final = "edge.kcp.io/destinations"
CAUSE: Final = "edge.kcp.io/cause"
CAUSE_AUDIT_ID: Final = "edge.kcp.io/cause-audit-id"
