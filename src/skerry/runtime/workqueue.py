"""A queue of keys that need attention.

* A key waiting is there once, however often it is added.
* A key being worked on is not handed out again before ``done``; added meanwhile, it waits again
  afterwards, so no change is missed and no key is worked on twice at once.
* ``add_after`` keeps the earliest of several times.
* ``retry`` adds after a delay that doubles with each failure of that key until ``forget``.
* Fair: keys come out in the order they were first added.
* Bounded: more distinct keys than ``capacity`` is a loss of control, and stops loudly.

Timers are the running loop's, so a loop in virtual time makes every wait exact and free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from skerry.kit.ids import IdSource
from skerry.runtime.backoff import Backoff
from skerry.runtime.metrics import RuntimeMetrics

K = TypeVar("K", bound=Hashable)

# Twice the objects one server is designed for; each waiting key costs some hundred bytes.
CAPACITY = 2_000_000


class QueueFull(Exception):
    """More distinct keys wait than the queue was ever meant to hold."""


@dataclass(slots=True)
class _Later:
    handle: asyncio.TimerHandle
    due: float


class WorkQueue(Generic[K]):
    """See the module's text for what is promised."""

    def __init__(
        self,
        name: str,
        *,
        backoff: Backoff = Backoff(),  # noqa: B008 - frozen
        ids: IdSource | None = None,
        metrics: RuntimeMetrics | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        self.name = name
        self._backoff = backoff
        self._ids = ids
        self._capacity = capacity
        self._waiting: deque[K] = deque()
        self._added: dict[K, float] = {}  # waiting or to be added again, with the time of adding
        self._working: dict[K, float] = {}
        self._later: dict[K, _Later] = {}
        self._failures: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._quiet = asyncio.Event()
        self._quiet.set()
        counted = metrics or RuntimeMetrics()
        self._depth = counted.depth.labels(name)
        self._adds = counted.adds.labels(name)
        self._retries = counted.retries.labels(name)
        self._waited = counted.waited.labels(name)
        self._worked = counted.worked.labels(name)

    def __len__(self) -> int:
        """Return how many keys wait to be handed out now."""
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._later)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is being worked on; delayed keys do not count."""
        return not self._added and not self._working

    async def wait_idle(self) -> None:
        """Wait until nothing waits and nothing is being worked on."""
        while not self.idle:
            self._quiet.clear()
            await self._quiet.wait()

    def add(self, key: K) -> None:
        """Have *key* worked on soon."""
        if key in self._added:
            return
        if len(self._added) >= self._capacity:
            raise QueueFull(f"queue {self.name!r}: over {self._capacity} keys wait")
        self._added[key] = asyncio.get_running_loop().time()
        self._adds.inc()
        if key not in self._working:
            self._enqueue(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Have *key* worked on after *seconds*, or earlier when that was already wanted."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        known = self._later.get(key)
        if known is not None:
            if known.due <= due:
                return
            known.handle.cancel()
        elif len(self._later) >= self._capacity:
            raise QueueFull(f"queue {self.name!r}: over {self._capacity} keys are delayed")
        self._later[key] = _Later(loop.call_at(due, self._come, key), due)

    def hasten(self) -> None:
        """Have every delayed key worked on soon: what it waits for may have come about."""
        later, self._later = self._later, {}
        for key, waiting in later.items():
            waiting.handle.cancel()
            self.add(key)

    def retry(self, key: K) -> float:
        """Have *key* worked on again after its failure; returns the delay in seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.seconds(failures, self._ids)
        self._retries.inc()
        self.add_after(key, delay)
        return delay

    def failures(self, key: K) -> int:
        """Return how often *key* has failed since it was last forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Let the next failure of *key* count as its first."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Return the next key, when there is one; ``done`` must follow."""
        while not self._waiting:
            await self._arrival()
        key = self._waiting.popleft()
        now = asyncio.get_running_loop().time()
        self._waited.observe(now - self._added.pop(key))
        self._working[key] = now
        self._depth.set(len(self._waiting))
        return key

    def done(self, key: K) -> None:
        """Say that work on *key* has ended, well or not."""
        began = self._working.pop(key)
        self._worked.observe(asyncio.get_running_loop().time() - began)
        if key in self._added:
            self._enqueue(key)
        elif self.idle:
            self._quiet.set()

    def _come(self, key: K) -> None:
        del self._later[key]
        self.add(key)

    def _enqueue(self, key: K) -> None:
        self._waiting.append(key)
        self._depth.set(len(self._waiting))
        self._notify_one()

    def _notify_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    async def _arrival(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if getter.done() and not getter.cancelled() and self._waiting:
                self._notify_one()  # we were called but leave; somebody else must answer
            raise
