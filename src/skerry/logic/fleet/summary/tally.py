"""``tally``: what the reports of one placed object come to, over all its destinations.

A tally is a fold over the route of a (placement, item): its destinations, each beside the report of
the copy in its mailbox. Destinations come, change and go one at a time, so the fold is invertible:
counts are added and subtracted; sums are exact (fractions where a report holds decimals, because
floating-point sums drift under subtraction); minimum and maximum survive removals; the details are
kept in order, so a change costs a binary search and a memory move, never a pass over all
destinations. ``reference`` is the same computed from the inputs alone: the two are always equal.

A destination whose Lease has lapsed is unknown: it is counted as that, and as nothing else.

Why details are in one order and not in a heap: three questions are asked of them, and one order
answers all. The first so many go into the summary; the place where the last rank begins says how
many are ready, without a counter that would have to agree with it; and the first entry that is
neither silent nor ready is the one to name where only one can be named. Ranks put a destination
that is not heard of behind the unhealthy, since somebody can do something about those, and before
the pending, since these need no one. Within a rank the undelivered come first: why something did
not arrive explains more than how what is there fares.

A number that a report leaves out counts as zero for ``ranges`` and as absent for the totals. The
status of a Deployment without ready replicas has no ``readyReplicas``, so for the smallest count at
any edge leaving it out means zero; a sum is the same either way, and a minimum of what *was*
reported is what a ``StatusSummary`` promises.

Where a kind has no status there is nothing to fold but how many copies were delivered, and which
were refused.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.extremes import Extremes
from skerry.logic.fleet.summary.freshness import LIVE, Lease, fresh_report
from skerry.logic.fleet.summary.health import NOT_ENFORCED, WITHOUT_HEALTH
from skerry.logic.fleet.summary.report import Number, Origin, Report, own_report
from skerry.logic.fleet.summary.standing import Detail, Deviations, ItemCount, mark
from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.product import Folded, Product
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Table

# Where a condition's status is counted.
_COLUMNS = {"True": 0, "False": 1, "Unknown": 2}
# The unhealthy come first, then those not heard of, then those of which nothing is known yet; of
# equals those that are not delivered. So, with one more for what is delivered:
#     0, 1  unhealthy
#     2     not heard of; whether it is delivered is not known either
#     3, 4  not known yet to be well or not
#     5, 6  healthy, or without a health to wait for
_RANKS = {"False": 0, "Unknown": 3, "True": 5}
_UNHEARD = 2
# Heard of, delivered and healthy, or without a health to wait for.
_READY = 6


class NumberTotal(NamedTuple):
    """What one numeric field comes to, over the destinations that report it."""

    field: str
    sum: Number
    min: Number
    max: Number


class ConditionTotal(NamedTuple):
    """How often a condition type is True, False or anything else."""

    type: str
    true: int
    false: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Totals:
    """What a summary tells."""

    destinations: int = 0
    delivered: int = 0
    reported: int = 0
    healthy: int = 0
    unhealthy: int = 0
    unknown: int = 0
    numbers: tuple[NumberTotal, ...] = ()
    conditions: tuple[ConditionTotal, ...] = ()
    newest: str = ""
    oldest: str = ""
    details: tuple[Detail, ...] = ()


class _Numbers:
    """One field: exact sum and extremes."""

    __slots__ = ("_sum", "_values")

    def __init__(self) -> None:
        self._sum: int | Fraction = 0
        self._values: Extremes[Number] = Extremes()

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, value: Number) -> None:
        self._sum += value if isinstance(value, int) else Fraction(value)
        self._values.add(value)

    def remove(self, value: Number) -> None:
        self._sum -= value if isinstance(value, int) else Fraction(value)
        self._values.remove(value)

    def range(self, among: int) -> tuple[Number, Number]:
        """Return the extremes, with a zero unless all of *among* have a value."""
        least, greatest = self._values.min(), self._values.max()
        if len(self._values) < among:
            least, greatest = min(least, 0), max(greatest, 0)
        return least, greatest

    def total(self, field: str) -> NumberTotal:
        return NumberTotal(
            field, _plain(self._sum), _plain(self._values.min()), _plain(self._values.max())
        )


# A detail in the order of summaries: by rank, location, then the rest of the destination, whose UID
# is unique, so that reports themselves are never compared.
_Entry = tuple[int, str, Destination, Report]
_Fields = tuple[tuple[str, Number], ...]


class Tally:
    """The reports of one object's destinations, and their totals at any moment.

    What was added and removed again leaves no trace, in whatever order: counts that come to zero
    are forgotten, so that a tally equals one made anew from what is left.
    """

    __slots__ = (
        "_conditions",
        "_delivered",
        "_healthy",
        "_numbers",
        "_order",
        "_origins",
        "_reported",
        "_times",
        "_unhealthy",
        "_unknown",
    )

    def __init__(self, details: Iterable[tuple[str, Detail]] = ()) -> None:
        self._delivered = self._reported = self._healthy = self._unhealthy = self._unknown = 0
        self._numbers: dict[str, _Numbers] = {}
        self._conditions: dict[str, list[int]] = {}
        self._times: Extremes[str] = Extremes()
        self._origins: Extremes[Origin] = Extremes()
        self._order: list[_Entry] = []
        for _, detail in details:
            self._count(detail.report, 1)
            self._order.append(_entry(detail))
        self._order.sort()

    def __len__(self) -> int:
        return len(self._order)

    @property
    def delivered(self) -> int:
        """How many destinations have applied the present content."""
        return self._delivered

    def item_count(self) -> ItemCount | None:
        """Return where it is unhealthy first; None when it is nowhere."""
        if not self._unhealthy:
            return None
        first = self._order[0]
        return ItemCount(0, first[1], first[3].health)

    def only(self) -> Detail | None:
        """Return the one destination with its report; None when there are more, or none."""
        if len(self._order) != 1:
            return None
        _, _, destination, report = self._order[0]
        return Detail(destination, report)

    def details(self) -> Iterator[tuple[str, Detail]]:
        """Yield every destination with its report, by the UID of its SyncTarget."""
        for _, _, destination, report in self._order:
            yield destination.uid, Detail(destination, report)

    def ready(self) -> int:
        """Return how many destinations are heard of, delivered and healthy.

        What has no health to wait for counts as healthy here.
        """
        return len(self._order) - bisect_left(self._order, (_READY,))

    def first_unready(self) -> Detail | None:
        """Return the first destination heard of that is not; None when all are."""
        at = 0 if self._unhealthy else bisect_left(self._order, (_UNHEARD + 1,))
        if at == len(self._order) or self._order[at][0] == _READY:
            return None
        _, _, destination, report = self._order[at]
        return Detail(destination, report)

    def ranges(self) -> Iterator[tuple[str, Number, Number]]:
        """Yield each number's name and extremes; who was heard of and left it out has none of it.

        So Kubernetes writes counts: a zero is not there.
        """
        known = len(self._order) - self._unknown
        for field, numbers in self._numbers.items():
            yield field, *numbers.range(known)

    def oldest_generation(self, cluster: ClusterName) -> int:
        """Return the oldest generation of a workspace's object that copies were made of.

        0 when one that was heard of is of another object, or does not say.
        """
        origins = self._origins
        if not origins or len(origins) < len(self._order) - self._unknown:
            return 0
        (first, generation), (last, _) = origins.min(), origins.max()
        return generation if first == last == cluster else 0

    def add(self, _: str, detail: Detail) -> None:
        """Count a destination that was not there."""
        self._count(detail.report, 1)
        insort(self._order, _entry(detail))

    def remove(self, _: str, detail: Detail) -> None:
        """Take out a destination as it was added."""
        self._count(detail.report, -1)
        del self._order[bisect_left(self._order, _entry(detail))]

    def replace(self, _: str, old: Detail, new: Detail) -> None:
        """Take what a destination reports now for what it did; what is the same is not touched."""
        was, now = old.report, new.report
        # Each part is compared before it is counted: of a report that changed, most has not.
        self._delivered += now.delivered - was.delivered
        self._reported += now.reported - was.reported
        if was.health is not now.health:
            before, after = was.health.status, now.health.status
            self._healthy += (after == "True") - (before == "True")
            self._unhealthy += (after == "False") - (before == "False")
        self._unknown += (now.last_heard is not None) - (was.last_heard is not None)
        if was.numbers != now.numbers:
            self._replace_numbers(was.numbers, now.numbers)
        if was.conditions != now.conditions:
            self._count_conditions(was.conditions, -1)
            self._count_conditions(now.conditions, 1)
        if was.time != now.time:
            if was.time:
                self._times.remove(was.time)
            if now.time:
                self._times.add(now.time)
        if was.origin != now.origin:
            self._count_origin(was.origin, -1)
            self._count_origin(now.origin, 1)
        # With the same rank its place is the same, and there is nothing to move.
        held, entry = _entry(old), _entry(new)
        at = bisect_left(self._order, held)
        if held[0] == entry[0] and held[2] == entry[2]:
            self._order[at] = entry
        else:
            del self._order[at]
            insort(self._order, entry)

    def totals(self, max_details: int) -> Totals:
        """Return the totals, with at most so many details, the unhealthy first."""
        return Totals(
            destinations=len(self._order),
            delivered=self._delivered,
            reported=self._reported,
            healthy=self._healthy,
            unhealthy=self._unhealthy,
            unknown=self._unknown,
            numbers=tuple(self._numbers[field].total(field) for field in sorted(self._numbers)),
            conditions=tuple(
                ConditionTotal(kind, *self._conditions[kind]) for kind in sorted(self._conditions)
            ),
            newest=self._times.max() if self._times else "",
            oldest=self._times.min() if self._times else "",
            details=tuple([Detail(d, report) for _, _, d, report in self._order[:max_details]]),
        )

    def _count(self, report: Report, by: int) -> None:
        self._delivered += by * report.delivered
        self._reported += by * report.reported
        self._healthy += by * (report.health.status == "True")
        self._unhealthy += by * (report.health.status == "False")
        self._unknown += by * (report.last_heard is not None)
        self._count_numbers(report.numbers, by)
        self._count_conditions(report.conditions, by)
        self._count_time(report.time, by)
        self._count_origin(report.origin, by)

    def _count_numbers(self, found: Iterable[tuple[str, Number]], by: int) -> None:
        for field, value in found:
            numbers = self._numbers.get(field)
            if numbers is None:
                numbers = self._numbers[field] = _Numbers()
            if by > 0:
                numbers.add(value)
            else:
                numbers.remove(value)
                if not numbers:
                    del self._numbers[field]

    def _replace_numbers(self, was: _Fields, now: _Fields) -> None:
        """Take numbers out and in one by one; both are in the order of fields, so few differ."""
        for old, new in zip(was, now, strict=False):
            if old != new:
                self._count_numbers((new,), 1)
                self._count_numbers((old,), -1)
        if len(was) != len(now):
            self._count_numbers(now[len(was) :], 1)
            self._count_numbers(was[len(now) :], -1)

    def _count_conditions(self, found: Iterable[tuple[str, str]], by: int) -> None:
        for kind, status in found:
            counts = self._conditions.setdefault(kind, [0, 0, 0])
            counts[_COLUMNS[status]] += by
            if not any(counts):
                del self._conditions[kind]

    def _count_time(self, time: str, by: int) -> None:
        if time:
            (self._times.add if by > 0 else self._times.remove)(time)

    def _count_origin(self, origin: Origin, by: int) -> None:
        if origin[1]:
            (self._origins.add if by > 0 else self._origins.remove)(origin)


class DeliveredCopies:
    """Where an object whose kind has no status was applied: how many, and what is said of it.

    Said is who refused it, or else where it has no effect.
    """

    __slots__ = ("_inert", "_refused", "delivered_copies")

    def __init__(self, details: Iterable[tuple[str, Detail]] = ()) -> None:
        self.delivered_copies = 0
        self._refused: dict[str, Detail] = {}
        self._inert: dict[str, Detail] = {}
        for uid, detail in details:
            self.add(uid, detail)

    def item_count(self) -> ItemCount | None:
        """Return how many were delivered, and who refused it first; None when nobody did either."""
        said = self._refused or self._inert
        if not said:
            return ItemCount(self.delivered_copies) if self.delivered_copies else None
        first = min(said.values(), key=lambda detail: (detail[0].location, detail[0]))
        return ItemCount(self.delivered_copies, first[0].location, first[1].health)

    def add(self, uid: str, detail: Detail) -> None:
        self.delivered_copies += detail.report.delivered
        if detail.report.health.status == "False":
            self._refused[uid] = detail
        elif detail.report.health.reason == NOT_ENFORCED:
            self._inert[uid] = detail

    def remove(self, uid: str, detail: Detail) -> None:
        self.delivered_copies -= detail.report.delivered
        self._refused.pop(uid, None)
        self._inert.pop(uid, None)

    def replace(self, uid: str, old: Detail, new: Detail) -> None:
        self.remove(uid, old)
        self.add(uid, new)


# By placement, item (in no cluster) and SyncTarget UID; the left row: the kind has a status.
Route = Product[ObjectRef, ObjectRef, str, bool, Destination]
Reports = Relation[ObjectRef, str, Report]
Leases = Table[str, Lease]
Tallies = Folded[ObjectRef, ObjectRef, Tally | DeliveredCopies, Deviations]


def tally(flow: Dataflow, route: Route, report: Reports, leases: Leases) -> Tallies:
    """Return, for each placement and item it selects, the fold over where it goes.

    And for each placement the marks of its items, by destination; see ``standing``.
    """
    return flow.fold("tally", route, report, leases, _detail, _fold, mark, Deviations)


def _fold(
    _: ObjectRef, __: ObjectRef, has_status: bool, details: Iterable[tuple[str, Detail]]
) -> Tally | DeliveredCopies:
    return Tally(details) if has_status else DeliveredCopies(details)


def _detail(
    placement: ObjectRef, destination: Destination, report: Report | None, lease: Lease | None
) -> Detail:
    if report is not None and report.withheld_from:
        report = own_report(report, placement.cluster)
    if lease is LIVE and report is not None:
        return Detail(destination, report)
    return Detail(destination, fresh_report(report, lease))


def reference(
    selected: Mapping[tuple[ObjectRef, ObjectRef], bool],
    destinations: Mapping[tuple[ObjectRef, str], Destination],
    reports: Mapping[tuple[ObjectRef, str], Report],
    leases: Mapping[str, Lease],
    max_details: int,
) -> dict[tuple[ObjectRef, ObjectRef], Totals | int]:
    """Compute every tally from scratch: totals, or without a status how many were delivered."""
    found: dict[tuple[ObjectRef, ObjectRef], Totals | int] = {}
    for (placement, item), has_status in selected.items():
        details = [
            _detail(placement, destination, reports.get((item, uid)), leases.get(uid))
            for (goes, uid), destination in destinations.items()
            if goes == placement
        ]
        delivered = sum(detail.report.delivered for detail in details)
        found[placement, item] = total(details, max_details) if has_status else delivered
    return found


def total(details: Iterable[Detail], max_details: int) -> Totals:
    """Compute totals in one pass: slow, simple, and what ``Tally`` must equal."""
    found = list(details)
    reports = [detail.report for detail in found]
    values: dict[str, list[Number]] = {}
    kinds: dict[str, list[str]] = {}
    for report in reports:
        for field, value in report.numbers:
            values.setdefault(field, []).append(value)
        for kind, status in report.conditions:
            kinds.setdefault(kind, []).append(status)
    times = [report.time for report in reports if report.time]
    return Totals(
        destinations=len(found),
        delivered=sum(report.delivered for report in reports),
        reported=sum(report.reported for report in reports),
        healthy=sum(report.health.status == "True" for report in reports),
        unhealthy=sum(report.health.status == "False" for report in reports),
        unknown=sum(report.last_heard is not None for report in reports),
        numbers=tuple(
            NumberTotal(field, _plain(sum(map(Fraction, v))), _plain(min(v)), _plain(max(v)))
            for field, v in sorted(values.items())
        ),
        conditions=tuple(
            ConditionTotal(kind, s.count("True"), s.count("False"), s.count("Unknown"))
            for kind, s in sorted(kinds.items())
        ),
        newest=max(times, default=""),
        oldest=min(times, default=""),
        details=tuple(Detail(*entry[2:]) for entry in sorted(map(_entry, found))[:max_details]),
    )


def _plain(number: Number | Fraction) -> Number:
    """Return *number* as JSON writes it: whole where it is whole."""
    return int(number) if number == int(number) else float(number)


def _entry(detail: Detail) -> _Entry:
    """Return where a detail stands; what nobody waits for counts as healthy (``_RANKS``)."""
    destination, report = detail
    if report.last_heard is not None:
        return _UNHEARD, destination.location, destination, report
    status = report.health.status
    if status == "Unknown" and report.health.reason in WITHOUT_HEALTH:
        status = "True"
    return _RANKS[status] + report.delivered, destination.location, destination, report
