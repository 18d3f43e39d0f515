"""Totals over destinations that come, change and go one at a time.

Counts are added and subtracted; sums are exact (fractions where a report holds decimals, because
floating-point sums drift under subtraction); least and most survive removals; the order of the
details is kept sorted, so a change costs a binary search and a memory move, never a pass over all
destinations. ``total`` is the same computed from scratch: the two are always equal.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.extremes import Extremes
from skerry.logic.fleet.summary.report import ABSENT, Number, Report

_RANKS = {"False": 0, "Unknown": 1, "True": 2}
_PLACES = {"True": 0, "False": 1, "Unknown": 2}


class NumberTotal(NamedTuple):
    """What one numeric field comes to, over the destinations that report it."""

    field: str
    sum: Number
    least: Number
    most: Number


class ConditionTotal(NamedTuple):
    """How often a condition type is True, False or anything else."""

    type: str
    true: int
    false: int
    unknown: int


class Detail(NamedTuple):
    """One destination and what it reports."""

    destination: Destination
    report: Report


@dataclass(frozen=True, slots=True)
class Totals:
    """What a summary tells."""

    destinations: int = 0
    delivered: int = 0
    reported: int = 0
    healthy: int = 0
    numbers: tuple[NumberTotal, ...] = ()
    conditions: tuple[ConditionTotal, ...] = ()
    newest: str = ""
    oldest: str = ""
    details: tuple[Detail, ...] = ()


_Rank = tuple[int, bool, str, str, str, str]


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

    def total(self, field: str) -> NumberTotal:
        return NumberTotal(
            field, plain(self._sum), plain(self._values.least()), plain(self._values.most())
        )


class Accumulator:
    """The reports of one object's destinations, and their totals at any moment."""

    __slots__ = (
        "_conditions",
        "_delivered",
        "_healthy",
        "_held",
        "_numbers",
        "_order",
        "_reported",
        "_times",
    )

    def __init__(self, details: Iterable[tuple[Destination, Report]] = ()) -> None:
        self._held: dict[str, Detail] = {}
        self._delivered = self._reported = self._healthy = 0
        self._numbers: dict[str, _Numbers] = {}
        self._conditions: dict[str, list[int]] = {}
        self._times: Extremes[str] = Extremes()
        for destination, report in details:
            self._held[destination.uid] = Detail(destination, report)
            self._count(report, 1)
        self._order: list[tuple[_Rank, str]] = sorted(
            (_rank(detail), uid) for uid, detail in self._held.items()
        )

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, uid: object) -> bool:
        return uid in self._held

    def get(self, uid: str) -> Detail | None:
        """Return what is held of the destination with SyncTarget *uid*."""
        return self._held.get(uid)

    def details(self) -> Iterable[Detail]:
        """Return every destination with its report, in no particular order."""
        return self._held.values()

    @property
    def delivered(self) -> int:
        """How many destinations have applied the present content."""
        return self._delivered

    def put(self, destination: Destination, report: Report) -> bool:
        """Hold *report* for *destination*; tells whether anything changed."""
        known = self._held.get(destination.uid)
        detail = Detail(destination, report)
        if known is not None:
            if known == detail:
                return False
            self._take_out(known)
        self._held[destination.uid] = detail
        self._count(report, 1)
        insort(self._order, (_rank(detail), destination.uid))
        return True

    def remove(self, uid: str) -> bool:
        """Forget the destination with SyncTarget *uid*; tells whether it was there."""
        known = self._held.pop(uid, None)
        if known is None:
            return False
        self._take_out(known)
        return True

    def totals(self, most_details: int) -> Totals:
        """Return the totals, with at most so many details, the unhealthy first."""
        return Totals(
            destinations=len(self._held),
            delivered=self._delivered,
            reported=self._reported,
            healthy=self._healthy,
            numbers=tuple(self._numbers[field].total(field) for field in sorted(self._numbers)),
            conditions=tuple(
                ConditionTotal(kind, *self._conditions[kind]) for kind in sorted(self._conditions)
            ),
            newest=self._times.most() if self._times else "",
            oldest=self._times.least() if self._times else "",
            details=tuple(self._held[uid] for _, uid in self._order[:most_details]),
        )

    def _take_out(self, known: Detail) -> None:
        self._count(known.report, -1)
        entry = (_rank(known), known.destination.uid)
        del self._order[bisect_left(self._order, entry)]

    def _count(self, report: Report, by: int) -> None:
        self._delivered += by * report.delivered
        self._reported += by * report.reported
        self._healthy += by * (report.health.status == "True")
        for field, value in report.numbers:
            self._count_number(field, value, by)
        for kind, status in report.conditions:
            counts = self._conditions.setdefault(kind, [0, 0, 0])
            counts[_PLACES[status]] += by
            if not any(counts):
                del self._conditions[kind]
        if report.time:
            (self._times.add if by > 0 else self._times.remove)(report.time)

    def _count_number(self, field: str, value: Number, by: int) -> None:
        numbers = self._numbers.get(field)
        if numbers is None:
            numbers = self._numbers[field] = _Numbers()
        if by > 0:
            numbers.add(value)
            return
        numbers.remove(value)
        if not numbers:
            del self._numbers[field]


def total(details: Mapping[Destination, Report], most_details: int) -> Totals:
    """Compute the totals from scratch: slow, simple, and what ``Accumulator`` must equal."""
    found = [Detail(destination, report) for destination, report in details.items()]
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
        numbers=tuple(
            NumberTotal(field, plain(sum(map(Fraction, v))), plain(min(v)), plain(max(v)))
            for field, v in sorted(values.items())
        ),
        conditions=tuple(
            ConditionTotal(kind, s.count("True"), s.count("False"), s.count("Unknown"))
            for kind, s in sorted(kinds.items())
        ),
        newest=max(times, default=""),
        oldest=min(times, default=""),
        details=tuple(sorted(found, key=_rank)[:most_details]),
    )


def absent(destinations: Iterable[Destination]) -> Accumulator:
    """Return the accumulator of an object no destination has a copy of yet."""
    return Accumulator((destination, ABSENT) for destination in destinations)


def plain(number: Number | Fraction) -> Number:
    """Return *number* as JSON writes it: whole where it is whole."""
    return int(number) if number == int(number) else float(number)


def _rank(detail: Detail) -> _Rank:
    """Order details: the unhealthy, the unknown, the undelivered, the rest; then by name."""
    destination, report = detail
    return (
        _RANKS[report.health.status],
        report.delivered,
        destination.location,
        destination.cluster,
        destination.sync_target,
        destination.uid,
    )
