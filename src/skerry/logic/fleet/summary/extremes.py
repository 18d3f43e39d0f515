"""The least and the most of values that come and go.

Two heaps of distinct values and a count of each. A value that has gone stays in the heaps until
it would be the answer, so adding and removing cost O(log n); heaps that are mostly such leftovers
are rebuilt, so memory stays within a factor of what is there.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

# Rebuilding smaller heaps would cost more than their leftovers do.
_SMALL = 32


class Ordered(Protocol):
    """What can be compared with its like."""

    def __lt__(self, other: Any, /) -> bool: ...

    def __hash__(self) -> int: ...


T = TypeVar("T", bound=Ordered)


class _Reversed(Generic[T]):
    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __lt__(self, other: _Reversed[T]) -> bool:
        return other.value < self.value


class Extremes(Generic[T]):
    """A bag of values that knows its least and most."""

    __slots__ = ("_counts", "_least", "_most")

    def __init__(self) -> None:
        self._counts: dict[T, int] = {}
        self._least: list[T] = []
        self._most: list[_Reversed[T]] = []

    def __bool__(self) -> bool:
        """Tell whether there is any value."""
        return bool(self._counts)

    def add(self, value: T) -> None:
        count = self._counts.get(value, 0)
        self._counts[value] = count + 1
        if not count:
            heappush(self._least, value)
            heappush(self._most, _Reversed(value))
            self._tidy()

    def remove(self, value: T) -> None:
        """Take out one of what was added; KeyError when there is none."""
        count = self._counts[value]
        if count > 1:
            self._counts[value] = count - 1
        else:
            del self._counts[value]

    def least(self) -> T:
        """Return the least value; there must be one."""
        while self._least[0] not in self._counts:
            heappop(self._least)
        return self._least[0]

    def most(self) -> T:
        """Return the greatest value; there must be one."""
        while self._most[0].value not in self._counts:
            heappop(self._most)
        return self._most[0].value

    def _tidy(self) -> None:
        bound = 2 * len(self._counts) + _SMALL
        if len(self._least) > bound:
            self._least = list(self._counts)
            heapify(self._least)
        if len(self._most) > bound:
            self._most = [_Reversed(value) for value in self._counts]
            heapify(self._most)
