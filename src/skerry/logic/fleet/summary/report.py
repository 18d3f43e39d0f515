"""What one copy of an object tells about its place, read once and kept small.

*Delivered* means that the syncer has applied the content the mailbox holds now; its marks on the
copy say so, and say why where it could not be applied. What cannot be applied is not healthy,
whatever state an older content is still reported in.

The report time is when the status was last written, which the server itself notes in
``managedFields``: no clock of an edge enters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from skerry.api.edge import SYNC_ERROR
from skerry.logic.fleet.summary.health import (
    LONGEST_MESSAGE,
    LONGEST_REASON,
    NOT_REPORTED,
    Health,
    conditions_of,
    health,
)
from skerry.logic.fleet.syncing.delivery import is_delivered

Raw = Mapping[str, Any]
Number = int | float

# An edge may report what it likes; a summary has room for so much of it.
MOST_NUMBERS = 64
MOST_CONDITIONS = 32
LONGEST_FIELD = 128
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Report:
    """The state at one destination. ``digest`` tells one status from another."""

    delivered: bool = False
    reported: bool = False
    health: Health = NOT_REPORTED
    time: str = ""
    numbers: tuple[tuple[str, Number], ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()
    digest: str = ""


NOT_APPLIED: Final = Health("Unknown", "NotApplied", "the syncer has not applied it yet")
ABSENT: Final = Report(health=Health("Unknown", "NotInMailbox", "the mailbox has no copy yet"))
_DELIVERED = Report(delivered=True)
_UNDELIVERED = Report()


def report_of(group: str, kind: str, obj: Raw) -> Report:
    """Read the copy *obj* of a mailbox."""
    delivered, error = is_delivered(obj), _sync_error(obj)
    status = obj.get("status")
    if not isinstance(status, Mapping) or not status:
        return Report(delivered=delivered, health=error or _unreported(delivered))
    return Report(
        delivered=delivered,
        reported=True,
        health=error or health(group, kind, obj),
        time=reported_at(obj),
        numbers=tuple(sorted(_first(MOST_NUMBERS, _numbers(status)))),
        conditions=tuple(sorted(_first(MOST_CONDITIONS, _conditions(status)))),
        digest=digest_of(status),
    )


def delivery_of(obj: Raw) -> Report:
    """Read of a copy only whether it was delivered: all that counts where there is no status."""
    return _DELIVERED if is_delivered(obj) else _UNDELIVERED


def _unreported(delivered: bool) -> Health:
    return NOT_REPORTED if delivered else NOT_APPLIED


def _sync_error(obj: Raw) -> Health | None:
    """Return why the syncer could not apply the copy; None when it did not say."""
    text = (obj["metadata"].get("annotations") or {}).get(SYNC_ERROR)
    if not isinstance(text, str) or not text:
        return None
    reason, _, message = text.partition(": ")
    return Health("False", reason[:LONGEST_REASON], message[:LONGEST_MESSAGE])


def digest_of(status: object) -> str:
    """Return what tells *status* from any other; empty when there is none."""
    if not status:
        return ""
    text = orjson.dumps(status, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def reported_at(obj: Raw) -> str:
    """Return when the status was last written; empty when nobody noted it."""
    times = [
        str(entry.get("time", ""))
        for entry in (obj.get("metadata") or {}).get("managedFields") or ()
        if entry.get("subresource") == "status"
    ]
    return max(times, default="")


def _first(most: int, pairs: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield the first *most* pairs with different names."""
    seen: set[str] = set()
    for name, value in pairs:
        if name not in seen:
            if len(seen) == most:
                return
            seen.add(name)
            yield name, value


def _numbers(section: Raw, prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Number]]:
    """Yield the numbers below a status; what lists hold has no name that lasts."""
    for name, value in sorted(section.items()):
        field = f"{prefix}{name}"
        if isinstance(value, Mapping):
            if depth < _DEEPEST:
                yield from _numbers(value, f"{field}.", depth + 1)
        elif _is_number(value) and len(field) <= LONGEST_FIELD:
            yield field, value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _conditions(status: Raw) -> Iterator[tuple[str, str]]:
    for condition in sorted(conditions_of(status), key=lambda found: str(found["type"])):
        said = condition.get("status")
        name = condition["type"][:LONGEST_REASON]
        yield name, said if said in ("True", "False") else "Unknown"
