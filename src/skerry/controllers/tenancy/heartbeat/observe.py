"""A SyncTarget's last heartbeat and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.fleet.placement.heartbeat import USUAL_LEASE_SECONDS, lease_seconds_reported
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """One SyncTarget. ``heartbeat`` None: never heard of. ``lasts``: seconds until it expires."""

    key: Key
    resource_version: str
    heartbeat: datetime | None
    conditions: tuple[Mapping[str, Any], ...]
    lasts: int = USUAL_LEASE_SECONDS


class Observer:
    """Looks at one SyncTarget at a time."""

    def __init__(self, sync_targets: Informer) -> None:
        self._sync_targets = sync_targets

    async def observe(self, key: Key) -> Observed | None:
        obj = self._sync_targets.index.get(key)
        if obj is None:
            return None
        status = obj["status"]
        heartbeat = status.get("lastSyncerHeartbeatTime")
        return Observed(
            key,
            obj["metadata"]["resourceVersion"],
            parse_rfc3339(heartbeat) if heartbeat else None,
            tuple(status["conditions"]),
            lease_seconds_reported(obj),
        )
