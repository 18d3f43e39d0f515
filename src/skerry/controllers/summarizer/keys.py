"""What is watched, and which summary each event wakes.

Handlers tell the ledger what they see; the ledger says which summaries that touches. Those are
woken at a bounded pace: a summary looked at a moment ago waits its turn, and whatever is reported
meanwhile is in the next look. So a thousand reports cost a handful of writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from skerry.api.kinds import GroupVersionResource
from skerry.kit.clock import Clock
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS
from skerry.runtime.workqueue import WorkQueue

NAME = "summarizer"

WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
API_BINDINGS = GroupVersionResource(BINDINGS.group, "v1alpha1", BINDINGS.resource)
API_DEFINITIONS = GroupVersionResource(DEFINITIONS.group, "v1", DEFINITIONS.resource)

# Twice a second looks immediate to a person and bounds what a storm of reports can cost.
SHORTEST_INTERVAL_SECONDS = 0.5
# Beyond this many remembered looks, those that no longer hold anybody back are forgotten.
_REMEMBERED = 10_000

K = TypeVar("K", bound=tuple[object, ...])


class Pace(Generic[K]):
    """Adds keys to a queue so that each is looked at no more often than the interval allows."""

    def __init__(
        self, queue: WorkQueue[K], clock: Clock, seconds: float = SHORTEST_INTERVAL_SECONDS
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._seconds = seconds
        self._looked: dict[K, float] = {}

    def wake(self, key: K) -> None:
        """Have *key* looked at as soon as its pace allows."""
        last = self._looked.get(key)
        due = 0.0 if last is None else last + self._seconds - self._clock.monotonic()
        self._queue.add_after(key, due)

    def looking(self, key: K) -> None:
        """Note that *key* is being looked at now."""
        now = self._clock.monotonic()
        if len(self._looked) >= _REMEMBERED:
            recent = now - self._seconds
            self._looked = {k: when for k, when in self._looked.items() if when > recent}
        self._looked[key] = now


Wake = Callable[[K], None]
