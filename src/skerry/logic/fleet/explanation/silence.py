"""How long an edge has not been heard of, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from skerry.logic.fleet.placement.heartbeat import heartbeat_health, lease_seconds_reported
from skerry.logic.machinery.printing.durations import human_duration, parse_time

# As long as seconds are what people count in.
_IN_SECONDS = 120


def silence(sync_target: Mapping[str, Any], now: datetime) -> str:
    """Return since when nothing was heard of an edge; empty while its heartbeat counts.

    It is the rule by which a SyncTarget is ready, asked at the moment of the question.
    """
    status = sync_target.get("status") or {}
    last = parse_time(status.get("lastSyncerHeartbeatTime"))
    if heartbeat_health(last, now, lease_seconds_reported(dict(sync_target))).healthy:
        return ""
    if last is None:
        return "was never heard of"
    seconds = int((now - last).total_seconds())
    ago = f"{seconds} s" if seconds < _IN_SECONDS else human_duration(now - last)
    return f"last heard of {ago} ago"
