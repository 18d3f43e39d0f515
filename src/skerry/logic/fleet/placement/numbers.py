"""Small numbers for things, used again when things go, so that bitmaps stay dense."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Numbers(Generic[T]):
    """A two-way table of things and their numbers."""

    __slots__ = ("_free", "_items", "_numbers")

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self._items: list[T | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[T]:
        return iter(self._numbers)

    def get(self, item: T) -> int | None:
        """Return the number of *item*; None when it has none."""
        return self._numbers.get(item)

    def add(self, item: T) -> int:
        """Return the number of *item*, the lowest free one if it had none."""
        number = self._numbers.get(item)
        if number is not None:
            return number
        if self._free:
            number = heappop(self._free)
            self._items[number] = item
        else:
            number = len(self._items)
            self._items.append(item)
        self._numbers[item] = number
        return number

    def item(self, number: int) -> T:
        """Return what has *number*."""
        item = self._items[number]
        if item is None:
            raise LookupError(f"number {number} is free")
        return item

    def remove(self, number: int) -> None:
        """Free *number*."""
        del self._numbers[self.item(number)]
        self._items[number] = None
        heappush(self._free, number)
