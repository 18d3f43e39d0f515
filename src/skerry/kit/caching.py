"""Remembering what was worked out for a text that clients choose.

A cache that is bounded by entries alone holds as much as its entries are long: a few thousand
names of a megabyte fill the memory. Text beyond a length is nobody's habit and is worked out each
time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

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
