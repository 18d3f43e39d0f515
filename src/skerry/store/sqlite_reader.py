"""Reads of the SQLite store, in the event loop's thread.

A point read is some microseconds of work, far less than handing it to a thread, so it runs where
it is asked for. What may be long (ranges, history) is read in chunks, giving way to others
between two chunks while the connection keeps its snapshot. Such reads borrow a connection of
their own, so that a point read never sees the past because a list is still running.

Every statement is run to its end at once: a half-read one would hold its snapshot, and with it
the WAL, for as long as nobody touched it.

To find the present moment and to let go of it again costs more than to read a value of it. While
nothing is being written there is only one moment, so point reads that follow each other share one:
until a write begins or somebody asks what is newest, and for some milliseconds at the most, which
is what the WAL has to put up with from any list. A map of the file in place of reading its pages
would save half of a cold read, but SQLite unmaps all of it after each write, which holds up the
loop for tens of milliseconds per gigabyte, and makes reads among writes several times as slow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import apsw

from skerry.store.base import Compacted, Entry, Event, Future, Page, Sizes, Unavailable
from skerry.store.keyspace import prefix_end
from skerry.store.sqlite_schema import NEWEST_AND_COMPACTED, rows

# Rows per chunk, and of all long reads together at one turn of the loop: about a millisecond, which
# is what others may have to wait.
CHUNK = 500
# Reads that go on at a turn of the loop; most of them have little left to read.
_AT_A_TURN = 2
# Snapshots that may be open at once; each holds a connection and some cache.
SNAPSHOTS = 16
_IDLE_CONNECTIONS = 4
# Point reads in a row after which the next ones share a snapshot, and for how long they do.
_READS_ALONE = 4
_SHARED_SECONDS = 0.02
# Above every key that UTF-8 can spell.
_BEYOND = "\U0010ffff" * 64

# A join of the two would take twice as long to set up, every time, as this takes altogether.
_GET = "SELECT rv, (SELECT v FROM log WHERE log.rv = cur.rv) FROM cur WHERE k = ?"
_COUNT = "SELECT count(*) FROM cur WHERE k >= ? AND k < ?"
# Exactly one lower bound: of two SQLite seeks to the first and filters by the second, which for
# an empty ``after`` is a scan of everything before the prefix.
_NOW = (
    "SELECT cur.k, {value}, log.rv FROM cur CROSS JOIN log ON log.rv = cur.rv"
    " WHERE cur.k {above} ?1 AND cur.k < ?2 ORDER BY cur.k LIMIT ?3"
)
# Both halves come ordered from their tree, so SQLite merges them and stops at the limit. The past
# is read no further than the present can fill the page: most of it had ended by then, and a search
# for the next state that had not would go through all there is, for every page.
_THEN = (
    "SELECT seen.k, {value}, log.rv FROM ("
    " SELECT k, rv FROM cur WHERE k {above} ?1 AND k < ?2 AND rv <= ?4"
    " UNION ALL"
    " SELECT k, rv FROM past WHERE k {above} ?1 AND k < coalesce((SELECT k FROM cur"
    " WHERE k {above} ?1 AND k < ?2 AND rv <= ?4 ORDER BY k LIMIT 1 OFFSET ?3), ?2)"
    " AND rv <= ?4 AND until > ?4"
    " ORDER BY k LIMIT ?3) AS seen CROSS JOIN log ON log.rv = seen.rv ORDER BY seen.k"
)
# By whether the range begins with the bound itself, and whether it is of now or of then.
_RANGES, _SIZES = (
    {
        (including, now): statement.format(above=">=" if including else ">", value=value)
        for including in (True, False)
        for now, statement in ((True, _NOW), (False, _THEN))
    }
    # SQLite knows the length of a value without reading it.
    for value in ("log.v", "length(log.v)")
)
_WINDOW = "SELECT rv FROM log WHERE rv > ? ORDER BY rv LIMIT 1 OFFSET ?"
_WRITTEN = "SELECT k, rv FROM log WHERE rv > ? AND rv <= ? ORDER BY rv LIMIT ?"
_EVENTS = (
    "SELECT log.rv, log.k, log.v, old.v, log.prev_rv"
    " FROM log LEFT JOIN log AS old ON old.rv = log.prev_rv AND log.prev_rv > 0"
)
_HISTORY = (
    f"{_EVENTS} WHERE log.rv > ? AND log.rv <= ? AND log.k >= ? AND log.k < ?"
    " ORDER BY log.rv LIMIT ?"
)
_EVENT = f"{_EVENTS} WHERE log.rv = ?"
# The revisions at which anything below a prefix was written or deleted, if those are few. A key's
# last deletion is where its last state ended; there is nothing else of it.
_FEW = 256
_REVISIONS = (
    "SELECT rv, 0 FROM (SELECT rv FROM cur WHERE k >= ?1 AND k < ?2 LIMIT ?3)"
    " UNION ALL SELECT rv, until FROM"
    " (SELECT rv, until FROM past WHERE k >= ?1 AND k < ?2 LIMIT ?3)"
)


class Turns:
    """Shares the turns of the loop among long reads.

    Each gives way after a chunk. That is not enough where many read at once, as the controllers of
    a server that starts: then a turn of the loop is as long as a chunk of each of them.
    """

    def __init__(self) -> None:
        self._left = CHUNK
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._renewing = False

    async def begin(self) -> None:
        """Wait until another chunk may be read; mostly not at all."""
        if self._left <= 0:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def spend(self, count: int) -> None:
        """Take note of so many rows that were read."""
        self._left -= count
        if not self._renewing:
            self._renewing = True
            asyncio.get_running_loop().call_soon(self._renew)

    def _renew(self) -> None:
        self._left, resumed = CHUNK, 0
        while self._waiting and resumed < _AT_A_TURN:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                resumed += 1
        self._renewing = bool(self._waiting)
        if self._renewing:
            asyncio.get_running_loop().call_soon(self._renew)


class Reader:
    """Answers reads from connections of its own, which see durable commits only."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._connection = connect()
        self._cursor = self._connection.cursor()
        self._idle: list[apsw.Connection] = []
        self._snapshots = asyncio.Semaphore(SNAPSHOTS)
        self._turns = Turns()
        self._closed = False
        # Point reads since a snapshot was last let go of, and what lets go of the present one.
        self._reads = 0
        self._shared: asyncio.TimerHandle | None = None

    def get(self, key: str, *, steady: bool = False) -> Entry | None:
        """Return the value of *key*; *steady* says that nothing is being written."""
        if steady and self._shared is None:
            self._reads += 1
            if self._reads > _READS_ALONE:
                rows(self._connection, "BEGIN")
                loop = asyncio.get_running_loop()
                self._shared = loop.call_later(_SHARED_SECONDS, self.let_go)
        found: list[Any] = self._cursor.execute(_GET, (key,)).fetchall()
        if not found:
            return None
        ((revision, value),) = found
        return Entry(key, value, revision)

    def let_go(self) -> None:
        """Have the next read look at the present again."""
        self._reads = 0
        if self._shared is not None:
            self._shared.cancel()
            self._shared = None
            rows(self._connection, "ROLLBACK")

    def bounds(self) -> tuple[int, int]:
        """Return the newest and the compacted revision."""
        self.let_go()
        ((newest, compacted),) = rows(self._connection, NEWEST_AND_COMPACTED)
        return newest, compacted

    def identity(self) -> str:
        self.let_go()
        return str(rows(self._connection, "SELECT identity FROM meta")[0][0])

    def count(self, prefix: str) -> int:
        self.let_go()
        ((count,),) = rows(self._connection, _COUNT, (prefix, prefix_end(prefix) or _BEYOND))
        return int(count)

    async def range(self, prefix: str, after: str, limit: int, revision: int | None) -> Page:
        async with self._snapshots:
            await self._turns.begin()
            with self._snapshot() as connection:
                ((newest, compacted),) = rows(connection, NEWEST_AND_COMPACTED)
                at = newest if revision is None else revision
                check_kept(at, newest, compacted)
                wanted = (prefix, after, limit)
                return await _page(connection, self._turns, wanted, at, now=at == newest)

    async def sizes(self, prefix: str, after: str, limit: int, revision: int | None) -> Sizes:
        """Return keys and the lengths of their values, one chunk of them at the most."""
        async with self._snapshots:
            await self._turns.begin()
            with self._snapshot() as connection:
                ((newest, compacted),) = rows(connection, NEWEST_AND_COMPACTED)
                at = newest if revision is None else revision
                check_kept(at, newest, compacted)
                size = min(limit, CHUNK - 1)
                wanted = (prefix, after, size + 1)
                found = _chunk(connection, _SIZES, wanted, at, now=at == newest)
        self._turns.spend(len(found))
        return Sizes([(key, length) for key, length, _ in found[:size]], len(found) > size)

    async def history(self, prefix: str, after: int, limit: int) -> tuple[list[Event], int]:
        """Return the events above *after*, and the revision up to which that is all of them."""
        async with self._snapshots:
            await self._turns.begin()
            with self._snapshot() as connection:
                ((newest, compacted),) = rows(connection, NEWEST_AND_COMPACTED)
                check_kept(after, newest, compacted)
                return await _events(connection, self._turns, prefix, (after, newest), limit)

    async def written(self, after: int, upto: int) -> list[tuple[str, int]]:
        """Return key and revision of the events above *after*, up to *upto*."""
        found: list[tuple[str, int]] = []
        async with self._snapshots:
            with self._snapshot() as connection:
                ((newest, compacted),) = rows(connection, NEWEST_AND_COMPACTED)
                check_kept(after, newest, compacted)
                while True:
                    await self._turns.begin()
                    some = rows(connection, _WRITTEN, (after, upto, CHUNK))
                    self._turns.spend(len(some))
                    found += some
                    if len(some) < CHUNK:
                        return found
                    after = some[-1][1]

    def close(self) -> None:
        self._closed = True
        self.let_go()
        for connection in (self._connection, *self._idle):
            connection.close()
        self._idle.clear()

    @contextmanager
    def _snapshot(self) -> Iterator[apsw.Connection]:
        """Lend a connection on which everything read belongs to one moment."""
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            rows(connection, "BEGIN")
            yield connection
        finally:
            if connection.in_transaction:
                rows(connection, "ROLLBACK")
            if self._closed or len(self._idle) >= _IDLE_CONNECTIONS:
                connection.close()
            else:
                self._idle.append(connection)


