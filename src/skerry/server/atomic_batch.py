"""Several writes of one cluster that happen together or not at all.

``POST /extensions/v1/atomic-batch`` carries requests as ``/extensions/v1/batch`` does. Each goes
through the engine in the name of the same user, authorized, admitted and audited as if it had come
alone, up to the point where it would be committed. There it waits for the others, and what all of
them write becomes one transaction of the store, in the order of the requests: whoever watches sees
the first before the second, and nobody ever finds the second without the first.

One that is refused, or finds that its object has changed, takes the others with it. They are
answered with 424: nothing was wrong with them, and nothing was written.

The parts hold no seats of their own among running requests: one that has a seat would wait for one
that has none. They share that of the request that brought them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from skerry.api.errors import ApiError, BadRequest, Denied
from skerry.kit.clock import Clock
from skerry.server.batch import PartTerms, encoded, parts_of, request_of
from skerry.server.extensions import ATOMIC_BATCH, Visit
from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.steps import timed
from skerry.store import base
from skerry.store.base import Store, StoreError, Write

# What one decision writes; the stores take this much in one transaction, with what admission adds.
_MAX_REQUESTS = 32
_METHODS = frozenset(("POST", "PUT", "PATCH"))


class AtomicBatches:
    """Carries atomic batches out through *handle*, the engine itself."""

    def __init__(
        self, handle: Callable[[Request], Coroutine[Any, Any, Answer]], store: Store, clock: Clock
    ) -> None:
        self._handle = handle
        self._store = store
        self._now = clock.monotonic

    async def handle(self, visit: Visit) -> Answer:
        """Answer with the codes, and with the bodies that were not declined."""
        parts = parts_of(visit.request.body, _METHODS, _MAX_REQUESTS)
        if not parts:
            raise BadRequest("an atomic batch without requests")
        for _, path in parts:
            _check_plain(path)
        transaction = _Transaction(self._store, len(parts))
        async with asyncio.TaskGroup() as tasks:
            answering = [
                tasks.create_task(self._part(visit, index, part, path, transaction))
                for index, (part, path) in enumerate(parts)
            ]
            await transaction.settle()
        answers = b",".join([encoded(task.result()) for task in answering])
        return Response(200, b'{"answers":[%b]}' % answers)

    async def _part(
        self, visit: Visit, index: int, part: PartTerms, path: str, transaction: _Transaction
    ) -> Answer:
        request = request_of(visit, part, path, ATOMIC_BATCH)
        request.commit = partial(transaction.commit, index)
        answer = await timed(self._handle(request), request, self._now)
        transaction.answered(index, refused=answer.status >= 300)
        return answer


class _Transaction:
    """What the parts of a batch write, committed when each of them has said what that is."""

    def __init__(self, store: Store, parts: int) -> None:
        self._store = store
        self._unheard = {*range(parts)}
        self._heard = asyncio.Event()
        self._writes: dict[int, Sequence[Write]] = {}
        self._waiting: dict[int, asyncio.Future[list[int]]] = {}
        self._refused = False

    async def commit(self, index: int, writes: Sequence[Write]) -> list[int]:
        """Have the *writes* of a part committed with the others; return their revisions."""
        if self._refused or index in self._writes:
            # Once is all: whoever would try again does so on what the others do not know.
            raise _aborted()
        self._writes[index] = writes
        done: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._waiting[index] = done
        self._hear(index)
        return await done

    def answered(self, index: int, *, refused: bool) -> None:
        """Take that a part was answered; before it had anything to write, unless it said so."""
        self._refused |= refused
        self._hear(index)

    def _hear(self, index: int) -> None:
        self._unheard.discard(index)
        if self._refused or not self._unheard:
            self._heard.set()

    async def settle(self) -> None:
        """Commit when all parts have been heard, or let go those that wait."""
        await self._heard.wait()
        order = sorted(self._writes)
        writes = [write for index in order for write in self._writes[index]]
        try:
            if self._refused or len({write.key for write in writes}) < len(writes):
                # Two that rewrite the same object would each undo what the other did to it.
                raise _aborted()
            revisions = await self._store.commit(writes) if writes else []
        except base.Conflict as conflict:
            self._lose(order, conflict)
        except (ApiError, StoreError) as error:
            self._refused = True
            for done in self._waiting.values():
                _fail(done, error)
        else:
            for index in order:
                count = len(self._writes[index])
                if not self._waiting[index].done():
                    self._waiting[index].set_result(revisions[:count])
                revisions = revisions[count:]

    def _lose(self, order: Sequence[int], conflict: base.Conflict) -> None:
        """Tell one part of its conflict, and the others that it had one."""
        self._refused = True
        first = 0
        for index in order:
            end = first + len(self._writes[index])
            error: Exception = _aborted()
            if first <= conflict.index < end:
                at = conflict.index - first
                error = base.Conflict(at, conflict.key, conflict.expected, conflict.actual)
            _fail(self._waiting[index], error)
            first = end


def _check_plain(path: str) -> None:
    """Refuse subresources other than status: some of them commit what they do themselves."""
    segments = path.split("/")[3 if path.startswith("/api/") else 4 :]
    if segments[:1] == ["namespaces"] and len(segments) > 2:
        segments = segments[2:]
    if len(segments) > 2 and segments[2:] != ["status"]:
        raise BadRequest(f"path {path[:256]!r} in an atomic batch: want an object or its status")


def _fail(waiter: asyncio.Future[list[int]], error: Exception) -> None:
    if not waiter.done():
        waiter.set_exception(error)


def _aborted() -> ApiError:
    return Denied(424, "FailedDependency", "another request of the batch was not carried out", {})
