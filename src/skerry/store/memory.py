"""The store in memory: the plain reference the others are compared with.

No threads and no timers, so a simulation over it is deterministic and runs under
virtual time. It is written to be obviously right: a range in the past is today's state with the
later events undone. Nothing survives the process, so "durable" means as long as the object lives.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Sequence
from itertools import islice

from skerry.store.base import (
    Compacted,
    Conflict,
    Entry,
    Event,
    Future,
    Page,
    Sizes,
    Unavailable,
    Write,
    sizes_of,
)
from skerry.store.batch import State, evaluate
from skerry.store.feed import BATCH, Feed, Watch
from skerry.store.keyspace import check_writes, prefix_end


class MemoryStore:
    """A ``Store`` of plain dictionaries and lists."""

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._state: State = {}
        self._keys: list[str] = []
        self._log: list[Event] = []
        self._newest = 1
        self._compacted = 0
        self._feed = Feed(self._newest)

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def revision_stride(self) -> int:
        return 1

    async def revision(self) -> int:
        self._check_open()
        return self._newest

    async def compacted(self) -> int:
        self._check_open()
        return self._compacted

    async def get(self, key: str) -> Entry | None:
        self._check_open()
        found = self._state.get(key)
        return Entry(key, found[1], found[0]) if found else None

    async def range(
        self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
    ) -> Page:
        self._check_open()
        at = self._newest if revision is None else revision
        self._check_kept(at)
        state, keys = self._at(prefix, at)
        start = max(bisect_right(keys, after), bisect_left(keys, prefix))
        stop = _end_of(keys, prefix)
        taken = keys[start : min(stop, start + limit) if limit else stop]
        remaining = max(stop - start - len(taken), 0)
        entries = [Entry(key, state[key][1], state[key][0]) for key in taken]
        return Page(entries, at, more=remaining > 0, remaining=remaining)

    async def sizes(
        self, prefix: str, *, after: str = "", limit: int, revision: int | None = None
    ) -> Sizes:
        return sizes_of(await self.range(prefix, after=after, limit=limit, revision=revision))

    async def count(self, prefix: str) -> int:
        self._check_open()
        return _end_of(self._keys, prefix) - bisect_left(self._keys, prefix)

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        check_writes(writes)
        self._check_open()
        (outcome,), events = evaluate(self._state, [writes], self._newest)
        if isinstance(outcome, Conflict):
            raise outcome
        for event in events:
            self._record(event)
        self._feed.publish(events)
        # Others get their turn, as they would while a disk is synced; a loop of commits that
        # never waited would starve them.
        await asyncio.sleep(0)
        return outcome

    async def check_writable(self) -> None:
        self._check_open()

    async def history(self, prefix: str, *, after: int, limit: int = 1000) -> list[Event]:
        self._check_open()
        self._check_kept(after)
        start = bisect_right(self._log, after, key=lambda event: event.revision)
        found = (event for event in self._log[start:] if event.key.startswith(prefix))
        return list(islice(found, limit))

    async def written(self, *, after: int, upto: int) -> Sequence[tuple[str, int]] | None:
        self._check_open()
        self._check_kept(after)
        return [(each.key, each.revision) for each in self._log if after < each.revision <= upto]

    def watch(self, prefix: str = "", *, after: int) -> AsyncIterator[Sequence[Event]]:
        return Watch(self._feed, prefix, after, admit=self._admit, replay=self._replay)

    async def compact(self, revision: int) -> None:
        self._check_open()
        if revision > self._newest:
            raise Future(revision, self._newest)
        if revision <= self._compacted:
            return
        self._compacted = revision
        del self._log[: bisect_right(self._log, revision, key=lambda event: event.revision)]

    async def adopt(self, identity: str, revision: int) -> None:
        """Begin a new history named *identity* at *revision* or later, the past compacted."""
        self._check_open()
        self._identity = identity
        self._newest = max(self._newest, revision)
        self._feed.restart(self._newest)
        await self.compact(self._newest)

    async def close(self) -> None:
        self._feed.close(Unavailable("the store is closed"))

    def _record(self, event: Event) -> None:
        self._newest = event.revision
        self._log.append(event)
        if event.previous_revision == 0:
            insort(self._keys, event.key)
        elif event.value is None:
            del self._keys[bisect_left(self._keys, event.key)]

    def _at(self, prefix: str, revision: int) -> tuple[State, list[str]]:
        """Return the state as it was at *revision*, and its keys in order."""
        if revision == self._newest:
            return self._state, self._keys
        state = dict(self._state)
        for event in reversed(self._log):
            if event.revision <= revision:
                break
            if event.previous is None:
                del state[event.key]
            else:
                state[event.key] = (event.previous_revision, event.previous)
        return state, sorted(key for key in state if key.startswith(prefix))

    async def _admit(self, after: int) -> None:
        self._check_open()
        self._check_kept(after)

    async def _replay(self, prefix: str, position: int) -> tuple[list[Event], int]:
        newest = self._newest
        events = await self.history(prefix, after=position, limit=BATCH)
        return events, events[-1].revision if len(events) == BATCH else newest

    def _check_kept(self, revision: int) -> None:
        if revision < self._compacted:
            raise Compacted(revision, self._compacted)
        if revision > self._newest:
            raise Future(revision, self._newest)

    def _check_open(self) -> None:
        if self._feed.closed is not None:
            raise Unavailable("the store is closed")


def _end_of(keys: list[str], prefix: str) -> int:
    """Return the index after the last of the sorted *keys* that starts with *prefix*."""
    end = prefix_end(prefix)
    return len(keys) if end is None else bisect_left(keys, end)
