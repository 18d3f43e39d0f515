"""``standing``: what becomes of an EdgePlacement as a whole, destination by destination.

A destination is *unknown* while its edge's Lease has lapsed; otherwise it is *delivered* when
everything the placement selects was applied there, *unhealthy* when any of it is, and *healthy*
when it is delivered and nothing of it is unhealthy or still to be reported. What a kind without
health is like is not asked.

How one copy deviates from "delivered and healthy" is its *mark*, a number; the marks of all copies
of a placement at one destination add up to one number that says which kinds of deviation there are
and how many copies have each. Destinations without any are not stored. So a report costs nothing
here unless it changes a mark, and then an addition.

The sum is three counters in one integer, with twenty bits for each: pending copies, undelivered
ones, unhealthy ones. Adding a mark counts up one of each kind at most, and taking it back counts
down; as long as no placement selects a million objects, no counter runs into the next. So "is
anything undelivered at this destination" is a comparison of the sum with a power of two, and a
destination leaves the table when its sum is zero, which is exactly when nothing deviates there.
A fleet that is well holds nothing here, whatever its size.

That a destination is unknown is known from its Lease and not from marks: it has none at all then,
and is subtracted once from everything else.

``reference`` is the same computed from the inputs alone: the two are always equal.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.freshness import Lease, fresh_report, heard_of
from skerry.logic.fleet.summary.health import WITHOUT_HEALTH, Health
from skerry.logic.fleet.summary.report import Report, own_report
from skerry.logic.fleet.tables.flow import Dataflow, Settled
from skerry.logic.fleet.tables.operators import Fold, Groups
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Table

# A mark is one of each kind of deviation at most; a placement selects fewer than a million copies.
_ROOM = 1 << 20
PENDING: Final = 1
UNDELIVERED: Final = _ROOM
UNHEALTHY: Final = _ROOM * _ROOM
# People read the names of the first few; the rest is a number to them.
MAX_NAMED: Final = 3
# Finding the first few among more than these is not worth its time.
_MAX_SEARCHED = 1000


class Detail(NamedTuple):
    """One destination and what it reports."""

    destination: Destination
    report: Report


def mark(has_status: bool, detail: Detail) -> int:
    """Return how a copy deviates; a destination that is unknown has no marks."""
    report = detail[1]
    if report.last_heard is not None:
        return 0
    found, health = 0 if report.delivered else UNDELIVERED, report.health
    if health.status == "True":
        return found
    if health.status == "False":
        return found + UNHEALTHY
    if has_status and health.reason not in WITHOUT_HEALTH:
        return found + PENDING
    return found


class Named(NamedTuple):
    """A destination to be named: its Location, and what there is to say of it."""

    location: str
    text: str = ""


class Worst(NamedTuple):
    """An object that is not healthy, or without effect, and where."""

    item: ObjectRef
    location: str
    health: Health


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an edge holds back what it is to do, in one word and in a sentence."""

    reason: str
    message: str
    # The clusters whose objects it is about; empty: perhaps anybody's.
    clusters: tuple[ClusterName, ...] = ()


class HeldAt(NamedTuple):
    """A destination that holds something back."""

    location: str
    hold: Hold


@dataclass(frozen=True, slots=True)
class Standing:
    """What a placement's status tells.

    ``delivered_copies`` counts those of kinds without status. ``undelivered`` and ``unheard`` name
    the first destinations, ``worst`` the first unhealthy object, and ``inert`` the first of a kind
    without status that has no effect somewhere.
    """

    destinations: int = 0
    delivered: int = 0
    healthy: int = 0
    unhealthy: int = 0
    unknown: int = 0
    objects: int = 0
    delivered_copies: int = 0
    undelivered: tuple[str, ...] = ()
    unheard: tuple[Named, ...] = ()
    worst: Worst | None = None
    inert: Worst | None = None
    held: tuple[HeldAt, ...] = ()

    @property
    def known(self) -> int:
        """How many destinations were heard of lately."""
        return self.destinations - self.unknown


