"""Events out of etcd: one live stream for the whole store, and replays of the past.

All keys are watched together, never a part of them: only so is the place of a delete among the
events of its revision known, which is its position. Every transaction rewrites ``meta/last``, so
its event marks the end of each revision that carries data; a replay is complete when it has seen
that of the revision it goes up to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing

from skerry.kit.clock import Clock
from skerry.kit.invariant import invariant
from skerry.kit.log import Logger
from skerry.store import etcd_messages as messages
from skerry.store.base import Compacted, Event, Unavailable
from skerry.store.etcd_cache import ReadCache
from skerry.store.etcd_client import EtcdClient
from skerry.store.etcd_layout import FACTOR, Identity, Layout, Numbering, unpacked
from skerry.store.feed import Feed

log = Logger("store")

# A broken stream is opened again after this; the client itself waits for a member to answer.
_REOPEN_SECONDS = 0.05


def events_of(
    layout: Layout, numbering: Numbering, changes: Iterable[messages.Change]
) -> list[Event]:
    """Return the events among *changes*, which hold all changes of the revisions in them."""
    events: list[Event] = []
    revision, position = 0, 0
    for change in changes:
        key = layout.name(change.entry.key)
        if key is None:
            continue
        if change.entry.revision != revision:
            revision, position = change.entry.revision, 0
        events.append(_event(numbering, change, key, position))
        position += 1
    return events


def _event(numbering: Numbering, change: messages.Change, key: str, position: int) -> Event:
    value = None
    if not change.deleted:
        written, _, value = unpacked(change.entry.value)
        invariant(written == position, f"key {key!r}: position {written} seen as {position}")
    previous, before = None, 0
    if change.previous is not None:
        entry = numbering.entry(change.previous, key)
        previous, before = entry.value, entry.revision
    return Event(numbering.revision(change.entry.revision, position), key, value, previous, before)


class Replays:
    """Reads stretches of the past, each by a watch of its own."""

    def __init__(
        self, client: EtcdClient, layout: Layout, numbering: Callable[[], Numbering]
    ) -> None:
        self._client = client
        self._layout = layout
        self._numbering = numbering

    async def batches(self, first: int, last: int) -> AsyncIterator[list[Event]]:
        """Yield the events of etcd's revisions from *first* to *last*.

        *last* must be the revision of a transaction of ours, so that its end can be seen.
        """
        if first > last:
            return
        request = messages.watch_request(self._layout.root, self._layout.root_end, first)
        async with (
            self._client.watch(request) as stream,
            aclosing(stream),  # type: ignore[type-var]
        ):
            async for message in stream:
                self._check(message, first)
                changes = [c for c in message.changes if c.entry.revision <= last]
                yield events_of(self._layout, self._numbering(), changes)
                if message.changes and message.changes[-1].entry.revision >= last:
                    return

    def _check(self, message: messages.Watched, first: int) -> None:
        if message.compacted:
            numbering = self._numbering()
            oldest = numbering.revision(message.compacted, FACTOR - 1)
            raise Compacted(numbering.revision(first, 0) - 1, oldest)
        if message.canceled:
            raise Unavailable(f"etcd ended the watch ({message.reason})")


class Live:
    """Follows etcd for as long as the store is open; feeds the watchers and the cache of reads.

    A stream that breaks is opened again where it ended. Should etcd have compacted past that
    point meanwhile, the ring starts anew and the watchers find out from history.
    """

    def __init__(
        self,
        client: EtcdClient,
        layout: Layout,
        numbering: Callable[[], Numbering],
        feed: Feed,
        cache: ReadCache,
        clock: Clock,
    ) -> None:
        self._client = client
        self._layout = layout
        self._numbering = numbering
        self._feed = feed
        self._cache = cache
        self._clock = clock

    async def run(self, seen: int, identity: Callable[[], str]) -> None:
        """Publish what happens after etcd's revision *seen*, for ever."""
        while self._feed.closed is None:
            request = messages.watch_request(self._layout.root, self._layout.root_end, seen + 1)
            try:
                async with (
                    self._client.watch(request) as stream,
                    aclosing(stream),  # type: ignore[type-var]
                ):
                    async for message in stream:
                        seen = await self._take(message, seen, identity)
                        if message.canceled:
                            break
            except Unavailable as error:
                log.warning("watch of etcd interrupted; will resume", error=error)
            await self._clock.sleep(_REOPEN_SECONDS)

    async def _take(self, message: messages.Watched, seen: int, identity: Callable[[], str]) -> int:
        """Publish one message; return etcd's revision up to which everything is known."""
        if message.compacted:
            return await self._skip_compacted()
        if not message.changes:
            return seen
        self._check_identity(message.changes, identity)
        events = events_of(self._layout, self._numbering(), message.changes)
        self._cache.follow(events)
        self._feed.publish(events)
        return message.changes[-1].entry.revision

    async def _skip_compacted(self) -> int:
        found = await self._client.range(messages.range_request(self._layout.last))
        last = found.entries[0]
        self._feed.restart(self._numbering().newest(last))
        log.warning("etcd compacted what was not read yet; watchers will relist")
        return last.revision

    def _check_identity(
        self, changes: Iterable[messages.Change], identity: Callable[[], str]
    ) -> None:
        """Stop when another process gave the store a new history: our numbers are void then."""
        for change in changes:
            if change.entry.key != self._layout.identity:
                continue
            if change.deleted or Identity.unpack(change.entry.value).name != identity():
                self._feed.close(Unavailable("the store was replaced; the server must restart"))
                log.error("the store was replaced by a restore; restart this server")
