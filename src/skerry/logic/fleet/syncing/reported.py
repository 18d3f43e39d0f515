"""What an edge says of itself that others pass on: the reading side of ``conditions``.

The status of a SyncerConfig is written by an edge, which may be anybody's. Whatever is taken from
it is one of a few words, a number, or a line of bounded length.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from skerry.api.objects import Raw
from skerry.kit.text import one_line
from skerry.logic.fleet.syncing.conditions import MAX_HELD_CLUSTERS
from skerry.logic.machinery.conditions import condition_of

# Reasons of the condition Held, by the syncer's condition they stand for: the graver first.
_HOLDS: Final = (("HubIdentityChanged", "StoreIdentityChanged"), ("DeletionsHeld", "DeletionsHeld"))
_REFUSED: Final = "ObjectsRefused"
_REFUSALS: Final = ("NotOurs", "Forbidden", "Invalid")
_COUNTS: Final = ("wanted", "applied", "refused", "unhealthy")
_MAX_MESSAGE: Final = 1024
_MAX_VERSION: Final = 64
_MAX_CLUSTER: Final = 64
_MAX_COUNT: Final = 2**31 - 1


class Reason(NamedTuple):
    """One word for programs, a sentence for people."""

    reason: str
    message: str


class Reported(NamedTuple):
    """How an edge stands: what it holds back, what it refuses, its numbers and its version."""

    hold: Reason | None
    refusal: Reason | None
    objects: dict[str, int]
    version: str


def lean_status(config: Raw) -> dict[str, Any]:
    """Return the part of a SyncerConfig's status that is read here, to be cached in its stead."""
    status = config.get("status") or {}
    held = status.get("heldDeletions") or {}
    kinds = (*(kind for kind, _ in _HOLDS), _REFUSED)
    return {
        "conditions": [c for c in status.get("conditions") or () if c.get("type") in kinds],
        "objects": status.get("objects") or {},
        "heldDeletions": {"count": held["count"]} if "count" in held else {},
        "syncerVersion": status.get("syncerVersion") or "",
    }


def reported(config: Raw) -> Reported | None:
    """Return what a SyncerConfig reports; None before its syncer has said anything."""
    status = config.get("status") or {}
    if not status.get("conditions"):
        return None
    return Reported(
        hold_of(config), _refusal(status), _objects(status), _line(status, "syncerVersion")
    )


def hold_of(config: Raw) -> Reason | None:
    """Return why an edge holds back what it was asked to do; None when it does not."""
    conditions = (config.get("status") or {}).get("conditions") or ()
    for kind, reason in _HOLDS:
        found = condition_of(conditions, kind)
        if found is not None and found.get("status") == "True":
            return Reason(reason, _message(found))
    return None


def held_clusters(config: Raw) -> tuple[str, ...]:
    """Return the clusters whose deletions are held, as far as the edge knows; empty: anybody's."""
    status = config.get("status") or {}
    found = hold_of(config)
    if found is None or found.reason != _HOLDS[1][1]:
        return ()
    clusters = (status.get("heldDeletions") or {}).get("clusters") or ()
    return tuple(one_line(str(each))[:_MAX_CLUSTER] for each in clusters[:MAX_HELD_CLUSTERS])


def _refusal(status: Raw) -> Reason | None:
    found = condition_of(status["conditions"], _REFUSED)
    if found is None or found.get("status") != "True":
        return None
    reason = found.get("reason")
    return Reason(reason if reason in _REFUSALS else "Invalid", _message(found))


def _objects(status: Raw) -> dict[str, int]:
    objects, held = status.get("objects") or {}, status.get("heldDeletions") or {}
    counts = {name: _count(objects.get(name)) for name in _COUNTS if name in objects}
    return {**counts, "held": _count(held.get("count"))} if counts or held else {}


def _count(value: object) -> int:
    return min(max(0, value), _MAX_COUNT) if isinstance(value, int) else 0


def _message(condition: Raw) -> str:
    return one_line(str(condition.get("message") or ""))[:_MAX_MESSAGE]


def _line(status: Raw, name: str) -> str:
    return one_line(str(status.get(name) or ""))[:_MAX_VERSION]
