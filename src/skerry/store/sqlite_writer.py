"""The one thread that writes: group commit, sweeping after compaction, and checkpoints.

Commits queue up while the thread is busy with the batch before; it then takes all of them, up to
a bound, into one SQLite transaction and one ``fsync``. The thread speaks to the loop once per
batch.

A Python thread pays for every SQLite call by giving up and taking back the interpreter lock,
which costs far more than inserting a row while the loop is busy. So a batch is a handful of
statements with many rows each: one read of all keys concerned, the decision in plain Python
(``batch.evaluate``), one insert per table.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import apsw

from skerry.kit.log import Logger
from skerry.store.base import Event, StoreError, Unavailable, Write
from skerry.store.batch import State, evaluate
from skerry.store.sqlite_schema import NEWEST_AND_COMPACTED, rows
from skerry.store.sqlite_upkeep import Checkpoints, Sweep, WalBounds

log = Logger("store")

# A batch is bounded so that the first of it does not wait long for the last.
BATCH_WRITES = 1024
BATCH_BYTES = 8 << 20
# More waiting than this is an overload that clients should hear of.
MOST_WAITING = 50_000
_ROWS = 32


def _several(head: str, row: str, tail: str = "") -> list[str]:
    """Return the statement for 0.._ROWS rows."""
    return [f"{head} {','.join([row] * count)} {tail}" for count in range(_ROWS + 1)]


_INSERT_LOG = _several("INSERT INTO log(rv, prev_rv, k, v) VALUES", "(?,?,?,?)")
_UPSERT_CUR = _several(
    "INSERT INTO cur(k, rv) VALUES", "(?,?)", "ON CONFLICT(k) DO UPDATE SET rv = excluded.rv"
)
_INSERT_PAST = _several("INSERT INTO past(k, rv, until) VALUES", "(?,?,?)")
_DELETE_CUR = _several("DELETE FROM cur WHERE k IN (", "?", ")")
_SELECT = _several(
    "SELECT cur.k, log.rv, log.v FROM cur CROSS JOIN log ON log.rv = cur.rv WHERE cur.k IN (",
    "?",
    ")",
)


class Pending(NamedTuple):
    """A commit that waits for its turn, and whom to tell."""

    writes: Sequence[Write]
    waiter: asyncio.Future[list[int]]


Outcome = list[int] | StoreError
# Called in the loop after each batch: what waited, what became of it, what happened.
Completed = Callable[[list[Pending], Sequence[Outcome], list[Event]], None]


class Chore(NamedTuple):
    """Something rare to do in the writing thread; done when ``step`` returns True."""

    step: Callable[[bool], bool]
    waiter: asyncio.Future[None]


class Writer:
    """Owns the writing connection and the thread it is used in."""

    def __init__(
        self,
        connection: apsw.Connection,
        connect: Callable[[], apsw.Connection],
        completed: Completed,
        wal: WalBounds,
    ) -> None:
        self._connection = connection
        self._completed = completed
        self._loop = asyncio.get_running_loop()
        self._commits: deque[Pending] = deque()
        self._chores: deque[Chore] = deque()
        # A lock used as a binary semaphore: the loop releases, the thread acquires.
        self._wake = threading.Lock()
        self._wake.acquire()
        self._signalled = False
        self._stopping = False
        self._ended = False
        self._current: list[Pending] = []
        self._committing = False
        ((newest, _),) = rows(connection, NEWEST_AND_COMPACTED)
        self._newest: int = newest
        self._checkpoints = Checkpoints(connection, connect, wal)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    # -- called in the loop ------------------------------------------------------------------

    def submit(self, writes: Sequence[Write]) -> asyncio.Future[list[int]]:
        """Queue a commit; its waiter may be cancelled without effect on the commit."""
        if self._ended:
            raise Unavailable("the writing thread ended; this was not written")
        if len(self._commits) >= MOST_WAITING:
            raise Unavailable("too many writes are waiting; this one was not written")
        waiter: asyncio.Future[list[int]] = self._loop.create_future()
        self._commits.append(Pending(writes, waiter))
        self._signal()
        return waiter

    def compact(self, revision: int) -> asyncio.Future[None]:
        """Mark the history up to *revision* as gone, then delete it bit by bit."""
        return self._chore(Sweep(self._connection, revision).step)

    def adopt(self, identity: str, revision: int) -> asyncio.Future[None]:
        """Give the store a new identity and a past that is compacted up to *revision*."""

        def step(busy: bool) -> bool:
            with self._connection:
                statement = "UPDATE meta SET identity = ?, floor = max(floor, ?)"
                rows(self._connection, statement, (identity, revision))
            self._newest = max(self._newest, revision)
            return True

        return self._chore(step)

    async def stop(self) -> None:
        """Finish everything that was queued and end the thread."""
        self._stopping = True
        self._signal()
        await asyncio.to_thread(self._thread.join)

    def _chore(self, step: Callable[[bool], bool]) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._chores.append(Chore(step, waiter))
        self._signal()
        return waiter

    def _signal(self) -> None:
        # Only the loop sets the flag, only the thread clears it, after it took the lock: so the
        # lock is never released twice, and nothing queued after the thread looked is missed.
        if not self._signalled:
            self._signalled = True
            self._wake.release()

    # -- called in the thread ----------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not (self._stopping and not self._commits and not self._chores):
                self._wake.acquire()
                self._signalled = False
                self._work()
        finally:
            self._ended = True
            self._tell_all()
            self._checkpoints.close()

    def _work(self) -> None:
        while self._commits or self._chores:
            if self._commits:
                self._commit_batch()
            if self._chores:
                self._do_chore()
            self._checkpoints.between_batches()
        self._checkpoints.in_a_lull()

    def _commit_batch(self) -> None:
        batch = self._current = self._take()
        outcomes: Sequence[Outcome]
        self._committing = False
        try:
            outcomes, events = self._transaction(batch)
        except apsw.Error as error:
            outcomes, events = [self._failed(error) for _ in batch], []
            self._roll_back()
        self._loop.call_soon_threadsafe(self._completed, batch, outcomes, events)

    def _take(self) -> list[Pending]:
        batch: list[Pending] = []
        writes = size = 0
        while self._commits and writes < BATCH_WRITES and size < BATCH_BYTES:
            pending = self._commits.popleft()
            batch.append(pending)
            writes += len(pending.writes)
            size += sum([len(write.value) for write in pending.writes if write.value])
        return batch

    def _transaction(self, batch: list[Pending]) -> tuple[Sequence[Outcome], list[Event]]:
        connection = self._connection
        rows(connection, "BEGIN IMMEDIATE")
        state = self._state_of({write.key for pending in batch for write in pending.writes})
        outcomes, events = evaluate(state, [pending.writes for pending in batch], self._newest)
        if events:
            # Taken before anything is written: a commit that fails half-way may still be found
            # on disk after a crash, so its revisions must not be given to others.
            self._newest = events[-1].revision
            self._insert(events, state)
        self._committing = True
        rows(connection, "COMMIT")
        return outcomes, events

    def _state_of(self, keys: set[str]) -> State:
        state: State = {}
        wanted = list(keys)
        for start in range(0, len(wanted), _ROWS):
            chunk = wanted[start : start + _ROWS]
            for key, revision, value in rows(self._connection, _SELECT[len(chunk)], chunk):
                state[key] = (revision, value)
        return state

    def _insert(self, events: list[Event], state: State) -> None:
        self._each(_INSERT_LOG, [(e.revision, e.previous_revision, e.key, e.value) for e in events])
        past = [(e.key, e.previous_revision, e.revision) for e in events if e.previous_revision]
        self._each(_INSERT_PAST, past)
        keys = dict.fromkeys(event.key for event in events)
        self._each(_UPSERT_CUR, [(key, state[key][0]) for key in keys if key in state])
        self._each(_DELETE_CUR, [(key,) for key in keys if key not in state])

    def _each(self, statements: list[str], items: Sequence[tuple[Any, ...]]) -> None:
        for start in range(0, len(items), _ROWS):
            chunk = items[start : start + _ROWS]
            bindings = [value for row in chunk for value in row]
            rows(self._connection, statements[len(chunk)], bindings)

    def _failed(self, error: apsw.Error) -> Unavailable:
        """Say what is known of a batch that failed."""
        log.error("commit failed", error=error)
        reason = "the disk is full" if isinstance(error, apsw.FullError) else f"the disk: {error}"
        # A commit that could not be synced is undone, but a crash before the next one may leave
        # it on disk as if it had succeeded.
        known = "its outcome is unknown" if self._committing else "the write did not happen"
        return Unavailable(f"{reason}; {known}")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                rows(self._connection, "ROLLBACK")
            except apsw.Error as error:
                log.error("rollback failed", error=error)

    def _do_chore(self) -> None:
        chore = self._chores[0]
        try:
            done = chore.step(bool(self._commits))
        except apsw.Error as error:
            self._roll_back()
            self._chores.popleft()
            failure = Unavailable(f"the database failed: {error}")
            self._loop.call_soon_threadsafe(_fail, chore.waiter, failure)
            return
        if done:
            self._chores.popleft()
            self._loop.call_soon_threadsafe(_succeed, chore.waiter)

    def _tell_all(self) -> None:
        """Answer whoever still waits when the thread ends; none does unless a bug ended it."""
        waiters: list[asyncio.Future[Any]] = [p.waiter for p in (*self._current, *self._commits)]
        waiters += [chore.waiter for chore in self._chores]
        if waiters and not self._loop.is_closed():
            error = Unavailable("the writing thread ended; the outcome is unknown")
            self._loop.call_soon_threadsafe(_fail_all, waiters, error)


def _fail(waiter: asyncio.Future[Any], error: StoreError) -> None:
    if not waiter.done():
        waiter.set_exception(error)


def _fail_all(waiters: Sequence[asyncio.Future[Any]], error: StoreError) -> None:
    for waiter in waiters:
        _fail(waiter, error)


def _succeed(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
