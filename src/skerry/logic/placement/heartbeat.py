"""What a syncer's sign of life means.

A syncer renews the Lease ``syncer-heartbeat`` in namespace ``default`` of its mailbox workspace.
The mailbox controller copies the time to its SyncTarget; a SyncTarget not heard of for as long as
the Lease lasts is not ready. How long that is the Lease says itself, in ``leaseDurationSeconds``:
an edge that beats every five minutes is not dead after one, and one that beats every second is
missed soon. Where it is not the usual minute it is copied too, into an annotation, since a
SyncTarget's status has no place for it.

When it was renewed is not for the edge to say: its clock may be wrong by a day, and then it would
be dead for ever or, worse, alive for a day after its end. The hub itself noted the time of the
write in ``managedFields``; only where it did not, the Lease's own time counts.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from skerry.api.kinds import GroupVersionResource

LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
HEARTBEAT_LEASE = "syncer-heartbeat"
HEARTBEAT_NAMESPACE = "default"

LEASE_SECONDS_ANNOTATION = "edge.kcp.io/heartbeat-lease-seconds"

# As kcp: two heartbeats of half a minute may be late, a third is a failure.
USUAL_LEASE_SECONDS = 60
# Times are told in whole seconds and pass through two watches; a shorter Lease would flap.
SHORTEST_LEASE_SECONDS = 5
# An edge that was lost is noticed within this time, whatever it said of itself.
MAX_LEASE_SECONDS = 3600
# Relaying more often than this tells nobody anything and costs a write each time; but a short
# Lease must be relayed several times before it runs out.
_LONGEST_SPACING = timedelta(seconds=10)
_RELAYS_PER_LEASE = 6

NEVER_SEEN = "No heartbeat yet seen"


class Health(NamedTuple):
    """What is to be said of a SyncTarget's heartbeat, and when that may change by itself."""

    healthy: bool
    message: str
    expires: datetime | None


def heartbeat_health(
    last: datetime | None, now: datetime, seconds: int = USUAL_LEASE_SECONDS
) -> Health:
    """Judge the time of the last heartbeat, None when there has been none.

    *seconds* is how long the Lease lasts.
    """
    if last is None:
        return Health(False, NEVER_SEEN, None)
    expires = last + timedelta(seconds=max(seconds, SHORTEST_LEASE_SECONDS))
    if now >= expires:
        return Health(False, f"No heartbeat since {_shown(last)}", None)
    return Health(True, "", expires)


def renewal_of(lease: dict[str, Any]) -> str:
    """Return when a heartbeat Lease was renewed by the hub's clock; empty when nobody says."""
    entries = (lease.get("metadata") or {}).get("managedFields") or ()
    noted = [str(entry.get("time") or "") for entry in entries if _wrote_renewal(entry)]
    return max(noted, default="") or str((lease.get("spec") or {}).get("renewTime") or "")


def _wrote_renewal(entry: dict[str, Any]) -> bool:
    return "f:renewTime" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})


def lease_seconds_of(lease: dict[str, Any]) -> int:
    """Return how long a heartbeat Lease lasts; the usual time when it does not say."""
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    return seconds if isinstance(seconds, int) and seconds > 0 else USUAL_LEASE_SECONDS


def lease_seconds_told(sync_target: dict[str, Any]) -> int:
    """Return how long a SyncTarget's annotation says its Lease lasts."""
    annotations = sync_target["metadata"].get("annotations") or {}
    text = str(annotations.get(LEASE_SECONDS_ANNOTATION) or "")
    # No more digits than a Lease can have: a person may have written anything.
    return int(text) if text.isdecimal() and len(text) <= 10 else USUAL_LEASE_SECONDS


def relay_spacing(seconds: int) -> timedelta:
    """Return how long after a heartbeat the next one need not be passed on."""
    return min(_LONGEST_SPACING, timedelta(seconds=seconds) / _RELAYS_PER_LEASE)


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
