"""The scale-out store: an etcd cluster, 3.4 or newer, shared by equal servers.

``etcd_layout`` tells how keys and revisions are kept, ``etcd_commit`` how writes are merged,
``etcd_reads`` how reads are, ``etcd_cache`` which of them need a value sent, ``etcd_events`` how
events are watched, ``etcd_client`` how etcd is spoken to. Reads are linearizable: what one server
acknowledged, every other shows.

Surprises. Compaction is etcd's, for the whole cluster, so whatever else lives there loses its
past too. An expectation is compared by etcd's revision: one that names the right transaction but
the wrong position of it is taken for right. A commit may not hold more keys than etcd's
``--max-txn-ops`` allows, less one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.store import etcd_messages as messages
from skerry.store.base import (
    Compacted,
    Entry,
    Event,
    Future,
    Page,
    Sizes,
    StoreError,
    Unavailable,
    Write,
    sizes_of,
)
from skerry.store.etcd_cache import ReadCache
from skerry.store.etcd_client import EtcdClient, EtcdOptions, OutcomeUnknown, RevisionGone
from skerry.store.etcd_commit import CONCURRENT, Committer
from skerry.store.etcd_events import Live, Replays
from skerry.store.etcd_layout import (
    FACTOR,
    Identity,
    Layout,
    Numbering,
    last_position,
    packed_count,
)
from skerry.store.etcd_reads import SharedReads
from skerry.store.etcd_version import keeps_what_it_acknowledges
from skerry.store.feed import BATCH, Feed, Watch
from skerry.store.keyspace import check_writes

log = Logger("store")

# Keys read from etcd at once in a large range.
CHUNK = 1000


class _Bounds(NamedTuple):
    """The newest revision, where it lies in etcd, and the compacted one."""

    newest: int
    last: messages.KeyValue
    compacted: int


class EtcdStore:
    """A ``Store`` in etcd. Build it with ``open``."""

    def __init__(
        self, client: EtcdClient, clock: Clock, ids: IdSource, *, prefix: str, max_txn_ops: int
    ) -> None:
        if not 2 <= max_txn_ops <= FACTOR:
            raise StoreError(f"etcd_max_txn_ops is {max_txn_ops}; want 2 to {FACTOR}")
        self._client = client
        self._clock = clock
        self._ids = ids
        self._max_txn_ops = max_txn_ops
        self._layout = Layout(prefix)
        self._identity = Identity("", 0)
        self._numbers = Numbering()
        self._feed = Feed(0)
        self._cache = self._empty_cache()
        self._reads = SharedReads(client, self._cache, self._layout, clock)
        self._replays = Replays(client, self._layout, self._numbering)
        self._committer = Committer(
            client, self._layout, self._numbering, ids, max_operations=max_txn_ops
        )
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(
        cls,
        options: EtcdOptions,
        clock: Clock,
        ids: IdSource,
        *,
        prefix: str = "/skerry/",
        max_txn_ops: int = 128,
    ) -> EtcdStore:
        """Connect, and claim the prefix when nobody has; ``Unavailable`` when out of reach."""
        client = EtcdClient(options, clock)
        try:
            store = cls(client, clock, ids, prefix=prefix, max_txn_ops=max_txn_ops)
            await store._start()
        except (StoreError, asyncio.CancelledError):
            await client.close()
            raise
        return store

    @property
    def identity(self) -> str:
        return self._identity.name

    @property
    def revision_stride(self) -> int:
        return FACTOR

    async def revision(self) -> int:
        return (await self._bounds()).newest

    async def compacted(self) -> int:
        return (await self._bounds()).compacted

    async def get(self, key: str) -> Entry | None:
        self._check_open()
        return await self._reads.get(key)

    async def range(
        self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
    ) -> Page:
        self._check_open()
        span = self._layout.span(prefix, after)
        if revision is None:
            return await self._range_now(span, limit)
        await self._check_kept(revision)
        try:
            return await self._range_at(prefix, after, limit, revision)
        except RevisionGone as error:
            raise await self._gone(revision) from error

    async def sizes(
        self, prefix: str, *, after: str = "", limit: int, revision: int | None = None
    ) -> Sizes:
        # etcd tells keys without values, but no lengths.
        return sizes_of(await self.range(prefix, after=after, limit=limit, revision=revision))

    async def count(self, prefix: str) -> int:
        self._check_open()
        request = messages.range_request(*self._layout.span(prefix), count_only=True)
        return (await self._client.range(request)).total

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        check_writes(writes)
        self._check_open()
        return await self._committer.submit(writes) if writes else []

    async def check_writable(self) -> None:
        # A read that a majority agrees to; etcd itself reports a database without room.
        await self._bounds()

    async def history(self, prefix: str, *, after: int, limit: int = 1000) -> list[Event]:
        events, _ = await self._replay(prefix, after, limit)
        return events

    async def written(self, *, after: int, upto: int) -> Sequence[tuple[str, int]] | None:
        return None

    def watch(self, prefix: str = "", *, after: int) -> AsyncIterator[Sequence[Event]]:
        return Watch(self._feed, prefix, after, admit=self._admit, replay=self._replay)

    async def compact(self, revision: int) -> None:
        bounds = await self._bounds()
        if revision > bounds.newest:
            raise Future(revision, bounds.newest)
        if revision <= bounds.compacted:
            return
        first = await self._first_after(revision)
        await self._mark_compacted(revision)
        # A revision of etcd that is kept in part has to be kept whole.
        await self._client.compact(first - 1)

    async def adopt(self, identity: str, revision: int) -> None:
        """Begin a new history named *identity* at *revision* or later, the past compacted.

        For a store that no other server has open; one that has stops when it notices.
        """
        bounds = await self._bounds()
        offset = max(self._identity.offset, -(-revision // FACTOR) - bounds.last.revision)
        await self._stop_tasks()
        record = Identity(identity, offset)
        await self._client.transact(
            messages.txn_request(
                [],
                [
                    messages.put_operation(self._layout.identity, record.pack()),
                    messages.put_operation(self._layout.last, packed_count(1)),
                ],
            )
        )
        await self._follow(record)
        await self.compact(await self.revision())

    async def close(self) -> None:
        if self._feed.closed is None:
            self._feed.close(Unavailable("the store is closed"))
            await self._committer.finish()
        await self._stop_tasks()
        await self._client.close()

    # -- opening -----------------------------------------------------------------------------

    async def _start(self) -> None:
        claimed = await self._claimed()
        await self._warn_of_version()
        await self._follow(claimed)

    async def _warn_of_version(self) -> None:
        try:
            version = await self._client.version()
        except StoreError:
            return  # a proxy that lets through what the store needs and nothing else
        if not keeps_what_it_acknowledges(version):
            log.warning(
                "etcd may lose acknowledged writes when it is killed; upgrade it to 3.5.5 or newer",
                version=version,
            )

    async def _claimed(self) -> Identity:
        """Return the identity record, written by us when the prefix is new."""
        fresh = Identity(self._ids.uid(), 0)
        request = messages.txn_request(
            [messages.written_at(self._layout.identity, 0)],
            [
                messages.put_operation(self._layout.identity, fresh.pack()),
                messages.put_operation(self._layout.last, packed_count(1)),
            ],
        )
        # That the outcome is unknown is harmless: whatever record is there now counts.
        with suppress(OutcomeUnknown):
            await self._client.transact(request)
        found = await self._client.range(messages.range_request(self._layout.identity))
        if not found.entries:
            raise Unavailable("etcd did not take the store's identity; try again")
        return Identity.unpack(found.entries[0].value)

    async def _follow(self, identity: Identity) -> None:
        """Take up *identity*'s numbering, and start feeding watchers and sending commits."""
        self._identity = identity
        self._numbers = Numbering(identity.offset)
        # What is cached is numbered by the identity before.
        self._cache = self._empty_cache()
        self._reads = SharedReads(self._client, self._cache, self._layout, self._clock)
        bounds = await self._bounds()
        self._feed.restart(bounds.newest)
        live = Live(
            self._client, self._layout, self._numbering, self._feed, self._cache, self._clock
        )
        self._start_task(live.run(bounds.last.revision, lambda: self._identity.name))
        for _ in range(CONCURRENT):
            self._start_task(self._committer.run())

    def _empty_cache(self) -> ReadCache:
        return ReadCache(self._layout, self._numbers, max_operations=self._max_txn_ops)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        # Not a TaskGroup: these live from open to close, which different tasks may call.
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Stop serving when a part of the store stopped; half a store would hang its clients."""
        if task.cancelled() or task.exception() is None or self._feed.closed is not None:
            return
        log.error("the store stopped; restart this server", error=task.exception())
        self._feed.close(Unavailable(f"the store stopped: {task.exception()}"))

    async def _stop_tasks(self) -> None:
        await self._reads.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        self._committer.abandon()

    # -- reading -----------------------------------------------------------------------------

    def _numbering(self) -> Numbering:
        return self._numbers

    async def _bounds(self) -> _Bounds:
        self._check_open()
        last, compacted = await self._client.read(
            messages.range_request(self._layout.last),
            messages.range_request(self._layout.compacted),
        )
        return self._bounds_of(last, compacted)

    def _bounds_of(self, last: messages.Ranged, compacted: messages.Ranged) -> _Bounds:
        if not last.entries:
            raise Unavailable("the store's keys were removed from etcd")
        (mark,) = last.entries
        until = int(compacted.entries[0].value) if compacted.entries else 0
        return _Bounds(self._numbers.newest(mark), mark, until)

    async def _range_now(self, span: tuple[bytes, bytes], limit: int) -> Page:
        size = min(limit, CHUNK) if limit else CHUNK
        last, found = await self._client.read(
            messages.range_request(self._layout.last),
            messages.range_request(*span, limit=size),
        )
        newest = self._bounds_of(last, messages.Ranged([], False, 0, 0)).newest
        try:
            # Later chunks are read at the moment of the first.
            stored = await self._rest(found, span[1], limit, found.revision)
        except RevisionGone as error:
            raise Unavailable("etcd was compacted while the range was read; try again") from error
        remaining = found.total - len(stored)
        return Page(self._entries(stored), newest, more=remaining > 0, remaining=remaining)

    async def _rest(
        self, found: messages.Ranged, end: bytes, limit: int, revision: int
    ) -> list[messages.KeyValue]:
        """Return *found* and what follows it, read in chunks at *revision*."""
        stored = list(found.entries)
        while found.more and (not limit or len(stored) < limit):
            size = min(limit - len(stored), CHUNK) if limit else CHUNK
            start = stored[-1].key + b"\x00"
            request = messages.range_request(start, end, limit=size, revision=revision)
            found = await self._client.range(request)
            stored.extend(found.entries)
        return stored

    async def _range_at(self, prefix: str, after: str, limit: int, revision: int) -> Page:
        """Read the past; where *revision* lies inside a transaction, undo its later events."""
        at = self._numbers.etcd_revision(revision)
        undone = await self._undone(revision)
        start, end = self._layout.span(prefix, after)
        wanted = limit + len(undone) if limit else 0
        size = min(wanted, CHUNK) if wanted else CHUNK
        found = await self._client.range(
            messages.range_request(start, end, limit=size, revision=at)
        )
        stored = await self._rest(found, end, wanted, at)
        entries = {entry.key: entry for entry in self._entries(stored)}
        # Beyond the last key that was read, a restored key would leave a hole before it.
        horizon = stored[-1].key if found.total > len(stored) else end
        for key, entry in undone.items():
            if not start <= self._layout.key(key) <= horizon:
                continue
            entries.pop(key, None)
            if entry is not None:
                entries[key] = entry
        listed = [entries[key] for key in sorted(entries)]
        more = bool(limit) and (found.total > len(stored) or len(listed) > limit)
        return Page(listed[:limit] if limit else listed, revision, more, None if more else 0)

    async def _undone(self, revision: int) -> dict[str, Entry | None]:
        """Return how the keys that the rest of *revision*'s transaction changes were before."""
        at = self._numbers.etcd_revision(revision)
        if await self._first_after(revision) > at:
            return {}
        before: dict[str, Entry | None] = {}
        async with aclosing(self._replays.batches(at, at)) as batches:  # type: ignore[type-var]
            async for events in batches:
                for event in events:
                    if event.revision > revision:
                        before[event.key] = _before(event)
        return before

    async def _first_after(self, revision: int) -> int:
        """Return the first revision of etcd that holds events above *revision*."""
        at = self._numbers.etcd_revision(revision)
        if at < 1:
            return 1
        try:
            found = await self._client.range(messages.range_request(self._layout.last, revision=at))
        except RevisionGone as error:
            raise await self._gone(revision) from error
        partial = any(
            last.revision == at and last_position(last) > self._numbers.position(revision)
            for last in found.entries
        )
        return at if partial else at + 1

    def _entries(self, stored: Sequence[messages.KeyValue]) -> list[Entry]:
        start = len(self._layout.keys)
        return [self._numbers.entry(one, one.key[start:].decode()) for one in stored]

    async def _replay(
        self, prefix: str, position: int, limit: int = BATCH
    ) -> tuple[list[Event], int]:
        """Return events above *position*, and the revision up to which that is all of them."""
        bounds = await self._check_kept(position)
        first = await self._first_after(position)
        found: list[Event] = []
        batches = self._replays.batches(first, bounds.last.revision)
        async with aclosing(batches) as read:  # type: ignore[type-var]
            async for events in read:
                found.extend(
                    event
                    for event in events
                    if event.revision > position and event.key.startswith(prefix)
                )
                if len(found) >= limit:
                    return found[:limit], found[limit - 1].revision
        return found, bounds.newest

    async def _admit(self, after: int) -> None:
        await self._check_kept(after)

    async def _check_kept(self, revision: int) -> _Bounds:
        bounds = await self._bounds()
        if revision < bounds.compacted:
            raise Compacted(revision, bounds.compacted)
        if revision > bounds.newest:
            raise Future(revision, bounds.newest)
        return bounds

    async def _gone(self, revision: int) -> Compacted:
        """Say that etcd forgot more than we asked it to."""
        return Compacted(revision, max(await self.compacted(), revision + 1))

    async def _mark_compacted(self, revision: int) -> None:
        """Raise the compacted revision that all servers go by; never lower it."""
        while True:
            found = await self._client.range(messages.range_request(self._layout.compacted))
            known = found.entries[0] if found.entries else messages.KeyValue(b"", b"0", 0)
            if int(known.value) >= revision:
                return
            content = str(revision).encode()
            answer = await self._client.transact(
                messages.txn_request(
                    [messages.written_at(self._layout.compacted, known.revision)],
                    [messages.put_operation(self._layout.compacted, content)],
                )
            )
            if answer.succeeded:
                return

    def _check_open(self) -> None:
        if self._feed.closed is not None:
            raise Unavailable(*self._feed.closed.args)


def _before(event: Event) -> Entry | None:
    if event.previous is None:
        return None
    return Entry(event.key, event.previous, event.previous_revision)