class Deviations:
    """The destinations of a placement that have marks, and the sums of these."""

    __slots__ = ("_sums", "_undelivered", "unhealthy")

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}
        self._undelivered: set[str] = set()
        self.unhealthy = 0

    def __bool__(self) -> bool:
        return bool(self._sums)

    @property
    def deviating(self) -> int:
        return len(self._sums)

    @property
    def undelivered(self) -> int:
        return len(self._undelivered)

    def names(self, destinations: Mapping[str, Destination]) -> tuple[str, ...]:
        """Return the first Locations that something was not delivered to, unless they are many."""
        if len(self._undelivered) > _MAX_SEARCHED:
            return ()
        found = {destinations[uid].location for uid in self._undelivered}
        return tuple(nsmallest(MAX_NAMED, found))

    def add(self, uid: str, mark: int) -> None:
        """Add a mark, or take one back, to the sum of a destination."""
        before = self._sums.get(uid, 0)
        now = before + mark
        if now:
            self._sums[uid] = now
        else:
            del self._sums[uid]
        if before < UNDELIVERED and now < UNDELIVERED:
            return
        self.unhealthy += (now >= UNHEALTHY) - (before >= UNHEALTHY)
        if now % UNHEALTHY < UNDELIVERED:
            self._undelivered.discard(uid)
        else:
            self._undelivered.add(uid)


class ItemCount(NamedTuple):
    """Of one placed object: the copies to count, where it is unhealthy first, and why.

    Where it is healthy everywhere, the same of where it has no effect.
    """

    delivered_copies: int = 0
    location: str = ""
    health: Health | None = None


class Items:
    """The objects of a placement that there is something to say of."""

    __slots__ = ("_inert", "_unhealthy", "delivered_copies")

    def __init__(self) -> None:
        self.delivered_copies = 0
        self._unhealthy: dict[ObjectRef, ItemCount] = {}
        self._inert: dict[ObjectRef, ItemCount] = {}

    def worst(self) -> Worst | None:
        """Return the first object that is unhealthy somewhere."""
        return _first_of(self._unhealthy)

    def inert(self) -> Worst | None:
        """Return the first object that has no effect somewhere."""
        return _first_of(self._inert)

    def add(self, key: tuple[ObjectRef, ObjectRef], row: ItemCount) -> None:
        self.delivered_copies += row.delivered_copies
        if row.health is not None:
            (self._unhealthy if row.health.status == "False" else self._inert)[key[1]] = row

    def remove(self, key: tuple[ObjectRef, ObjectRef], row: ItemCount) -> None:
        self.delivered_copies -= row.delivered_copies
        self._unhealthy.pop(key[1], None)
        self._inert.pop(key[1], None)

    def replace(self, key: tuple[ObjectRef, ObjectRef], old: ItemCount, new: ItemCount) -> None:
        self.remove(key, old)
        self.add(key, new)


def _first_of(rows: Mapping[ObjectRef, ItemCount]) -> Worst | None:
    if not rows:
        return None
    item = min(rows)
    _, location, health = rows[item]
    return None if health is None else Worst(item, location, health)


