"""What there is to compute for one write, here or in a worker process.

Both do the same with the same functions. Here, the body is read at once, so that what is wrong
with it is said before anything is looked up; a worker reads it with each task.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol

import msgspec
import orjson

from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.remote_conversion import ConversionNeeded
from skerry.logic.machinery.work import LongWork
from skerry.server.codec import decode, loads
from skerry.server.conversion import completed, later
from skerry.server.offload import messages
from skerry.server.offload.jobs import same
from skerry.server.offload.offload import Offload, Worker
from skerry.server.preparation.draft import Draft
from skerry.server.preparation.pipeline import Changed, Creation, Mutation, Preparation
from skerry.server.request.call import Call
from skerry.server.request.options import WriteOptions
from skerry.store.base import Entry


class Drafted(msgspec.Struct, frozen=True):
    """A new object, complete but for admission; ``generated`` when its name was."""

    draft: Draft
    generated: bool


class Work(Protocol):
    """The computing of one write."""

    @property
    def pinned(self) -> bool:
        """Whether the request names the version it changes; known after the first change."""

    async def drafted(self) -> Drafted:
        """Return the new object that the request describes."""

    async def changed(self, entry: Entry, subresource: str) -> Changed | None:
        """Return the stored object as the request changes it; None when it is as desired."""

    async def finished(
        self, new: Object, old: Object | None, entry: Entry | None, subresource: str
    ) -> bytes | None:
        """Return the stored form of what admission let through; None when it is *entry*'s."""


class LocalWork:
    """Computes on the loop: for ordinary bodies the shortest way."""

    __slots__ = ("_call", "_ids", "_mutation", "_now", "_offload", "_options", "_preparation")

    def __init__(
        self,
        preparation: Preparation,
        call: Call,
        options: WriteOptions,
        mutation: Mutation,
        now: str,
        ids: IdSource,
        *,
        offload: Offload,
    ) -> None:
        self._preparation = preparation
        self._offload = offload
        self._call = call
        self._options = options
        self._mutation = mutation
        # When the request was made, however often it has to be tried.
        self._now = now
        self._ids = ids

    @property
    def pinned(self) -> bool:
        return bool(self._mutation.resource_version)

    async def drafted(self) -> Drafted:
        generated: list[str] = []

        def suffix() -> str:
            generated.append(self._ids.suffix())
            return generated[-1]

        creation = Creation(self._now, self._ids.uid, suffix)
        draft = partial(
            self._preparation.drafted, self._call, self._options, self._mutation, creation
        )
        return Drafted(Draft(draft(), draft), bool(generated))

    async def changed(self, entry: Entry, subresource: str) -> Changed | None:
        if self._call.resource.webhook is None:
            return self._changed(entry, subresource)
        return await completed(later(lambda: self._changed(entry, subresource)))

    def _changed(self, entry: Entry, subresource: str) -> Changed | None:
        changed = self._preparation.changed(
            self._call, self._options, self._mutation, entry, subresource, self._now
        )
        if changed is None:
            self._preparation.warn(self._call, decode(entry.value, entry.revision))
        return changed

    async def finished(
        self, new: Object, old: Object | None, entry: Entry | None, subresource: str
    ) -> bytes | None:
        def finished() -> bytes:
            return self._preparation.finished(
                self._call, new, old, subresource=subresource, trusted=self._mutation.trusted
            )

        try:
            value = self._offload.short(finished)
        except LongWork:
            # Nothing was changed: what takes long is validation, which comes first.
            worker = self._offload.worker(self._call, self._options)
            if worker is not None:
                return await _finished_by(worker, new, entry, subresource)
            value = await completed(later(finished))
        except ConversionNeeded:
            value = await completed(later(finished))
        return None if entry is not None and same(value, entry) else value


class RemoteWork:
    """Computes in a worker process."""

    __slots__ = ("_call", "_clock", "_ids", "_mutation", "_owned", "_worker", "pinned")

    def __init__(
        self, worker: Worker, call: Call, mutation: str, clock: Clock, ids: IdSource
    ) -> None:
        self._worker = worker
        self._call = call
        self._mutation = mutation
        self._clock = clock
        self._ids = ids
        self._owned = b""
        self.pinned = False

    async def drafted(self) -> Drafted:
        uid, suffix = self._ids.uid(), self._ids.suffix()
        task = messages.Draft(self._mutation, rfc3339(self._clock.now()), uid, suffix)
        done = await self._worker.do(task)
        self._owned = done.owned
        # To be heard takes a while, and so does being decoded.
        await asyncio.sleep(0)
        draft = Draft(loads(done.text), partial(loads, done.text))
        await asyncio.sleep(0)
        return Drafted(draft, done.generated)

    async def changed(self, entry: Entry, subresource: str) -> Changed | None:
        task = messages.Change(
            self._mutation, rfc3339(self._clock.now()), entry.value, entry.revision, subresource
        )
        done = await self._worker.do(task)
        self.pinned = done.pinned
        if done.unchanged:
            return None
        self._owned = done.owned
        # Each takes a while of its own: to be heard, and twice to be decoded.
        await asyncio.sleep(0)
        new: Object = loads(done.text)
        await asyncio.sleep(0)
        old: Object = loads(done.old)
        await asyncio.sleep(0)
        return Changed(new, old)

    async def finished(
        self, new: Object, old: Object | None, entry: Entry | None, subresource: str
    ) -> bytes | None:
        return await _finished_by(self._worker, new, entry, subresource, self._owned)


async def _finished_by(
    worker: Worker, new: Object, entry: Entry | None, subresource: str, owned: bytes = b""
) -> bytes | None:
    await asyncio.sleep(0)
    text = orjson.dumps(new)
    await asyncio.sleep(0)
    task = messages.Finish(text, owned)
    if entry is not None:
        task = messages.Finish(text, owned, entry.value, entry.revision, subresource)
    done = await worker.do(task)
    return None if done.unchanged else done.text


def local_work(
    preparation: Preparation,
    call: Call,
    options: WriteOptions,
    name: str,
    clock: Clock,
    ids: IdSource,
    *,
    offload: Offload,
) -> LocalWork:
    """Return the work of a request, its body read as *name* says."""
    now = rfc3339(clock.now())
    mutation = preparation.mutation(name, call, options, now)
    return LocalWork(preparation, call, options, mutation, now, ids, offload=offload)


def remote_work(
    offload: Offload, call: Call, options: WriteOptions, name: str, clock: Clock, ids: IdSource
) -> RemoteWork | None:
    """Return the work of a request in a worker; None where no worker can do it."""
    worker = offload.worker(call, options)
    return None if worker is None else RemoteWork(worker, call, name, clock, ids)
