"""``fold``: all rows of one query, grouped or in order, and how many there are of which sort.

Rows come and go one by one; ``answer`` reads what they come to. Every row is exactly one of absent,
filtered, excluded by an error, or matched.

A row is taken out by evaluating it again as it was taken in, so nothing is remembered per row but
the row itself. That is right because an expression is a function of its row: there is no ``now`` to
read. Whoever holds the rows must therefore hand back the very row it handed in, before it is
changed. What is left when all rows are gone is nothing, down to the sums: numbers are added
exactly, so no rest of a float stays behind after a million updates.

Groups are known by ``order_of`` their key and not by the key itself, because Python takes ``True``
and ``1`` for the same and CEL does not.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

from skerry.logic.fleet.query.groups import Group, remove_sorted
from skerry.logic.fleet.query.plan import QueryPlan
from skerry.logic.fleet.query.rows import ABSENT_ROW, MATCHED, Evaluation, Ident, Outcome, Row
from skerry.logic.fleet.query.values import Scalar, ordered

Key = tuple[Scalar, ...]
_Order = tuple[tuple[int, Any], ...]


class Ages:
    """The times of reports, of which there are few different ones. RFC 3339 sorts as text."""

    __slots__ = ("_counts", "_order")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._order: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, time: str) -> None:
        if time not in self._counts:
            insort(self._order, time)
        self._counts[time] = self._counts.get(time, 0) + 1

    def remove(self, time: str) -> None:
        count = self._counts[time]
        if count > 1:
            self._counts[time] = count - 1
        else:
            del self._counts[time]
            remove_sorted(self._order, time)

    def before(self, time: str) -> int:
        """Return how many are older than a time."""
        older = self._order[: bisect_left(self._order, time)]
        return sum(self._counts[each] for each in older)

    def first_from(self, time: str) -> str:
        """Return the oldest that is not older than a time; empty when there is none."""
        at = bisect_left(self._order, time)
        return self._order[at] if at < len(self._order) else ""

    def ends(self) -> tuple[str, str]:
        """Return the oldest and the newest; empty when there are none."""
        return (self._order[0], self._order[-1]) if self._order else ("", "")


class QueryFold:
    """What the rows of a query come to."""

    def __init__(self, plan: QueryPlan, evaluator: Evaluation) -> None:
        self.plan = plan
        self.evaluator = evaluator
        self.counts: dict[str, int] = {}
        self.ages = Ages()
        self.groups: dict[_Order, tuple[Key, Group]] = {}
        self.group_order: list[_Order] = []
        # Selected rows in the order of the result, and rows with errors in theirs.
        self.selected: list[tuple[tuple[Any, ...], Ident]] = []
        self.failed: list[Ident] = []
        # Groups whose values are to be computed anew.
        self.touched: set[_Order] = set()

    def __bool__(self) -> bool:
        """Tell whether anything is held."""
        held = (self.counts, self.ages, self.groups, self.group_order, self.selected, self.failed)
        return any(map(bool, held))

    def add(self, row: Row) -> None:
        """Take a row in."""
        outcome = self.evaluator.outcome(row)
        self._count(outcome.verdict, 1)
        if outcome.verdict == ABSENT_ROW:
            return
        if outcome.time:
            self.ages.add(outcome.time)
        if outcome.errors:
            insort(self.failed, row.ident)
        if outcome.verdict == MATCHED:
            self._put(row, outcome)

    def remove(self, row: Row) -> None:
        """Take a row out, as it was taken in."""
        outcome = self.evaluator.outcome(row)
        self._count(outcome.verdict, -1)
        if outcome.verdict == ABSENT_ROW:
            return
        if outcome.time:
            self.ages.remove(outcome.time)
        if outcome.errors:
            remove_sorted(self.failed, row.ident)
        if outcome.verdict == MATCHED:
            self._take(row, outcome)

    def _put(self, row: Row, outcome: Outcome) -> None:
        if self.plan.select:
            insort(self.selected, (self.evaluator.order_key(row), row.ident))
            return
        order = order_of(outcome.key)
        found = self.groups.get(order)
        if found is None:
            found = self.groups[order] = (outcome.key, Group(self.plan.aggregates))
            insort(self.group_order, order)
        found[1].add(outcome.values, row.ident)
        self.touched.add(order)

    def _take(self, row: Row, outcome: Outcome) -> None:
        if self.plan.select:
            remove_sorted(self.selected, (self.evaluator.order_key(row), row.ident))
            return
        order = order_of(outcome.key)
        group = self.groups[order][1]
        group.remove(outcome.values, row.ident)
        if not group.rows:
            del self.groups[order]
            remove_sorted(self.group_order, order)
        self.touched.add(order)

    def _count(self, verdict: str, change: int) -> None:
        left = self.counts.get(verdict, 0) + change
        if left:
            self.counts[verdict] = left
        else:
            del self.counts[verdict]


def order_of(key: Sequence[Scalar]) -> _Order:
    """Return what groups are known and ordered by; true is not 1 there."""
    return tuple(map(ordered, key))