class InOrder:
    """Rows of a placement, kept in order."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[tuple[str, ...]] = []

    def add(self, key: tuple[ObjectRef, str], row: tuple[str, ...]) -> None:
        insort(self.rows, (*row, key[1]))

    def remove(self, key: tuple[ObjectRef, str], row: tuple[str, ...]) -> None:
        del self.rows[bisect_left(self.rows, (*row, key[1]))]

    def replace(
        self, key: tuple[ObjectRef, str], old: tuple[str, ...], new: tuple[str, ...]
    ) -> None:
        self.remove(key, old)
        self.add(key, new)


class Counted(Fold[str, Detail], Protocol):
    """The fold of one placed object, as far as its placement asks."""

    def item_count(self) -> ItemCount | None:
        """Return what its placement is to know of it; None for nothing."""


C = TypeVar("C", bound=Counted)


class Standings:
    """The tables of all placements; see the module's text."""

    def __init__(
        self,
        flow: Dataflow,
        selected: Relation[ObjectRef, ObjectRef, bool],
        destinations: Relation[ObjectRef, str, Destination],
        tallies: Groups[tuple[ObjectRef, ObjectRef], C],
        deviations: Groups[ObjectRef, Deviations],
        leases: Table[str, Lease],
        holds: Table[str, Hold],
    ) -> None:
        """*deviations* are by placement; *leases* and *holds* are by destination."""
        self._selected = selected
        self._destinations = destinations
        counts = flow.rows("counts of an item", tallies, lambda _, fold: fold.item_count())
        unheard = flow.attach("unheard", destinations, leases, _unheard_at)
        held = flow.attach("held", destinations, holds, _held_at)
        self._items = flow.group("items", counts, _placement, lambda _: Items())
        self._deviations = deviations
        self._unheard = flow.group("unheard by placement", unheard, _placement, _in_order)
        self._held = flow.group("held by placement", held, _placement, _in_order)
        # What a placement's standing is made of.
        self._groups: frozenset[Groups[ObjectRef, Any]] = frozenset(
            (deviations, self._items, self._unheard, self._held)
        )
        self._tables: frozenset[Table[Any, Any]] = frozenset((selected, destinations))

    def touched(self, settled: Settled) -> list[ObjectRef]:
        """Return the placements of which a batch may have changed anything, in order."""
        found = settled.touched_in(self._groups)
        if settled.differs_in(self._tables):
            for (placement, _), _, _ in settled.changes(self._destinations):
                found.add(placement)
            for (placement, _), _, _ in settled.changes(self._selected):
                found.add(placement)
        return sorted(found)

    def of(self, placement: ObjectRef) -> Standing:
        """Return what becomes of a placement now."""
        destinations = self._destinations.of(placement)
        items = self._items.get(placement) or Items()
        deviations = self._deviations.get(placement) or Deviations()
        unheard = self._unheard.get(placement) or InOrder()
        held = self._held.get(placement) or InOrder()
        known = len(destinations) - len(unheard.rows)
        return Standing(
            destinations=len(destinations),
            delivered=known - deviations.undelivered,
            healthy=known - deviations.deviating,
            unhealthy=deviations.unhealthy,
            unknown=len(unheard.rows),
            objects=len(self._selected.of(placement)),
            delivered_copies=items.delivered_copies,
            undelivered=deviations.names(destinations),
            unheard=tuple(Named(row[0], heard_of(row[1])) for row in unheard.rows[:MAX_NAMED]),
            worst=items.worst(),
            inert=items.inert(),
            held=tuple(
                HeldAt(row[0], Hold(row[1], row[2]))
                for row in held.rows
                if not row[3] or placement.cluster in row[3].split()
            ),
        )


def _placement(key: tuple[ObjectRef, object], _: object) -> ObjectRef:
    return key[0]


def _in_order(_: ObjectRef) -> InOrder:
    return InOrder()


def _unheard_at(_: str, destination: Destination, lease: Lease | None) -> tuple[str, ...] | None:
    """Return the row of a destination that is unknown: its Location, and when it was heard of."""
    report = fresh_report(None, lease)
    return None if report.last_heard is None else (destination.location, report.last_heard)


def _held_at(_: str, destination: Destination, hold: Hold | None) -> tuple[str, ...] | None:
    """Return the row of a destination that holds something back, and whose that is."""
    if hold is None:
        return None
    return destination.location, hold.reason, hold.message, " ".join(hold.clusters)


def reference(
    placement: ObjectRef,
    selected: Mapping[tuple[ObjectRef, ObjectRef], bool],
    destinations: Mapping[tuple[ObjectRef, str], Destination],
    reports: Mapping[tuple[ObjectRef, str], Report],
    leases: Mapping[str, Lease],
) -> Standing:
    """Compute the counts of one placement from scratch, in the words of the module's text."""
    items = {item: has_status for (goes, item), has_status in selected.items() if goes == placement}
    delivered = healthy = unhealthy = unknown = copies = 0
    where = {uid: there for (goes, uid), there in destinations.items() if goes == placement}
    for uid in where:
        lease = leases.get(uid)
        own = {item: reports.get((item, uid)) for item in items}
        found = {
            item: fresh_report(report and own_report(report, placement.cluster), lease)
            for item, report in own.items()
        }
        if lease is None or lease.report is not None:
            unknown += 1
            continue
        everything = all(report.delivered for report in found.values())
        ill = any(report.health.status == "False" for report in found.values())
        pending = any(
            report.health.status == "Unknown" and report.health.reason not in WITHOUT_HEALTH
            for item, report in found.items()
            if items[item]
        )
        delivered += everything
        unhealthy += ill
        healthy += everything and not ill and not pending
        copies += sum(report.delivered for item, report in found.items() if not items[item])
    return Standing(
        destinations=len(where),
        delivered=delivered,
        healthy=healthy,
        unhealthy=unhealthy,
        unknown=unknown,
        objects=len(items),
        delivered_copies=copies,
    )
