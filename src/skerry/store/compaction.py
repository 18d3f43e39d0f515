"""When to forget: how long and how much history is kept.

A client that lost its connection resumes within minutes or lists again anyway, so history is
kept for some minutes, and less when very much happens. The newest revision is noted at each
turn; what was newest long enough ago may go. Several servers over one etcd may all do this: the
first compacts, for the others there is nothing left to do.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, runtime_checkable

from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.store.base import Store, Unavailable

log = Logger("store")


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """How much history to keep."""

    keep: timedelta = timedelta(minutes=5)
    """How long a past revision can be read and watched from; Kubernetes' own five minutes."""

    most_revisions: int = 1_000_000
    """Keep no more than this many commits however young; bounds the disk used by a storm."""

    interval: timedelta = timedelta(seconds=30)
    """How often to look; the age of what is dropped is exact to this much."""


@runtime_checkable
class Strided(Protocol):
    """A store whose revisions grow by more than one with each commit, as etcd's do."""

    @property
    def revision_stride(self) -> int: ...


class Compaction:
    """Remembers when which revision was newest, and says what may go."""

    def __init__(self, policy: CompactionPolicy, *, stride: int = 1) -> None:
        self._policy = policy
        self._stride = stride
        self._noted: deque[tuple[float, int]] = deque()
        self._old = 0

    def due(self, seconds: float, newest: int) -> int:
        """Note that *newest* is the newest revision at *seconds*; return what may be compacted.

        0 means nothing. The bound on revisions wins over the age.
        """
        self._noted.append((seconds, newest))
        horizon = seconds - self._policy.keep.total_seconds()
        while self._noted and self._noted[0][0] <= horizon:
            self._old = self._noted.popleft()[1]
        return max(self._old, newest - self._policy.most_revisions * self._stride, 0)


async def run(store: Store, policy: CompactionPolicy, clock: Clock) -> None:
    """Compact *store* by *policy* until cancelled; a store out of reach is tried again later."""
    stride = store.revision_stride if isinstance(store, Strided) else 1
    compaction = Compaction(policy, stride=stride)
    while True:
        try:
            await _turn(store, compaction, clock)
        except Unavailable as error:
            log.warning("compaction failed; will retry", error=error)
        await clock.sleep(policy.interval.total_seconds())


async def _turn(store: Store, compaction: Compaction, clock: Clock) -> None:
    newest = await store.revision()
    due = compaction.due(clock.monotonic(), newest)
    if due and due > await store.compacted():
        await store.compact(due)
        log.info("history compacted", v=2, rv=due)