def check_kept(revision: int, newest: int, compacted: int) -> None:
    """Refuse a revision that is no longer, or not yet, there."""
    if revision < compacted:
        raise Compacted(revision, compacted)
    if revision > newest:
        raise Future(revision, newest)


async def _page(
    connection: apsw.Connection, turns: Turns, wanted: tuple[str, str, int], at: int, *, now: bool
) -> Page:
    """Read the wanted (prefix, after, limit) from a snapshot, a chunk at a time.

    One row more than the limit is asked for, to know whether more follow.
    """
    prefix, after, limit = wanted
    entries: list[Entry] = []
    while True:
        size = min(CHUNK, limit + 1 - len(entries)) if limit else CHUNK
        last = entries[-1].key if entries else after
        found = _chunk(connection, _RANGES, (prefix, last, size), at, now=now)
        turns.spend(len(found))
        entries.extend([Entry(*row) for row in found])
        if len(found) < size or (limit and len(entries) > limit):
            break
        await turns.begin()
    more = bool(limit) and len(entries) > limit
    if more:
        entries.pop()
    return Page(entries, at, more=more, remaining=None if more else 0)


def _chunk(
    connection: apsw.Connection,
    statements: Mapping[tuple[bool, bool], str],
    wanted: tuple[str, str, int],
    at: int,
    *,
    now: bool,
) -> list[Any]:
    """Read as many rows as wanted below a prefix and after a key."""
    prefix, after, size = wanted
    including = after < prefix
    bindings = (prefix if including else after, prefix_end(prefix) or _BEYOND, size)
    return rows(connection, statements[including, now], bindings if now else (*bindings, at))


