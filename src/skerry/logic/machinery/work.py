"""How much work a pure function may do before whoever called it must decide anew.

Validation runs on the event loop, where a few milliseconds are all there is for one request. What
an object costs is known only while it is being judged, so the costly parts (validation rules,
patterns, compiling them) *spend* units as they go, and beyond what is allowed they stop with
``LongWork``. The caller then starts over where there is more time, in another process; results do
not depend on where they are worked out.

A unit is about a tenth of a microsecond: a step of an expression, a few bytes read. Without a
limit around it, spending costs a look at a variable and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeVar

R = TypeVar("R")


class LongWork(Exception):
    """More units would have been spent than are allowed here."""


class Work:
    """What may still be spent."""

    __slots__ = ("left",)

    def __init__(self, units: float) -> None:
        self.left = units


_PRESENT: Final[ContextVar[Work | None]] = ContextVar("work", default=None)


def limited(units: float, function: Callable[[], R]) -> R:
    """Return what *function* does within *units*; raises ``LongWork`` when they do not suffice."""
    token = _PRESENT.set(Work(units))
    try:
        return function()
    finally:
        _PRESENT.reset(token)


def spend(units: float) -> None:
    """Note that *units* of work were done, or are about to be."""
    work = _PRESENT.get()
    if work is not None:
        work.left -= units
        if work.left < 0:
            raise LongWork


def left(limit: float) -> float:
    """Return how much may still be spent, at most *limit*."""
    work = _PRESENT.get()
    return limit if work is None or work.left > limit else work.left
