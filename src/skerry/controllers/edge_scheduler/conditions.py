"""Conditions of a status that others write to as well."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from skerry.kit.timestamps import rfc3339


class Condition(NamedTuple):
    """A condition without its time."""

    kind: str
    status: bool
    reason: str
    message: str


def merged(
    old: Sequence[dict[str, Any]],
    wanted: Sequence[Condition],
    now: datetime,
    dropped: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return *old* with *wanted* in it and without those *dropped*.

    A time changes only when the status does.
    """
    found = {each["type"]: each for each in old if each["type"] not in dropped}
    for kind, status, reason, message in wanted:
        known = found.get(kind, {})
        text = "True" if status else "False"
        since = known.get("lastTransitionTime") if known.get("status") == text else None
        found[kind] = {
            "type": kind,
            "status": text,
            "lastTransitionTime": since or rfc3339(now),
            "reason": reason,
            "message": message,
        }
    return list(found.values())
