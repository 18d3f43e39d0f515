"""Enqueue a key no more often than its pace allows.

A key observed a moment ago waits its turn, and whatever is reported meanwhile is in the next
observation. So a thousand reports cost a handful of writes.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from skerry.kit.clock import Clock
from skerry.runtime.workqueue import WorkQueue

# Twice a second looks immediate to a person and bounds what a storm of reports can cost.
MIN_INTERVAL_SECONDS = 0.5
# Beyond this many remembered keys, those that no longer hold anybody back are forgotten.
_REMEMBERED = 10_000

K = TypeVar("K", bound=tuple[object, ...])


class Pace(Generic[K]):
    """Adds keys to a queue so that each is observed no more often than the interval allows."""

    def __init__(
        self, queue: WorkQueue[K], clock: Clock, seconds: float = MIN_INTERVAL_SECONDS
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._seconds = seconds
        self._observed: dict[K, float] = {}

    def enqueue(self, key: K) -> None:
        """Have *key* observed as soon as its pace allows."""
        last = self._observed.get(key)
        due = 0.0 if last is None else last + self._seconds - self._clock.monotonic()
        self._queue.add_after(key, due)

    def observing(self, key: K) -> None:
        """Note that *key* is being observed now."""
        now = self._clock.monotonic()
        if len(self._observed) >= _REMEMBERED:
            recent = now - self._seconds
            self._observed = {k: when for k, when in self._observed.items() if when > recent}
        self._observed[key] = now
