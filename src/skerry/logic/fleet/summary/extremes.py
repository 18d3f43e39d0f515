"""The minimum and the maximum of values that come and go.

A count of each value, and the distinct values in order. Adding and removing cost a binary search
and, where a value is the first or the last of its kind, a memory move of eight bytes a value: at
ten thousand distinct values a microsecond or two. (Two heaps with leftovers were measured: slower,
because comparing from the top needs Python code, and six times the memory.)
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Generic, TypeVar

from skerry.logic.fleet.tables.table import Ordered

T = TypeVar("T", bound=Ordered)


class Extremes(Generic[T]):
    """A bag of values that knows its minimum and maximum."""

    __slots__ = ("_counts", "_order")

    def __init__(self) -> None:
        self._counts: dict[T, int] = {}
        self._order: list[T] = []

    def __bool__(self) -> bool:
        """Tell whether there is any value."""
        return bool(self._counts)

    def __len__(self) -> int:
        """Return how many values there are; takes as long as there are different ones."""
        return sum(self._counts.values())

    def add(self, value: T) -> None:
        count = self._counts.get(value)
        if count is None:
            self._counts[value] = 1
            insort(self._order, value)
        else:
            self._counts[value] = count + 1

    def remove(self, value: T) -> None:
        """Take out one of what was added; KeyError when there is none."""
        count = self._counts[value]
        if count > 1:
            self._counts[value] = count - 1
        else:
            del self._counts[value]
            del self._order[bisect_left(self._order, value)]

    def min(self) -> T:
        """Return the smallest value; there must be one."""
        return self._order[0]

    def max(self) -> T:
        """Return the greatest value; there must be one."""
        return self._order[-1]
