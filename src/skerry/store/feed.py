"""Watching: a bounded ring of recent events, and watchers that fall back to history.

A watcher owns nothing but its position, the revision it has seen everything up to. While the
position lies inside the ring it reads from there; a watcher too slow for the ring, or one that
starts in the past, reads pages of ``history`` until it has caught up. So no watcher, however
slow, makes the store keep anything for it, and going from history to live is only a comparison
of two revisions: nothing can be lost or seen twice between them.

Waiting watchers are grouped by prefix. A batch that has nothing for a prefix does not notify its
watchers; when one is notified later it gets the newest revision before that batch, since
everything up to there is known not to concern it. Without that, a watcher of a quiet prefix
would drop out of the ring for nothing.

Everything here belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from operator import attrgetter

from skerry.store.base import Event, Unavailable

# Events handed to a watcher at once: bounds what a slow one holds while it works.
BATCH = 1000
# Seconds of a busy store; beyond that, reading the log is cheap against the lag. Every server has
# one, and fills it in time however idle it is.
RING_EVENTS = 5_000
RING_BYTES = 4 << 20

_revision = attrgetter("revision")


class Feed:
    """Recent events in memory: every one above ``oldest``, up to ``newest``."""

    def __init__(
        self, newest: int, *, max_events: int = RING_EVENTS, max_bytes: int = RING_BYTES
    ) -> None:
        self.oldest = newest
        self.newest = newest
        self.closed: Unavailable | None = None
        self._events: list[Event] = []
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._waiting: dict[str, set[asyncio.Future[int]]] = {}

    def publish(self, events: Sequence[Event], newest: int | None = None) -> None:
        """Append *events*, which follow what is there, and notify whom they concern.

        *newest* says how far the caller knows the history to be complete, where that is beyond
        the last event.
        """
        before = self.newest
        if events:
            self._events.extend(events)
            self._bytes += sum(map(_weight, events))
            self.newest = events[-1].revision
            self._trim()
        if newest is not None and newest > self.newest:
            self.newest = newest
        if events and self._waiting:
            self._notify(events, before)

    def after(self, position: int) -> list[Event]:
        """Return the next events above *position*, which must not lie below ``oldest``."""
        start = bisect_right(self._events, position, key=_revision)
        return self._events[start : start + BATCH]

    async def next(self, prefix: str) -> int:
        """Wait for an event below *prefix*; return the newest revision before its batch.

        A wait begins only by a watcher that has seen everything up to ``newest``.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(prefix, set()).add(future)
        try:
            return await future
        finally:
            self._forget(prefix, future)

    def restart(self, newest: int) -> None:
        """Drop all events and go on at *newest*; watchers behind it turn to history."""
        self._events.clear()
        self._bytes = 0
        self.oldest = self.newest = newest
        # Whoever waits may have missed what was dropped, so they all have to look.
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_result(0)
        self._waiting.clear()

    def close(self, error: Unavailable) -> None:
        """End every watch with *error*, now and from now on."""
        self.closed = error
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(Unavailable(*error.args))
        self._waiting.clear()

    def _notify(self, events: Sequence[Event], before: int) -> None:
        keys = [event.key for event in events]
        for prefix in [p for p in self._waiting if any(key.startswith(p) for key in keys)]:
            for future in self._waiting.pop(prefix):
                if not future.done():
                    future.set_result(before)

    def _forget(self, prefix: str, future: asyncio.Future[int]) -> None:
        futures = self._waiting.get(prefix)
        if futures is not None:
            futures.discard(future)
            if not futures:
                del self._waiting[prefix]

    def _trim(self) -> None:
        """Cut the ring to its bounds, a quarter at a time so that the cost is shared."""
        events = self._events
        if len(events) <= self._max_events and self._bytes <= self._max_bytes:
            return
        drop = 0
        while drop < len(events) and (
            len(events) - drop > self._max_events * 3 // 4 or self._bytes > self._max_bytes * 3 // 4
        ):
            self._bytes -= _weight(events[drop])
            drop += 1
        self.oldest = events[drop - 1].revision
        del events[:drop]


def _weight(event: Event) -> int:
    return 200 + len(event.key) + len(event.value or b"") + len(event.previous or b"")


# Reads history above a position: the events, and the revision up to which that is complete.
Replay = Callable[[str, int], Awaitable[tuple[list[Event], int]]]
# Raises when watching from a revision is not possible.
Admit = Callable[[int], Awaitable[None]]


class Watch(AsyncIterator[Sequence[Event]]):
    """One watcher: history until it has caught up, then live, for ever.

    A plain iterator rather than a generator: an abandoned one leaves nothing to finalize.
    """

    def __init__(
        self, feed: Feed, prefix: str, after: int, *, admit: Admit, replay: Replay
    ) -> None:
        self._feed = feed
        self._prefix = prefix
        self._position = after
        self._admit: Admit | None = admit
        self._replay = replay

    async def __anext__(self) -> Sequence[Event]:
        if self._admit is not None:
            await self._admit(self._position)
            self._admit = None
        while True:
            events = await self._step()
            if events:
                return events

    async def _step(self) -> list[Event]:
        feed = self._feed
        if feed.closed is not None:
            raise Unavailable(*feed.closed.args)
        if self._position < feed.oldest:
            events, self._position = await self._replay(self._prefix, self._position)
            return events
        recent = feed.after(self._position)
        if not recent:
            self._position = max(self._position, await feed.next(self._prefix))
            return []
        self._position = recent[-1].revision
        return [event for event in recent if event.key.startswith(self._prefix)]
