"""Remembering what was worked out for a text that clients choose.

A cache that is bounded by entries alone holds as much as its entries are long: a few thousand
names of a megabyte fill the memory. Text beyond a length is nobody's habit and is worked out each
time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

# Names, selectors and media types that recur are far shorter.
SHORT = 256


def short_text_cache(
    maxsize: int, limit: int = SHORT
) -> Callable[[Callable[[str], R]], Callable[[str], R]]:
    """Return a decorator that keeps the results for the last *maxsize* texts of at most *limit*
    characters."""

    def decorate(function: Callable[[str], R]) -> Callable[[str], R]:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def call(text: str) -> R:
            return cached(text) if len(text) <= limit else function(text)

        return call

    return decorate


class WeightedCache(Generic[K, R]):
    """What was worked out last, up to a total weight; each entry says its own.

    One entry is kept however heavy it is: who works something out uses it at least once.
    """

    def __init__(self, max_weight: int) -> None:
        self._max_weight = max_weight
        self._weight = 0
        self._kept: OrderedDict[K, tuple[R, int]] = OrderedDict()

    def get(self, key: K) -> R | None:
        """Return what is kept for *key*."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: K, value: R, weight: int) -> None:
        """Keep *value*, and let go of the least used that no longer fit."""
        before = self._kept.pop(key, None)
        self._weight += weight - (before[1] if before is not None else 0)
        self._kept[key] = (value, weight)
        while self._weight > self._max_weight and len(self._kept) > 1:
            _, (_, lost) = self._kept.popitem(last=False)
            self._weight -= lost

    def __len__(self) -> int:
        return len(self._kept)
