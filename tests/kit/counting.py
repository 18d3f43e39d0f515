"""Work as a number of steps, so that growth can be tested without a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(action: Callable[[], object]) -> int:
    """Return how many functions *action* calls and how many lines of Python it runs.

    What one call of a C function does inside is not seen: a copy of a list counts as nothing.
    """
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "c_call"

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event in ("call", "line")
        return trace

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count


def growth(action: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how much more work ``action(2 * size)`` is than ``action(size)``: 2 where it is
    linear, 4 where it is quadratic. What *action* itself prepares is not counted."""
    once, twice = action(size), action(2 * size)
    # What is compiled or cached on first use is no part of the growth.
    once()
    return steps(twice) / steps(action(size))
