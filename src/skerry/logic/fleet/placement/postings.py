"""Sets of numbers by key, of which most hold one number.

A label that is unique, such as an edge's name, has as many values as there are things, and a bitmap
of one number takes some 200 bytes beside those that the heap loses around it. So one number is kept
as itself, and becomes a bitmap when a second one comes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from pyroaring import BitMap

K = TypeVar("K", bound=Hashable)


class Postings(Generic[K]):
    """For each key the numbers it has; a key without numbers is no key."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[K, BitMap | int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, key: K, number: int) -> None:
        """Give *key* one more number."""
        held = self._held.get(key)
        if held is None:
            self._held[key] = number
        elif isinstance(held, BitMap):
            held.add(number)
        elif held != number:
            self._held[key] = BitMap((held, number))

    def discard(self, key: K, number: int) -> bool:
        """Take a number from *key*; tells whether any is left."""
        held = self._held.get(key)
        if isinstance(held, BitMap):
            held.discard(number)
            if len(held) == 1:
                self._held[key] = held[0]
            return True
        if held == number:
            del self._held[key]
        return key in self._held

    def of(self, key: K) -> BitMap:
        """Return the numbers of *key*; not to be changed."""
        held = self._held.get(key)
        if isinstance(held, BitMap):
            return held
        return BitMap() if held is None else BitMap((held,))

    def union(self, keys: Iterable[K]) -> BitMap:
        """Return the numbers of any of *keys*; not to be changed."""
        held = [self._held[key] for key in keys if key in self._held]
        many = [each for each in held if isinstance(each, BitMap)]
        if len(many) == len(held) == 1:
            return many[0]
        single = BitMap([each for each in held if not isinstance(each, BitMap)])
        return BitMap.union(single, *many) if many else single
