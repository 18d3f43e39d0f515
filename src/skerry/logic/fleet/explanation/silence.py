"""How long an edge has not been heard of, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from skerry.api.edge import LEASE_LAPSED, NEVER_HEARD_OF
from skerry.logic.fleet.placement.heartbeat import heartbeat_health, lease_seconds_reported
from skerry.logic.machinery.printing.durations import human_duration, parse_time

# As long as seconds are what people count in.
_IN_SECONDS = 120


class Silence(NamedTuple):
    """That an edge is not heard of: the reason that summaries give too, and for how long."""

    reason: str
    words: str


def silence(sync_target: Mapping[str, Any], now: datetime) -> Silence | None:
    """Return since when nothing was heard of an edge; None while its heartbeat counts.

    It is the rule by which a SyncTarget is ready, asked at the moment of the question.
    """
    status = sync_target.get("status") or {}
    last = parse_time(status.get("lastSyncerHeartbeatTime"))
    if heartbeat_health(last, now, lease_seconds_reported(dict(sync_target))).healthy:
        return None
    if last is None:
        return Silence(NEVER_HEARD_OF, "was never heard of")
    seconds = int((now - last).total_seconds())
    ago = f"{seconds} s" if seconds < _IN_SECONDS else human_duration(now - last)
    return Silence(LEASE_LAPSED, f"last heard of {ago} ago")
