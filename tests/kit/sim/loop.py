"""An event loop in virtual time: waiting is free, order is fixed, and a deadlock is an error.

Whenever nothing is ready to run, time jumps to the next timer. So an hour of back-off takes no
time, two runs of one seed take the same steps, and code that waits for what can never happen is
found at once instead of hanging.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Deadlock(Exception):
    """Everything waits and no timer is set."""


class _Selector(selectors.SelectSelector):
    """Never sleeps: the time it is asked to wait is added to the loop's clock instead."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        if not found:
            if timeout is None:
                raise Deadlock("every task waits and no timer is set")
            self.loop.advance(timeout)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time moves only when nothing is left to do."""

    def __init__(self) -> None:
        self._now = 0.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        # A hair more, or rounding could leave the next timer just out of reach for ever.
        self._now += seconds + 1e-9 if seconds > 0 else 0.0


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run *coroutine* to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


def virtual(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make an async test run in virtual time; goes below Hypothesis' ``given``."""

    @functools.wraps(test)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_virtual(test(*args, **kwargs))

    return wrapped
