"""Conditions of an object's status: read them, and set them.

One rule for every kind: ``lastTransitionTime`` is when the *status* last changed. A new reason or
message leaves it alone, so that people and alerts can see since when something is so. Conditions
of other types, and their order, stay as they are: several controllers write to one list.

Times are text in RFC 3339, as they travel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from skerry.api.objects import Object

Condition = Mapping[str, Any]


def condition(kind: str, status: bool, reason: str, message: str) -> Object:
    """Return a condition without its time, which ``set_conditions`` gives it."""
    text = "True" if status else "False"
    return {"type": kind, "status": text, "reason": reason, "message": message}


def unmet(kind: str, reason: str, message: str = "", severity: str = "Error") -> Object:
    """Return a condition that is False, as kcp writes it: with a severity, no empty message."""
    condition: Object = {"type": kind, "status": "False", "severity": severity, "reason": reason}
    return {**condition, "message": message} if message else condition


def condition_of(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Return the condition of that type."""
    return next((each for each in conditions if each.get("type") == kind), None)


def find_condition(obj: Mapping[str, Any], kind: str) -> Condition | None:
    """Return the condition of that type from an object's status."""
    return condition_of((obj.get("status") or {}).get("conditions") or (), kind)


def is_true(obj: Mapping[str, Any], kind: str) -> bool:
    """Tell whether the object says that condition is True."""
    found = find_condition(obj, kind)
    return found is not None and found.get("status") == "True"


def dated(condition: Condition, old: Condition | None, now: str) -> Object:
    """Return *condition* with its ``lastTransitionTime``: *old*'s while the status is the same."""
    since = None
    if old is not None and old.get("status") == condition["status"]:
        since = old.get("lastTransitionTime")
    return {**condition, "lastTransitionTime": since or now}


def set_conditions(
    conditions: Iterable[Condition],
    wanted: Iterable[Condition],
    now: str,
    *,
    dropped: Collection[str] = (),
) -> list[Object]:
    """Return *conditions* with each of *wanted* at its type's place, or at the end.

    Those of a type in *dropped* are left out. What says the same already stays equal, so a caller
    can compare the result with what was there to know whether anything has to be written. Others
    may have written one that has no type.
    """
    typed = ((each.get("type", ""), each) for each in conditions)
    known = {kind: dict(each) for kind, each in typed if kind not in dropped}
    for condition in wanted:
        kind = condition["type"]
        known[kind] = dated(condition, known.get(kind), now)
    return list(known.values())


def ready_first(conditions: Iterable[Object]) -> list[Object]:
    """Return *conditions* sorted as kcp sorts them: Ready, then by type."""
    return sorted(conditions, key=lambda each: (each.get("type") != "Ready", each.get("type", "")))
