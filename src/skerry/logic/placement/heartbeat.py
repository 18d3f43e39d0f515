"""What a syncer's sign of life means.

A syncer renews the Lease ``syncer-heartbeat`` in namespace ``default`` of its mailbox workspace.
The mailbox controller copies the time to its SyncTarget; a SyncTarget not heard of for a minute
is not ready.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from skerry.api.kinds import GroupVersionResource

LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
HEARTBEAT_LEASE = "syncer-heartbeat"
HEARTBEAT_NAMESPACE = "default"

# As kcp: two heartbeats of half a minute may be late, a third is a failure.
HEARTBEAT_EXPIRES_AFTER = timedelta(seconds=60)
# Relaying more often than this tells nobody anything and costs a write each time.
HEARTBEAT_RELAY_SPACING = timedelta(seconds=10)

NEVER_SEEN = "No heartbeat yet seen"


class Health(NamedTuple):
    """What is to be said of a SyncTarget's heartbeat, and when that may change by itself."""

    healthy: bool
    message: str
    expires: datetime | None


def heartbeat_health(last: datetime | None, now: datetime) -> Health:
    """Judge the time of the last heartbeat; None when there has been none."""
    if last is None:
        return Health(False, NEVER_SEEN, None)
    expires = last + HEARTBEAT_EXPIRES_AFTER
    if now >= expires:
        return Health(False, f"No heartbeat since {_shown(last)}", None)
    return Health(True, "", expires)


def renewal_of(lease: dict[str, Any]) -> str:
    """Return when a heartbeat Lease was renewed, as it says; empty when it does not say."""
    return str((lease.get("spec") or {}).get("renewTime") or "")


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