async def _events(
    connection: apsw.Connection, turns: Turns, prefix: str, span: tuple[int, int], limit: int
) -> tuple[list[Event], int]:
    """Return what happened below *prefix* above ``span[0]``, *limit* events at the most.

    Where little is below it, and much happened elsewhere, its keys say when. Thousands of edges
    that return to a hub each ask for what they missed, and nearly all of that is the others'.
    Else the log is scanned in windows of rows, so that a rare prefix stalls nobody.
    """
    position, newest = span
    end = prefix_end(prefix) or _BEYOND
    if newest - position > _FEW:
        pairs = rows(connection, _REVISIONS, (prefix, end, _FEW + 1))
        turns.spend(len(pairs))
        if len(pairs) <= _FEW:
            found = sorted({each for pair in pairs for each in pair if position < each <= newest})
            events = [Event(*rows(connection, _EVENT, (each,))[0]) for each in found[:limit]]
            return events, events[-1].revision if len(events) >= limit else newest
    events = []
    while position < newest and len(events) < limit:
        window = rows(connection, _WINDOW, (position, CHUNK - 1))
        upto = window[0][0] if window else newest
        bindings = (position, upto, prefix, end, limit - len(events))
        events.extend([Event(*row) for row in rows(connection, _HISTORY, bindings)])
        position = upto
        turns.spend(CHUNK)
        if position < newest:
            await turns.begin()
    return events, events[-1].revision if len(events) >= limit else newest


def unavailable(error: apsw.Error) -> Unavailable:
    """Say that the database could not answer."""
    return Unavailable(f"the database failed: {error}")
