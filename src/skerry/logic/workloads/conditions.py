"""Conditions of workload kinds: a time changes only when the status does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from skerry.api.objects import Object
from skerry.kit.clock import rfc3339


def find_condition(obj: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """Return the condition of that type from an object's status."""
    return among((obj.get("status") or {}).get("conditions") or (), kind)


def among(conditions: Iterable[Mapping[str, Any]], kind: str) -> Mapping[str, Any] | None:
    """Return the condition of that type."""
    return next((item for item in conditions if item.get("type") == kind), None)


def is_true(obj: Mapping[str, Any], kind: str) -> bool:
    """Tell whether the object says that condition is True."""
    found = find_condition(obj, kind)
    return found is not None and found.get("status") == "True"


def with_condition(
    conditions: Iterable[Mapping[str, Any]],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    *,
    stamp_update: bool = False,
) -> list[Object]:
    """Return *conditions* with one set; unchanged status and reason leave it alone.

    *stamp_update* adds ``lastUpdateTime``, which Deployments have and which moves even when only
    the reason does.
    """
    kept = [dict(item) for item in conditions]
    old = among(kept, kind)
    if old is not None and (old.get("status"), old.get("reason")) == (status, reason):
        return kept
    stamp = rfc3339(now)
    since = old.get("lastTransitionTime") if old and old.get("status") == status else stamp
    fresh: Object = {"type": kind, "status": status}
    if stamp_update:
        fresh["lastUpdateTime"] = stamp
    fresh |= {"lastTransitionTime": since, "reason": reason, "message": message}
    return [*(item for item in kept if item.get("type") != kind), fresh]


def without_condition(conditions: Iterable[Mapping[str, Any]], kind: str) -> list[Object]:
    """Return *conditions* without that one."""
    return [dict(item) for item in conditions if item.get("type") != kind]
