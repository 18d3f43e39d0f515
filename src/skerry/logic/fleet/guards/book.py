"""What guards have let go and what they hold, as an EdgePlacement's ``status.removals`` says it.

There is a part for destinations, which the edge scheduler charges, and one for objects, which the
placement translator does.

The book of a placement is part of its status, so it outlives every process, and whoever charges it
does so with the version it has read: of two that want the last place in a window one meets a
Conflict. A charge is written before what it is for is removed. Whoever dies in between has charged
too much and never too little.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from skerry.api.edge import GUARD_FINALIZER
from skerry.api.objects import Object
from skerry.kit.timestamps import parse_rfc3339, rfc3339_micro
from skerry.logic.fleet.guards.token import MEMBER_BYTES

Members = frozenset[bytes]
NOBODY: Members = frozenset()

# How long a request that was confirmed, or whose user bypasses guards, speaks for what it does.
PAID_FOR = timedelta(minutes=15)
# Of a book that somebody wrote by hand.
_YEARS = range(1970, 9000)


class Part(NamedTuple):
    """A part of ``status.removals``: the names of its fields, and of the members in a charge."""

    charges: str
    held: str
    members: str


DESTINATIONS = Part("charges", "held", "destinations")
OBJECTS = Part("objectCharges", "heldObjects", "objects")


class Charge(NamedTuple):
    """Members let go at one time; ``by`` says who let them go beyond the budget, if anybody."""

    time: datetime
    members: Members
    by: str = ""


class Hold(NamedTuple):
    """A removal that waits for a person.

    ``limit`` is how many would go unasked, ``of`` how many there were when it began: additions
    since then do not make it smaller. ``guards`` is empty for the built-in floor.
    """

    name: str
    removed: int
    limit: int
    of: int
    since: datetime
    why: str
    guards: tuple[str, ...] = ()

    def written(self) -> Object:
        """Return it as it stands in the status."""
        found: Object = {
            "name": self.name,
            "removed": self.removed,
            "limit": self.limit,
            "of": self.of,
            "since": rfc3339_micro(self.since),
            "why": self.why,
        }
        return {**found, "guards": list(self.guards)} if self.guards else found


@dataclass(frozen=True, slots=True)
class Book:
    """Charges of one placement, oldest first, and what is held of it."""

    charges: tuple[Charge, ...] = ()
    hold: Hold | None = None

    def charged(self, after: datetime) -> Members:
        """Return what was let go within budgets after a moment."""
        return _union(each.members for each in self.charges if not each.by and each.time > after)

    def paid(self, now: datetime) -> Members:
        """Return what may go because a request for it was confirmed, or bypassed the guards."""
        return _union(c.members for c in self.charges if c.by and c.time > now - PAID_FOR)

    def with_charge(self, charge: Charge, keep: timedelta) -> Book:
        """Return the book with one more charge, without those older than *keep*."""
        begin = charge.time - max(keep, PAID_FOR)
        if self.hold is not None:
            # While something is held, what went before it counts.
            begin = min(begin, self.hold.since - keep)
        kept = tuple(each for each in self.charges if each.time > begin)
        return replace(self, charges=(*kept, charge)) if charge.members else self


# The answer to somebody who would write into a book.
REFUSAL = "status.removals is kept by the controllers of the edge API: nobody else may change it"


def book_entries(placement: Mapping[str, Any]) -> frozenset[bytes]:
    """Return the book of an EdgePlacement, whole: who changes any of it forges it."""
    removals = (placement.get("status") or {}).get("removals")
    return frozenset([orjson.dumps(removals, option=orjson.OPT_SORT_KEYS)] if removals else ())


def has_finalizer(placement: Mapping[str, Any]) -> bool:
    """Tell whether the deletion of a placement waits for guards."""
    return GUARD_FINALIZER in (placement["metadata"].get("finalizers") or ())


def book_of(status: Mapping[str, Any] | None, part: Part = DESTINATIONS) -> Book:
    """Read a part of the book in an EdgePlacement's status; what is no charge is none."""
    removals = (status or {}).get("removals") or {}
    charges = (_charge(each, part) for each in removals.get(part.charges) or ())
    found = tuple(each for each in charges if each is not None)
    return Book(found, hold_of(removals.get(part.held)))


def hold_of(written: Mapping[str, Any] | None) -> Hold | None:
    """Read what is held; None for nothing, and for what is no hold."""
    if not written:
        return None
    try:
        return Hold(
            str(written["name"]),
            int(written["removed"]),
            int(written["limit"]),
            int(written.get("of") or 0),
            _time_of(written["since"]),
            str(written["why"]),
            tuple(map(str, written.get("guards") or ())),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _time_of(text: object) -> datetime:
    """Return the time of an entry; it is reckoned with, so there are times before and after it."""
    found = parse_rfc3339(str(text))
    if found.year not in _YEARS:
        raise ValueError(f"time {text!r}: want one of the years {_YEARS[0]} to {_YEARS[-1]}")
    return found


def removals_with(
    status: Mapping[str, Any] | None, book: Book, part: Part = DESTINATIONS
) -> Object:
    """Return ``status.removals`` with this part in it; what others hold stays."""
    found = dict((status or {}).get("removals") or {})
    found.pop(part.charges, None)
    found.pop(part.held, None)
    if book.charges:
        found[part.charges] = [_written(each, part) for each in book.charges]
    if book.hold is not None:
        found[part.held] = book.hold.written()
    return found


def status_with(
    status: Mapping[str, Any] | None, book: Book, part: Part = DESTINATIONS
) -> dict[str, Any]:
    """Return a status with this part of its book, and without one where nothing is in it."""
    old = status or {"specGeneration": 0, "matchingLocationCount": 0}
    found = {key: value for key, value in old.items() if key != "removals"}
    removals = removals_with(old, book, part)
    return {**found, "removals": removals} if removals else found


def _written(charge: Charge, part: Part) -> Object:
    found: Object = {
        "time": rfc3339_micro(charge.time),
        part.members: b64encode(b"".join(sorted(charge.members))).decode(),
    }
    return {**found, "by": charge.by} if charge.by else found


def _charge(obj: Mapping[str, Any], part: Part) -> Charge | None:
    try:
        packed = b64decode(str(obj[part.members]), validate=True)
        time = _time_of(obj["time"])
    except (KeyError, TypeError, ValueError):
        return None
    cut = range(0, len(packed), MEMBER_BYTES)
    members = frozenset(packed[n : n + MEMBER_BYTES] for n in cut)
    return Charge(time, members, str(obj.get("by") or ""))


def _union(found: Iterable[Members]) -> Members:
    listed: Sequence[Members] = list(found)
    return NOBODY.union(*listed) if listed else NOBODY
