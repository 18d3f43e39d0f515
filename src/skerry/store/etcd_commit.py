"""Commits to etcd: many in one transaction, each judged by itself.

etcd applies some thousand transactions a second, whatever is in them, so commits that wait
together travel together. The conditions of all of them guard the transaction; when it fails, its
failure branch has read every key concerned at that moment, which tells whose expectation did not
hold (they get their ``Conflict``) and who merely travelled in bad company (they go again).
Commits that touch the same key never share a transaction.

**Every operation takes effect.** An unconditional delete may find nothing, and then would not be
an event, and the positions of those behind it would shift. So it is guarded too: first by the
condition that the key exists; when that turns out wrong, it is sent again as the condition that
the key is missing, without an operation.

**Unknown outcomes.** When the connection breaks before the answer, the keys are read back: the
transaction's random mark on any of them proves that all of it happened. Otherwise the caller is
informed that the outcome is unknown: the request may still be on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from skerry.kit.ids import IdSource
from skerry.kit.invariant import invariant
from skerry.store import etcd_messages as messages
from skerry.store.base import Overloaded, StoreError, Unavailable, Write
from skerry.store.batch import State, misfit
from skerry.store.etcd_client import EtcdClient, OutcomeUnknown
from skerry.store.etcd_layout import (
    MARK_BYTES,
    Layout,
    Numbering,
    packed,
    packed_count,
    unpacked,
)

# Transactions under way at once: while one is synced to disk the next is on the wire.
CONCURRENT = 4
# etcd refuses requests above 1.5 MiB; a lone larger commit is sent and gets etcd's answer.
_MAX_BYTES = 1 << 20
# More waiting than this is an overload that clients should hear of.
_MAX_WAITING = 50_000
# While etcd does not answer, clients give up and come again; what they left must not fill memory.
MAX_WAITING_BYTES = 128 << 20


@dataclass(slots=True)
class _Pending:
    writes: Sequence[Write]
    waiter: asyncio.Future[list[int]]
    # Keys whose unconditional delete was found to have nothing to delete.
    missing: set[str] = field(default_factory=set)
    answered: bool = False
    # About what it takes in a transaction.
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = sum([len(each.key) + len(each.value or b"") + 64 for each in self.writes])

    def changes(self, write: Write) -> bool:
        """Tell whether *write* is an operation, or only a condition."""
        if write.value is not None:
            return True
        return write.expected != 0 and write.key not in self.missing


class Committer:
    """Merges commits into transactions. ``run`` is to be run by ``CONCURRENT`` tasks."""

    def __init__(
        self,
        client: EtcdClient,
        layout: Layout,
        numbering: Callable[[], Numbering],
        ids: IdSource,
        *,
        max_operations: int,
    ) -> None:
        self._client = client
        self._layout = layout
        self._numbering = numbering
        self._ids = ids
        # One operation of each transaction is the rewrite of ``meta/last``.
        self._max_operations = max_operations - 1
        self._queue: asyncio.Queue[_Pending] = asyncio.Queue(_MAX_WAITING)
        self._unanswered = 0
        self._unanswered_bytes = 0
        self._all_answered = asyncio.Event()
        self._all_answered.set()

    def submit(self, writes: Sequence[Write]) -> asyncio.Future[list[int]]:
        """Queue a commit; cancelling the future has no effect on the commit."""
        if len(writes) > self._max_operations:
            raise StoreError(
                f"{len(writes)} keys in one commit; this etcd takes {self._max_operations} "
                "(raise --max-txn-ops there and etcd_max_txn_ops here)"
            )
        for write in writes:
            # A key that has no bytes fails here, and not everybody's transaction.
            self._layout.key(write.key)
        waiter: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        pending = _Pending(writes, waiter)
        if self._queue.full() or self._unanswered_bytes >= MAX_WAITING_BYTES:
            raise Overloaded("too many writes are waiting; this one was not written")
        self._queue.put_nowait(pending)
        self._unanswered += 1
        self._unanswered_bytes += pending.size
        self._all_answered.clear()
        return waiter

    async def run(self) -> None:
        """Send what waits, for ever."""
        held: list[_Pending] = []
        try:
            while True:
                await self._turn(held)
        except BaseException:
            # The store is being closed, or there is a bug; nobody must wait for ever.
            unknown = "the store stopped while a write was under way; its outcome is unknown"
            self._fail(held, OutcomeUnknown(unknown))
            raise

    async def _turn(self, held: list[_Pending]) -> None:
        """Send one transaction of what is *held* and what waits; leave in it who goes again."""
        if not held:
            held.append(await self._queue.get())
            # Let the other commits of this turn of the loop join.
            await asyncio.sleep(0)
        held.extend(self._drained(self._max_operations - len(held)))
        batch, later = self._compatible(held)
        try:
            again = await self._send(batch)
        except StoreError as error:
            self._fail(batch, error)
            again = []
        held[:] = again + later

    async def finish(self) -> None:
        """Wait until everything queued so far was answered."""
        await self._all_answered.wait()

    def abandon(self) -> None:
        """Fail what was never sent."""
        closed = Unavailable("the store is closed; this was not written")
        self._fail(self._drained(_MAX_WAITING), closed)

    def _drained(self, limit: int) -> list[_Pending]:
        taken: list[_Pending] = []
        while len(taken) < limit and not self._queue.empty():
            taken.append(self._queue.get_nowait())
        return taken

    def _compatible(self, waiting: list[_Pending]) -> tuple[list[_Pending], list[_Pending]]:
        """Split into what may share a transaction and what must wait for the next."""
        batch: list[_Pending] = []
        later: list[_Pending] = []
        keys: set[str] = set()
        size = 0
        for pending in waiting:
            own = {write.key for write in pending.writes}
            size += pending.size
            fits = len(keys) + len(own) <= self._max_operations and size <= _MAX_BYTES
            if not batch or (fits and keys.isdisjoint(own)):
                batch.append(pending)
                keys |= own
            else:
                later.append(pending)
                # What waits for a key must not be overtaken by a later commit to it.
                keys |= own
        return batch, later

    async def _send(self, batch: list[_Pending]) -> list[_Pending]:
        """Commit *batch*; return those that have to go again."""
        mark = self._ids.bytes(MARK_BYTES)
        try:
            answer = await self._client.transact(self._request(batch, mark))
        except OutcomeUnknown as error:
            revision = None
            # Who is silent still is asked in vain; that says nothing new about the write.
            with suppress(Unavailable):
                revision = await self._found(batch, mark)
            if revision is None:
                raise error from error.__cause__
            self._succeed(batch, revision)
            return []
        if answer.succeeded:
            self._succeed(batch, answer.revision)
            return []
        return self._sorted_out(batch, answer)

    def _request(self, batch: list[_Pending], mark: bytes) -> bytes:
        compare: list[bytes] = []
        success: list[bytes] = []
        failure: list[bytes] = []
        for pending in batch:
            for write in pending.writes:
                key = self._layout.key(write.key)
                condition = self._condition(pending, write, key)
                if condition is not None:
                    compare.append(condition)
                    failure.append(messages.range_operation(messages.range_request(key)))
                if write.value is not None:
                    value = packed(write.value, len(success), mark)
                    success.append(messages.put_operation(key, value))
                elif pending.changes(write):
                    success.append(messages.delete_operation(key))
        if success:
            count = packed_count(len(success))
            success.append(messages.put_operation(self._layout.last, count))
        return messages.txn_request(compare, success, failure)

    def _condition(self, pending: _Pending, write: Write, key: bytes) -> bytes | None:
        if write.expected is not None:
            return messages.written_at(key, self._expected(write.expected))
        if write.value is not None:
            return None
        return messages.exists(key) if pending.changes(write) else messages.written_at(key, 0)

    def _expected(self, revision: int) -> int:
        """Return etcd's revision for an expectation; a revision we never gave out fits nothing."""
        if revision == 0:
            return 0
        wanted = self._numbering().etcd_revision(revision)
        return wanted if wanted > 0 else 1 << 62

    def _succeed(self, batch: list[_Pending], etcd_revision: int) -> None:
        numbering = self._numbering()
        position = 0
        for pending in batch:
            revisions = []
            for write in pending.writes:
                if pending.changes(write):
                    revisions.append(numbering.revision(etcd_revision, position))
                    position += 1
                else:
                    revisions.append(0)
            self._answer(pending, revisions)

    def _sorted_out(self, batch: list[_Pending], answer: messages.Transacted) -> list[_Pending]:
        """Judge each commit by what the failure branch read; return who may go again."""
        state = self._state(answer)
        again = []
        for pending in batch:
            conflict = misfit(state, pending.writes)
            if conflict is not None:
                self._answer(pending, conflict)
                continue
            pending.missing = {
                write.key
                for write in pending.writes
                if write.value is None and write.expected is None and write.key not in state
            }
            if any(pending.changes(write) for write in pending.writes):
                again.append(pending)
            else:
                self._answer(pending, [0] * len(pending.writes))
        return again

    def _state(self, answer: messages.Transacted) -> State:
        numbering, state = self._numbering(), State()
        for found in answer.ranges:
            for stored in found.entries:
                key = self._layout.name(stored.key)
                invariant(key is not None, "a transaction read a key outside the store")
                entry = numbering.entry(stored, key or "")
                state[entry.key] = (entry.revision, entry.value)
        return state

    async def _found(self, batch: list[_Pending], mark: bytes) -> int | None:
        """Return the revision of the transaction with *mark*, where its traces are still there."""
        keys = [write.key for p in batch for write in p.writes if write.value is not None]
        if not keys:
            return None
        requests = [messages.range_request(self._layout.key(key)) for key in keys]
        for found in await self._client.read(*requests):
            for stored in found.entries:
                if unpacked(stored.value)[1] == mark:
                    return stored.revision
        return None

    def _answer(self, pending: _Pending, outcome: list[int] | StoreError) -> None:
        if pending.answered:
            return
        pending.answered = True
        self._unanswered -= 1
        self._unanswered_bytes -= pending.size
        if not self._unanswered:
            self._all_answered.set()
        if pending.waiter.done():
            return
        if isinstance(outcome, StoreError):
            pending.waiter.set_exception(outcome)
        else:
            pending.waiter.set_result(outcome)

    def _fail(self, batch: Sequence[_Pending], error: StoreError) -> None:
        for pending in batch:
            self._answer(pending, error)
