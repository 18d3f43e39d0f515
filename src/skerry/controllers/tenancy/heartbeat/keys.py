"""A SyncTarget is looked at when what is said of it changes, and when its heartbeat runs out."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.objects import Object
from skerry.logic.fleet.placement.heartbeat import lease_seconds_reported
from skerry.logic.fleet.placement.records import lean_sync_target
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler

NAME = "synctarget-heartbeat"


def with_conditions(obj: Object) -> Object:
    """Return what is worth keeping of a SyncTarget, all its conditions included."""
    lean = lean_sync_target(obj)
    lean["status"]["conditions"] = (obj.get("status") or {}).get("conditions") or []
    return lean


def enqueue_on_changes(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds SyncTargets whose status or Lease duration is new."""

    def handle(old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or _stage(old) != _stage(new)):
            add(key_of(new))

    return handle


def _stage(obj: Object) -> tuple[object, int]:
    return obj.get("status"), lease_seconds_reported(obj)
