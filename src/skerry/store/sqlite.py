"""The embedded store: one SQLite file in WAL mode, durable before the reply.

**Durable, and only then visible.** With ``synchronous=FULL`` SQLite writes a commit's frames to
the write-ahead log, syncs the log, and only then publishes the commit in the shared index of the
log (``-shm``) by which other connections find it. Reads use connections of their own, so they
cannot see a commit that a power loss could still take back. No bookkeeping of ours is needed for
the promise; do not read through the writing connection, and do not lower ``synchronous``.
Acknowledgements and watch events are sent after ``COMMIT`` returned, hence after the sync too.

**Who does what.** Reads and the writing of rows run in the event loop's thread (``sqlite_reader``,
``sqlite_writer``), the waiting for the disk in another; the writing connection passes between the
two, once each way per batch. A read may see a batch a moment before its watchers do, so the newest
revision is always taken from the database, never from what the loop has heard of.

**One process.** The file is locked; several servers over one store need etcd.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import apsw

from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.store.base import (
    Entry,
    Event,
    Future,
    Page,
    Sizes,
    StoreError,
    Unavailable,
    Write,
)
from skerry.store.feed import BATCH, Feed, Watch
from skerry.store.keyspace import check_writes
from skerry.store.recent import RecentEntries
from skerry.store.sqlite_reader import Reader, check_kept, unavailable
from skerry.store.sqlite_schema import (
    FileLock,
    check_format,
    connect,
    connect_read_only,
    create_private,
    prepare,
)
from skerry.store.sqlite_upkeep import WalBounds
from skerry.store.sqlite_writer import Outcome, Pending, Writer

log = Logger("store")

# Each connection's pages. What misses is in the system's own cache: with 200,000 objects neither
# writing nor reading them is slower than with four times as much, which every server would fill.
_CACHE_KIB = 4_096
# Readers wait only while the log is started anew, which takes microseconds.
_PATIENCE_MILLISECONDS = 1_000


class SqliteStore:
    """A ``Store`` in one file. Build it with ``open`` or ``open_read_only``."""

    def __init__(self, reader: Reader, lock: FileLock | None) -> None:
        self._reader = reader
        self._lock = lock
        self._identity = reader.identity()
        self._feed = Feed(reader.bounds()[0])
        self._writer: Writer | None = None
        self._recent = RecentEntries()

    @classmethod
    async def open(
        cls,
        path: Path,
        ids: IdSource,
        *,
        wal: WalBounds = WalBounds(),  # noqa: B008 - frozen
    ) -> SqliteStore:
        """Open or create the file; ``Unavailable`` when another process has it open."""
        create_private(path)
        lock = FileLock(path)
        try:
            connection = connect(path, cache_kib=_CACHE_KIB)
            prepare(connection, path, ids.uid())
            reading = partial(
                connect,
                path,
                cache_kib=_CACHE_KIB,
                patience_milliseconds=_PATIENCE_MILLISECONDS,
            )
            store = cls(Reader(reading), lock)
        except (apsw.Error, StoreError) as error:
            lock.release()
            raise _unopened(path, error) from error
        for_checkpoints = partial(connect, path, cache_kib=_CACHE_KIB)
        store._writer = Writer(connection, for_checkpoints, store._completed, wal)
        store._finish_sweep()
        return store

    @classmethod
    async def open_read_only(cls, path: Path) -> SqliteStore:
        """Open an existing file to look at, also while a server has it; for backups."""
        try:
            reader = Reader(partial(connect_read_only, path, cache_kib=_CACHE_KIB))
            check_format(reader._connection, path)
            return cls(reader, None)
        except (apsw.Error, StoreError) as error:
            raise _unopened(path, error) from error

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def revision_stride(self) -> int:
        return 1

    async def revision(self) -> int:
        with self._reading():
            return self._reader.bounds()[0]

    async def compacted(self) -> int:
        with self._reading():
            return self._reader.bounds()[1]

    async def get(self, key: str) -> Entry | None:
        if self._feed.closed is not None:
            raise _closed()
        known = self._recent.get(key)
        if known is not None:
            return known
        try:
            # Who only looks does not see another process's writes begin, and may not remember.
            if self._writer is None:
                return self._reader.get(key)
            entry = self._reader.get(key, steady=self._recent.settled)
        except apsw.Error as error:
            raise unavailable(error) from error
        if entry is not None:
            self._recent.was_read(entry)
        return entry

    async def range(
        self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
    ) -> Page:
        with self._reading():
            return await self._reader.range(prefix, after, limit, revision)

    async def sizes(
        self, prefix: str, *, after: str = "", limit: int, revision: int | None = None
    ) -> Sizes:
        with self._reading():
            return await self._reader.sizes(prefix, after, limit, revision)

    async def count(self, prefix: str) -> int:
        with self._reading():
            return self._reader.count(prefix)

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        check_writes(writes)
        waiter = self._writing().submit(writes)
        # Nothing was read between the two, and nothing is written before the loop's next turn.
        self._recent.begin(writes)
        self._reader.let_go()
        return await waiter

    async def check_writable(self) -> None:
        await self._writing().check_writable()

    async def history(self, prefix: str, *, after: int, limit: int = 1000) -> list[Event]:
        with self._reading():
            events, _ = await self._reader.history(prefix, after, limit)
            return events

    async def written(self, *, after: int, upto: int) -> Sequence[tuple[str, int]] | None:
        with self._reading():
            return await self._reader.written(after, upto)

    def watch(self, prefix: str = "", *, after: int) -> AsyncIterator[Sequence[Event]]:
        return Watch(self._feed, prefix, after, admit=self._admit, replay=self._replay)

    async def compact(self, revision: int) -> None:
        newest = await self.revision()
        if revision > newest:
            raise Future(revision, newest)
        if revision > await self.compacted():
            # The sweep goes on when the caller is cancelled; the mark must not be half-made.
            await asyncio.shield(self._writing().compact(revision))

    async def adopt(self, identity: str, revision: int) -> None:
        """Begin a new history named *identity* at *revision* or later, the past compacted."""
        await self._writing().adopt(identity, revision)
        self._recent.clear()
        self._identity = identity
        newest = await self.revision()
        self._feed.restart(newest)
        await self.compact(newest)

    async def close(self) -> None:
        if self._feed.closed is not None:
            return
        self._feed.close(_closed())
        self._reader.let_go()
        try:
            if self._writer is not None:
                await self._writer.stop()
            self._reader.close()
        except apsw.Error as error:
            log.warning("the database did not close well", error=error)
        finally:
            if self._lock is not None:
                self._lock.release()

    def _finish_sweep(self) -> None:
        """Go on with a compaction that a crash interrupted."""
        _, compacted = self._reader.bounds()
        if compacted and self._writer is not None:
            self._writer.compact(compacted)

    def _completed(
        self, batch: list[Pending], outcomes: Sequence[Outcome], events: list[Event]
    ) -> None:
        """Tell watchers and waiters of a durable batch; a waiter that left is passed over."""
        self._recent.settle((write for pending in batch for write in pending.writes), events)
        if events and self._feed.closed is None:
            self._feed.publish(events)
        for pending, outcome in zip(batch, outcomes, strict=True):
            waiter = pending.waiter
            if waiter.done():
                continue
            if isinstance(outcome, StoreError):
                waiter.set_exception(outcome)
            else:
                waiter.set_result(outcome)

    async def _admit(self, after: int) -> None:
        with self._reading():
            check_kept(after, *self._reader.bounds())

    async def _replay(self, prefix: str, position: int) -> tuple[list[Event], int]:
        with self._reading():
            return await self._reader.history(prefix, position, BATCH)

    def _writing(self) -> Writer:
        if self._feed.closed is not None:
            raise _closed()
        if self._writer is None:
            raise Unavailable("the store was opened to be read only")
        return self._writer

    @contextmanager
    def _reading(self) -> Iterator[None]:
        if self._feed.closed is not None:
            raise _closed()
        try:
            yield
        except apsw.Error as error:
            raise unavailable(error) from error


def _closed() -> Unavailable:
    return Unavailable("the store is closed")


def _unopened(path: Path, error: apsw.Error | StoreError) -> StoreError:
    if isinstance(error, StoreError):
        return error
    return Unavailable(f"data file {str(path)!r} cannot be opened: {error}")
