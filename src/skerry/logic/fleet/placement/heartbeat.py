"""What a syncer's sign of life means.

A syncer renews the Lease ``syncer-heartbeat`` in namespace ``default`` of its mailbox workspace.
The mailbox controller copies the time to its SyncTarget; a SyncTarget not heard of for as long as
the Lease lasts is not ready. How long that is the Lease says itself, in ``leaseDurationSeconds``:
an edge that beats every five minutes is not dead after one, and one that beats every second is
missed soon. Where it is not the usual minute it is copied too, into an annotation, since a
SyncTarget's status has no place for it.

When it was renewed is not for the edge to say: its clock may be wrong by a day, and then it would
be dead for ever or, worse, alive for a day after its end. This hub writes the Lease's times itself;
another noted the time of the write in ``managedFields``, and only where it did not, the Lease's own
time counts. Clients can send either, so a time that lies ahead counts as none: nobody is alive
until 2099. However long a Lease says that it lasts, it counts for an hour at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from skerry.api.edge import HEARTBEAT_LEASE_SECONDS, MAX_LEASE_SECONDS
from skerry.api.kinds import GroupVersionResource
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.kit.timestamps import parse_rfc3339

LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")

# As kcp: two heartbeats of half a minute may be late, a third is a failure.
USUAL_LEASE_SECONDS = 60
# Times are reported in whole seconds and pass through two watches; a shorter Lease would flap.
MIN_LEASE_SECONDS = 5
# Whoever judges heartbeats runs with the hub that dated them, on another machine at the most.
MAX_SKEW = timedelta(minutes=1)
# Whoever relays them may run anywhere, with a clock that is a day behind the hub's. It must not
# withhold what it cannot judge, only what nobody's clock would explain.
RELAY_SKEW = timedelta(hours=25)
# More managers than this do not share one Lease.
_MAX_RENEWALS = 16
# Relaying more often than this tells nobody anything and costs a write each time; but a short
# Lease must be relayed several times before it runs out.
_MAX_SPACING = timedelta(seconds=10)
_RELAYS_PER_LEASE = 6

# Where a lean Lease has what ``renewals_of`` returns.
RENEWALS = "renewals"
_KEPT_METADATA = ("name", "namespace", "uid", "resourceVersion")

NEVER_SEEN = "No heartbeat yet seen"


class Health(NamedTuple):
    """What is to be said of a SyncTarget's heartbeat, and when that may change by itself."""

    healthy: bool
    message: str
    expires: datetime | None


def heartbeat_health(
    last: datetime | None,
    now: datetime,
    seconds: int = USUAL_LEASE_SECONDS,
    listening_since: datetime | None = None,
) -> Health:
    """Judge the time of the last heartbeat, None when there has been none.

    *seconds* is how long the Lease lasts. A time that lies ahead is no heartbeat's. Before
    *listening_since* nobody could be heard of, and that silence is not counted.
    """
    if last is None or last > now + MAX_SKEW:
        return Health(False, NEVER_SEEN, None)
    lasts = min(max(seconds, MIN_LEASE_SECONDS), MAX_LEASE_SECONDS)
    expires = max(last, listening_since or last) + timedelta(seconds=lasts)
    if now >= expires:
        return Health(False, f"No heartbeat since {_shown(last)}", None)
    return Health(True, "", expires)


def lean_lease(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a heartbeat Lease that controllers read, to be cached in its stead."""
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    kept = {name: metadata[name] for name in _KEPT_METADATA if name in metadata}
    kept["annotations"] = {k: v for k, v in annotations.items() if k == CLUSTER_ANNOTATION}
    spec = {"leaseDurationSeconds": lease_seconds_of(obj)}
    return {"metadata": kept, "spec": spec, RENEWALS: renewals_of(obj)}


def renewals_of(lease: dict[str, Any]) -> tuple[str, ...]:
    """Return when a heartbeat Lease may have been renewed; its own word comes last."""
    entries = (lease.get("metadata") or {}).get("managedFields") or ()
    noted = [str(entry.get("time") or "") for entry in entries if _wrote_renewal(entry)]
    own = str((lease.get("spec") or {}).get("renewTime") or "")
    return (*noted[:_MAX_RENEWALS], own)


def last_renewal(times: Sequence[str], now: datetime) -> datetime | None:
    """Return the last time in *times* that a relay's clock, at *now*, can explain; None for none.

    The last of *times* is the Lease's own and counts where no other does.
    """
    noted = [
        moment for moment in (_credible(text, now) for text in times[:-1]) if moment is not None
    ]
    return max(noted) if noted else _credible(times[-1], now) if times else None


def _credible(text: str, now: datetime) -> datetime | None:
    try:
        moment = parse_rfc3339(text)
    except ValueError:
        return None  # an edge may write anything; it only harms itself
    return moment if moment <= now + RELAY_SKEW else None


def _wrote_renewal(entry: dict[str, Any]) -> bool:
    return "f:renewTime" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})


def lease_seconds_of(lease: dict[str, Any]) -> int:
    """Return how long a heartbeat Lease lasts; the usual time when it does not say."""
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    if not isinstance(seconds, int) or seconds <= 0:
        return USUAL_LEASE_SECONDS
    return min(seconds, MAX_LEASE_SECONDS)


def lease_seconds_reported(sync_target: dict[str, Any]) -> int:
    """Return how long a SyncTarget's annotation says its Lease lasts."""
    annotations = sync_target["metadata"].get("annotations") or {}
    text = str(annotations.get(HEARTBEAT_LEASE_SECONDS) or "")
    # No more digits than a Lease can have: a person may have written anything.
    seconds = int(text) if text.isdecimal() and len(text) <= 10 else USUAL_LEASE_SECONDS
    return min(seconds, MAX_LEASE_SECONDS)


def relay_spacing(seconds: int) -> timedelta:
    """Return how long after a heartbeat the next one need not be passed on."""
    return min(_MAX_SPACING, timedelta(seconds=seconds) / _RELAYS_PER_LEASE)


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
