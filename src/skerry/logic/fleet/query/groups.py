"""``groups``: what the rows of a group come to, kept up as rows come and go.

Everything here can be taken out again exactly: counts, sums in whole numbers (a double is a whole
number of 2^-1074, so adding doubles that way loses nothing), bags in order. A group without rows
holds nothing.

Exactness is not for the sake of the last digit. With ordinary doubles, 1e16 + 0.1 - 1e16 is 0: one
edge that reports nonsense once would spoil the sum of its group for good; and a sum that depends on
the order of events would be another one after a restart, and a status would change though nothing
had. Minimum and maximum forget nothing either: a bag is kept, since the second smallest value must
be at hand when the smallest goes.

A Top keeps every value and not only the *k* that are shown, for the same reason. That is what it
costs beside a maximum; ``tables.memory_of`` counts it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, Protocol

from skerry.logic.fleet.query.plan import Aggregate
from skerry.logic.fleet.query.rows import Ident
from skerry.logic.fleet.query.sketch import Percentiles
from skerry.logic.fleet.query.values import Number
from skerry.logic.fleet.summary.extremes import Extremes

# The exponent of the smallest double there is.
_SCALE: Final = 1074


class ExactSum:
    """A sum of numbers, and how many they are."""

    __slots__ = ("_scaled", "_whole", "number")

    def __init__(self) -> None:
        self._whole = 0
        self._scaled = 0
        self.number = 0

    def __bool__(self) -> bool:
        return bool(self.number or self._whole or self._scaled)

    def add(self, value: Number) -> None:
        self._change(value, 1)

    def remove(self, value: Number) -> None:
        self._change(value, -1)

    def _change(self, value: Number, sign: int) -> None:
        self.number += sign
        if isinstance(value, int):
            self._whole += sign * value
        else:
            numerator, denominator = value.as_integer_ratio()
            self._scaled += sign * (numerator << (_SCALE + 1 - denominator.bit_length()))

    def total(self) -> Fraction:
        """Return the sum, exact."""
        return Fraction(self._scaled, 1 << _SCALE) + self._whole


def plain(value: Fraction) -> Number:
    """Return an exact number as a whole number if it is one, else as the nearest double."""
    if value.denominator == 1:
        return value.numerator
    try:
        return float(value)
    except OverflowError:
        return round(value)


class Column(Protocol):
    """One aggregate of one group.

    ``remove`` undoes one ``add`` of the same value, in whatever order they come; a column from
    which everything was taken out is as it was when it was made.
    """

    def add(self, value: Number, ident: Ident) -> None: ...

    def remove(self, value: Number, ident: Ident) -> None: ...

    def value(self) -> Any:
        """Return what the group comes to; None when it has no value. Of a Top, the rows."""

    def __bool__(self) -> bool:
        """Tell whether anything is held."""


class SumColumn:
    __slots__ = ("_sum",)

    def __init__(self, _: Aggregate) -> None:
        self._sum = ExactSum()

    def __bool__(self) -> bool:
        return bool(self._sum)

    def add(self, value: Number, _: Ident) -> None:
        self._sum.add(value)

    def remove(self, value: Number, _: Ident) -> None:
        self._sum.remove(value)

    def value(self) -> Any:
        return plain(self._sum.total()) if self._sum.number else None


class AvgColumn(SumColumn):
    __slots__ = ()

    def value(self) -> Any:
        """Return the sum over the number of values present: a row without one counts for none."""
        number = self._sum.number
        return plain(self._sum.total() / number) if number else None


class MinColumn:
    __slots__ = ("_values",)

    def __init__(self, _: Aggregate) -> None:
        self._values: Extremes[Number] = Extremes()

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, value: Number, _: Ident) -> None:
        self._values.add(value)

    def remove(self, value: Number, _: Ident) -> None:
        self._values.remove(value)

    def value(self) -> Any:
        return self._values.min() if self._values else None


class MaxColumn(MinColumn):
    __slots__ = ()

    def value(self) -> Any:
        return self._values.max() if self._values else None


class PercentileColumn:
    __slots__ = ("_at", "_values")

    def __init__(self, aggregate: Aggregate) -> None:
        self._at = aggregate.percentile
        self._values = Percentiles()

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def approximate(self) -> bool:
        return self._values.approximate

    def add(self, value: Number, _: Ident) -> None:
        self._values.add(value)

    def remove(self, value: Number, _: Ident) -> None:
        self._values.remove(value)

    def value(self) -> Any:
        return self._values.at(self._at)


class TopColumn:
    """The rows of the greatest values, in order of value and then of row.

    Values are kept negated: one ascending order then has the greatest value first and, among equal
    ones, the first row.
    """

    __slots__ = ("_k", "_order")

    def __init__(self, aggregate: Aggregate) -> None:
        self._k = aggregate.k
        self._order: list[tuple[Number, Ident]] = []

    def __bool__(self) -> bool:
        return bool(self._order)

    def add(self, value: Number, ident: Ident) -> None:
        insort(self._order, (-value, ident))

    def remove(self, value: Number, ident: Ident) -> None:
        remove_sorted(self._order, (-value, ident))

    def value(self) -> Any:
        return [(-value, ident) for value, ident in self._order[: self._k]]


def remove_sorted(order: list[Any], entry: Any) -> None:
    """Take an entry out of a sorted list; KeyError when it is not there."""
    at = bisect_left(order, entry)
    if at == len(order) or order[at] != entry:
        raise KeyError(entry)
    del order[at]


_COLUMNS: Final[dict[str, Callable[[Aggregate], Column]]] = {
    "Sum": SumColumn,
    "Avg": AvgColumn,
    "Min": MinColumn,
    "Max": MaxColumn,
    "Percentile": PercentileColumn,
    "Top": TopColumn,
}


class Group:
    """The rows that share a key."""

    __slots__ = ("columns", "rows")

    def __init__(self, aggregates: tuple[Aggregate, ...]) -> None:
        self.rows = 0
        # None for Count: that is how many rows there are.
        self.columns = [
            None if each.function == "Count" else _COLUMNS[each.function](each)
            for each in aggregates
        ]

    def __bool__(self) -> bool:
        return bool(self.rows) or any(self.columns)

    def add(self, values: tuple[Number | None, ...], ident: Ident) -> None:
        self.rows += 1
        for column, value in zip(self.columns, values, strict=True):
            if column is not None and value is not None:
                column.add(value, ident)

    def remove(self, values: tuple[Number | None, ...], ident: Ident) -> None:
        self.rows -= 1
        for column, value in zip(self.columns, values, strict=True):
            if column is not None and value is not None:
                column.remove(value, ident)

    def values(self) -> list[Any]:
        """Return what the group comes to, column by column."""
        return [self.rows if column is None else column.value() for column in self.columns]

    def approximate(self) -> list[bool]:
        """Return which of them are not exact."""
        return [isinstance(each, PercentileColumn) and each.approximate for each in self.columns]
