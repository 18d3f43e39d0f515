"""When to forget: how long and how much history is kept.

A client that lost its connection resumes within minutes or lists again anyway, so history is
kept for some minutes, and less when very much happens. The newest revision is noted at each
turn; what was newest long enough ago may go. Several servers over one etcd may all do this: the
first compacts, for the others there is nothing left to do.

A few large objects that are written again and again fill a disk long before there are many
revisions. So bytes are bounded too, by counting what the server sees of the store's events; past
the bound the next turn does not wait for its time. What was written before the server started is
not counted and goes by its age.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.store.base import Event, Store, Unavailable

log = Logger("store")

# History is counted in this many parts, so that a storm causes one compaction for each of them
# and not one for each write.
_PARTS = 16


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """How much history to keep."""

    keep: timedelta = timedelta(minutes=5)
    """How long a past revision can be read and watched from; Kubernetes' own five minutes."""

    max_revisions: int = 1_000_000
    """Keep no more than this many commits however young; bounds the disk used by a storm."""

    max_bytes: int = 1 << 30
    """Keep no more than this many bytes of keys and values however young; 0 is no limit."""

    interval: timedelta = timedelta(seconds=30)
    """How often to look; the age of what is dropped is exact to this much."""


class HistoryBytes:
    """Counts the bytes of events, and tells up to which revision they exceed a maximum.

    What is kept stays below the maximum and one part of it more.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._part_bytes = max(max_bytes // _PARTS, 1)
        # The last revision and the bytes of each full part; the newest part is still being filled.
        self._parts: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._filling = 0
        self.excess = 0
        """The newest revision that the maximum leaves no room for; 0 while there is room."""
        self.exceeded = asyncio.Event()
        """Set whenever ``excess`` rises; whoever compacts clears it."""

    def add(self, event: Event) -> None:
        """Count one event; they come in the order of their revisions."""
        if not self._max_bytes:
            return
        self._filling += len(event.key) + len(event.value or b"")
        if self._filling < self._part_bytes:
            return
        self._parts.append((event.revision, self._filling))
        self._bytes += self._filling
        self._filling = 0
        while self._bytes > self._max_bytes:
            self.excess, size = self._parts.popleft()
            self._bytes -= size
            self.exceeded.set()


class Compaction:
    """Remembers when which revision was newest, and says what may go."""

    def __init__(self, policy: CompactionPolicy, *, stride: int = 1) -> None:
        self._policy = policy
        self._stride = stride
        self._noted: deque[tuple[float, int]] = deque()
        self._old = 0

    def due(self, seconds: float, newest: int, excess: int = 0) -> int:
        """Note that *newest* is the newest revision at *seconds*; return what may be compacted.

        0 means nothing. The bound on revisions and the *excess* of bytes win over the age.
        """
        self._noted.append((seconds, newest))
        horizon = seconds - self._policy.keep.total_seconds()
        while self._noted and self._noted[0][0] <= horizon:
            self._old = self._noted.popleft()[1]
        return max(self._old, newest - self._policy.max_revisions * self._stride, excess)


async def run(store: Store, policy: CompactionPolicy, clock: Clock, history: HistoryBytes) -> None:
    """Compact *store* by *policy* until cancelled; a store out of reach is tried again later.

    *history* gets the store's events from somebody else.
    """
    compaction = Compaction(policy, stride=store.revision_stride)
    while True:
        history.exceeded.clear()
        try:
            await _turn(store, compaction, clock, history.excess)
        except Unavailable as error:
            log.warning("compaction failed; will retry", error=error)
            await clock.sleep(policy.interval.total_seconds())
            continue
        await _pause(clock, policy.interval.total_seconds(), history.exceeded)


async def _turn(store: Store, compaction: Compaction, clock: Clock, excess: int) -> None:
    newest = await store.revision()
    due = compaction.due(clock.monotonic(), newest, excess)
    if due and due > await store.compacted():
        await store.compact(due)
        log.info("history compacted", v=2, rv=due)


async def _pause(clock: Clock, seconds: float, event: asyncio.Event) -> None:
    """Wait for *event*, and for *seconds* at the most."""
    async with asyncio.TaskGroup() as tasks:
        waiting: list[asyncio.Task[Any]] = [
            tasks.create_task(clock.sleep(seconds)),
            tasks.create_task(event.wait()),
        ]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
