"""Where Placements lead.

A Placement that has chosen keeps its choice while it is good. What is bound, that is, has
namespaces, is never moved to another Location by itself: it says that its Location no longer fits.
Of several choices one with a SyncTarget that is ready comes first, then chance decides, and always
alike: by a hash of who chooses and what is chosen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from skerry.api.kcp.resources import PLACEMENTS
from skerry.api.objects import Object
from skerry.controllers.tenancy.placement.keys import NAMESPACES, PLACED
from skerry.controllers.tenancy.placement.observe import Choice, Instance, Observed, Seen
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import ready_first, set_conditions
from skerry.logic.machinery.plan import Action, Patch, Plan, Target

READY, SCHEDULED = "Ready", "Scheduled"
CHOSEN = "internal.workload.kcp.io/synctarget"

# Severity, reason and message of a condition that is False; None when it is True.
Fault = tuple[str, str, str] | None
_NO_MATCH = ("Error", "LocationNoMatch", "No valid location is found")
_INVALID = ("Error", "LocationInvalid", "Selected location is invalid for current placement")
_NOT_CHOSEN = ("Warning", "ScheduleLocationNotFound", "No selected location is scheduled")
_NOT_FOUND = ("Warning", "ScheduleLocationNotFound", "Selected location is not found")
_NO_TARGET = ("Warning", "NoValidTarget", "No SyncTarget in the selected Location")
_NOT_READY = ("Warning", "NoValidTarget", "No SyncTarget is ready or non evicting")


def decide(observed: Observed, now: datetime) -> Plan:
    """Tell of every Placement where it leads, and of every namespace whether it is placed."""
    actions: list[Action] = []
    placed: set[str] = set()
    for seen in observed.placements:
        status, annotations, fits = _outcome(seen, now)
        if fits:
            placed |= seen.namespaces
        actions += _status_update(observed.cluster, seen.placement, status, annotations)
    for name, marked in observed.namespaces:
        if marked != (name in placed):
            value = "" if name in placed else None
            actions.append(
                Patch(
                    Target(NAMESPACES, name, cluster=observed.cluster),
                    {"metadata": {"annotations": {PLACED: value}}},
                    reason="NamespacePlaced" if name in placed else "NamespaceNotPlaced",
                    retry_on_conflict=True,
                    absent_is_fine=True,
                )
            )
    return Plan(actions, requeue_after_seconds=_next_eviction(observed, now))


def _outcome(seen: Seen, now: datetime) -> tuple[Object, Object, bool]:
    """Return the status of a Placement, its annotation, and whether its choice fits."""
    old = seen.placement.get("status") or {}
    chosen = _chosen(seen, old)
    bound = old.get("phase") == "Bound" and bool(seen.namespaces)
    ready: Fault = None
    if chosen is None and bound:
        ready = _INVALID
    elif chosen is None:
        chosen = _choose(seen, now)
        ready = _NO_MATCH if chosen is None else None
    selected: Object | None = old.get("selectedLocation") if bound else None
    if chosen is not None:
        selected = {"path": chosen.cluster, "locationName": chosen.name}
    target, scheduled = _scheduled(seen, chosen, selected, now)
    status: Object = {
        "phase": _phase(seen, selected),
        "selectedLocation": selected,
        "conditions": _conditions(old.get("conditions") or (), ready, scheduled, now),
    }
    return status, {CHOSEN: target}, ready is None and selected is not None


def _phase(seen: Seen, selected: Object | None) -> str:
    if selected is None:
        return "Pending"
    return "Bound" if seen.namespaces else "Unbound"


def _chosen(seen: Seen, old: Object) -> Choice | None:
    """Return the choice made before, if it still fits."""
    selected = old.get("selectedLocation") or {}
    wanted = (selected.get("path"), selected.get("locationName"))
    return next((c for c in seen.choices if (c.cluster, c.name) == wanted), None)


def _choose(seen: Seen, now: datetime) -> Choice | None:
    uid = seen.placement["metadata"].get("uid", "")

    def preference(choice: Choice) -> tuple[bool, bytes]:
        open_now = any(_usable(each, now) for each in choice.instances)
        return not open_now, _chance(uid, choice.cluster, choice.name)

    return min(seen.choices, key=preference, default=None)


def _scheduled(
    seen: Seen, chosen: Choice | None, selected: Object | None, now: datetime
) -> tuple[str | None, Fault]:
    """Return the key of the SyncTarget chosen, and what stands against choosing one."""
    if chosen is None:
        return None, _NOT_CHOSEN if selected is None else _NOT_FOUND
    if not chosen.instances:
        return None, _NO_TARGET
    usable = [each.key for each in chosen.instances if _usable(each, now)]
    if not usable:
        return None, _NOT_READY
    metadata = seen.placement["metadata"]
    current = (metadata.get("annotations") or {}).get(CHOSEN)
    if current in usable:
        return current, None
    return min(usable, key=lambda key: _chance(metadata.get("uid", ""), key)), None


def _usable(instance: Instance, now: datetime) -> bool:
    return instance.ready and (instance.evicted is None or now < instance.evicted)


def _chance(*words: str) -> bytes:
    return hashlib.sha256("|".join(words).encode()).digest()


def _conditions(
    old: Sequence[Object], ready: Fault, scheduled: Fault, now: datetime
) -> list[dict[str, Any]]:
    wanted = [_condition(READY, ready), _condition(SCHEDULED, scheduled)]
    return ready_first(set_conditions(old, wanted, rfc3339(now)))


def _condition(kind: str, fault: Fault) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind, "status": "True"}
    if fault is not None:
        severity, reason, message = fault
        found |= {"status": "False", "severity": severity, "reason": reason, "message": message}
    return found


def _status_update(
    cluster: str, placement: Object, status: Object, annotations: Object
) -> list[Action]:
    """Return what makes a Placement say *status* and *annotations*; nothing when it does."""
    metadata = placement["metadata"]
    target = Target(PLACEMENTS, metadata["name"], cluster=cluster)
    actions: list[Action] = []
    if (metadata.get("annotations") or {}).get(CHOSEN) != annotations[CHOSEN]:
        patch = {"metadata": {"annotations": annotations}}
        actions.append(
            Patch(target, patch, "TargetChosen", retry_on_conflict=True, absent_is_fine=True)
        )
    old = placement.get("status") or {}
    if any(old.get(member) != value for member, value in status.items()):
        actions.append(
            Patch(
                target,
                {"status": status},
                reason="PlacementJudged",
                subresource="status",
                retry_on_conflict=True,
                absent_is_fine=True,
            )
        )
    return actions


def _next_eviction(observed: Observed, now: datetime) -> float | None:
    """Return in how many seconds a SyncTarget stops being one to choose, by itself."""
    coming = [
        (instance.evicted - now).total_seconds()
        for seen in observed.placements
        for choice in seen.choices
        for instance in choice.instances
        if instance.evicted is not None and instance.evicted > now
    ]
    return min(coming, default=None)
