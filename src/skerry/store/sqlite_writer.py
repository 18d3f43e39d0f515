"""Writing: group commit, sweeping after compaction, and checkpoints.

Commits queue up while the batch before them is on its way to the disk; then all of them, up to a
bound, go into one SQLite transaction and one ``fsync``.

**Two hands, one at a time.** The event loop's thread reads the keys concerned, decides
(``batch.evaluate``) and inserts the rows, which are some microseconds each; the waiting, which is
``COMMIT`` with its ``fsync``, and everything else that is slow, is done in a thread of its own.
The connection passes from one to the other and back, and whoever does not hold it does not touch
it. A thread that did all of it would have to win the interpreter lock from a busy loop after each
of a dozen SQLite calls, which costs both of them far more than the calls do; so it makes only one.

A batch is begun at the end of a turn of the loop, when whatever arrived in that turn has been
queued, or as soon as the one before it is done.

**A disk that hangs** holds up the thread, and nothing can call that back. Whoever waits gets an
error after a while, and whoever comes gets one at once, until the thread returns.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import apsw

from skerry.kit.log import Logger
from skerry.store.base import Event, Overloaded, StoreError, Unavailable, Write
from skerry.store.batch import State, evaluate
from skerry.store.sqlite_schema import NEWEST_AND_COMPACTED, rows
from skerry.store.sqlite_upkeep import Checkpoints, Sweep, WalBounds

log = Logger("store")

# A batch is bounded so that the loop is not held up for long, nor its first by its last.
BATCH_WRITES = 256
BATCH_BYTES = 4 << 20
# More waiting than this is an overload that clients should hear of.
MAX_WAITING = 50_000
# In a disk's bad minute clients give up, come again and give up; what they left is written later,
# and must not fill memory until then.
MAX_WAITING_BYTES = 128 << 20
# A disk that is slow takes a second at times. One that takes so many is a volume that is lost or
# held up, and requests behind it would wait as long as it does.
PATIENCE_SECONDS = 15.0
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
    value_bytes: int


Outcome = list[int] | StoreError
# Called in the loop after each batch: what waited, what became of it, what happened.
Completed = Callable[[list[Pending], Sequence[Outcome], list[Event]], None]


class Chore(NamedTuple):
    """Something rare to do in the writing thread; done when ``step`` returns True."""

    step: Callable[[bool], bool]
    waiter: asyncio.Future[None]


class Staged(NamedTuple):
    """A batch that is written but not committed."""

    batch: list[Pending]
    outcomes: Sequence[Outcome]
    events: list[Event]


class Writer:
    """Owns the writing connection and the thread that waits for the disk."""

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
        self._waiting_bytes = 0
        self._chores: deque[Chore] = deque()
        # A lock used as a binary semaphore: the loop releases, the thread acquires.
        self._turn = threading.Lock()
        self._turn.acquire()
        # Whether the loop has the connection, and is going to use it in this turn of its own.
        self._ours = True
        self._beginning = False
        self._stopping = self._closing = False
        self._ended = False
        self._staged: Staged | None = None
        # Whether the last batch failed on disk, and the trial under way since somebody asked.
        self._failing = False
        self._trial: asyncio.Future[None] | None = None
        # How often the thread has been given the connection, and whether it does not come back.
        self._turns = 0
        self._hanging = False
        self._patience: asyncio.TimerHandle | None = None
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
        if self._hanging:
            raise _hangs("this was not written")
        if len(self._commits) >= MAX_WAITING or self._waiting_bytes >= MAX_WAITING_BYTES:
            raise Overloaded("too many writes are waiting; this one was not written")
        waiter: asyncio.Future[list[int]] = self._loop.create_future()
        size = sum([len(write.value) for write in writes if write.value])
        self._commits.append(Pending(writes, waiter, size))
        self._waiting_bytes += size
        self._begin_soon()
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

    async def check_writable(self) -> None:
        """Raise ``Unavailable`` if the last batch failed and a trial fails, too, or the disk hangs.

        Everybody who asks during a trial gets its outcome, so that probes cost one sync at a time.
        """
        if self._hanging:
            raise _hangs("nothing can be written")
        if not self._failing:
            return
        if self._trial is None or self._trial.done():
            self._trial = self._chore(self._try)
        await asyncio.shield(self._trial)

    def _try(self, busy: bool) -> bool:
        """Have the disk take pages in which nothing changed; no key is empty."""
        with self._connection:
            rows(self._connection, "INSERT INTO past(k, rv, until) VALUES ('', 0, 0)")
            rows(self._connection, "DELETE FROM past WHERE k = ''")
        self._failing = False
        return True

    async def stop(self) -> None:
        """Finish everything that was queued and end the thread."""
        self._stopping = True
        self._begin_soon()
        await asyncio.to_thread(self._thread.join)
        if self._patience is not None:
            self._patience.cancel()

    def _chore(self, step: Callable[[bool], bool]) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._chores.append(Chore(step, waiter))
        self._begin_soon()
        return waiter

    def _begin_soon(self) -> None:
        if self._ours and not self._beginning:
            self._beginning = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        """Use the connection, which the loop has, for whatever is to be done next."""
        self._beginning = False
        while self._commits and self._staged is None:
            self._stage(self._take())
        self._closing = self._stopping and self._staged is None and not self._chores
        if self._staged is not None or self._chores or self._closing:
            self._ours = False
            self._turns += 1
            if self._patience is None:
                self._wait_for_turn()
            self._turn.release()

    def _wait_for_turn(self) -> None:
        """See later whether the thread still has the turn that it has now; one timer is enough."""
        self._patience = self._loop.call_later(PATIENCE_SECONDS, self._check_turn, self._turns)

    def _check_turn(self, turn: int) -> None:
        self._patience = None
        if self._ours:
            return
        if self._turns != turn:
            self._wait_for_turn()
            return
        log.error("the disk does not answer", seconds=PATIENCE_SECONDS)
        self._hanging = True
        staged = self._staged
        if staged is not None:
            # They are settled when their batch ends, however late; their keys are not trusted yet.
            _fail_all([each.waiter for each in staged.batch], _hangs("its outcome is unknown"))
        queued = list(self._commits)
        self._commits.clear()
        self._waiting_bytes = 0
        failure = _hangs("this was not written")
        self._completed(queued, [failure for _ in queued], [])

    def _take(self) -> list[Pending]:
        batch: list[Pending] = []
        writes = size = 0
        while self._commits and writes < BATCH_WRITES and size < BATCH_BYTES:
            pending = self._commits.popleft()
            batch.append(pending)
            writes += len(pending.writes)
            size += pending.value_bytes
        self._waiting_bytes -= size
        return batch

    def _stage(self, batch: list[Pending]) -> None:
        """Write *batch* into an open transaction, or tell its waiters why that failed."""
        try:
            outcomes, events = self._transaction(batch)
        except apsw.Error as error:
            self._failing = True
            failure = _failure(error, "the write did not happen")
            outcomes, events = [failure for _ in batch], []
        if events:
            self._staged = Staged(batch, outcomes, events)
            return
        # Nothing was written, or nothing may stay: the disk has no part in it.
        self._roll_back()
        self._completed(batch, outcomes, [])

    def _transaction(self, batch: list[Pending]) -> tuple[Sequence[Outcome], list[Event]]:
        rows(self._connection, "BEGIN IMMEDIATE")
        state = self._state_of({write.key for pending in batch for write in pending.writes})
        outcomes, events = evaluate(state, [pending.writes for pending in batch], self._newest)
        if events:
            # Taken before anything is written: a commit that fails half-way may still be found
            # on disk after a crash, so its revisions must not be given to others.
            self._newest = events[-1].revision
            self._insert(events, state)
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

    def _committed(self, staged: Staged, outcomes: Sequence[Outcome]) -> None:
        events = staged.events if outcomes is staged.outcomes else []
        self._completed(staged.batch, outcomes, events)

    def _returned(self) -> None:
        """Take the connection back from the thread."""
        self._ours = True
        if self._hanging:
            self._hanging = False
            log.info("the disk answers again", v=0)
        if not self._beginning:
            self._begin()

    def _committed_and_returned(self, staged: Staged, outcomes: Sequence[Outcome]) -> None:
        # The next batch first: the disk is what takes longest.
        self._returned()
        self._committed(staged, outcomes)

    # -- called in the thread ----------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._next_turn():
                self._take_turn()
        finally:
            self._ended = True
            self._notify_all()
            self._checkpoints.close()

    def _next_turn(self) -> bool:
        """Wait for the connection; False when it is only to be closed."""
        self._turn.acquire()
        return not self._closing

    def _take_turn(self) -> None:
        staged = self._staged
        if staged is not None:
            outcomes = self._commit(staged)
            self._staged = None
            if not self._chores and not self._checkpoints.due:
                self._notify(self._committed_and_returned, staged, outcomes)
                return
            self._notify(self._committed, staged, outcomes)
        if self._chores:
            self._do_chore()
        self._checkpoints.between_batches()
        if not self._commits and not self._chores:
            self._checkpoints.in_a_lull()
        self._notify(self._returned)

    def _notify(self, callback: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_soon_threadsafe(callback, *arguments)

    def _commit(self, staged: Staged) -> Sequence[Outcome]:
        try:
            rows(self._connection, "COMMIT")
        except apsw.Error as error:
            self._failing = True
            self._roll_back()
            # A commit that could not be synced is undone, but a crash before the next one may
            # leave it on disk as if it had succeeded.
            failure = _failure(error, "its outcome is unknown")
            return [failure for _ in staged.batch]
        self._failing = False
        return staged.outcomes

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
            self._notify(_fail, chore.waiter, Unavailable(_reason(error)))
            return
        if done:
            self._chores.popleft()
            self._notify(_succeed, chore.waiter)

    def _notify_all(self) -> None:
        """Answer whoever still waits when the thread ends; none does unless a bug ended it."""
        current = self._staged.batch if self._staged is not None else []
        waiters: list[asyncio.Future[Any]] = [p.waiter for p in (*current, *self._commits)]
        waiters += [chore.waiter for chore in self._chores]
        if waiters and not self._loop.is_closed():
            error = Unavailable("the writing thread ended; the outcome is unknown")
            self._notify(_fail_all, waiters, error)


def _failure(error: apsw.Error, known: str) -> Unavailable:
    """Say what is known of a batch that failed."""
    log.error("commit failed", error=error)
    return Unavailable(f"{_reason(error)}; {known}")


def _hangs(known: str) -> Unavailable:
    return Unavailable(f"the disk has not answered for {PATIENCE_SECONDS:g} s; {known}")


def _reason(error: apsw.Error) -> str:
    return "the disk is full" if isinstance(error, apsw.FullError) else f"the disk: {error}"


def _fail(waiter: asyncio.Future[Any], error: StoreError) -> None:
    if not waiter.done():
        waiter.set_exception(error)


def _fail_all(waiters: Sequence[asyncio.Future[Any]], error: StoreError) -> None:
    for waiter in waiters:
        _fail(waiter, error)


def _succeed(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
