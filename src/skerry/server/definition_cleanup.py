"""Deleting a type deletes its objects first.

A CustomResourceDefinition that is being deleted keeps the clean-up finalizer until no object of
its types is left. Objects with finalizers of their own may take their time: each of their
deletions enqueues the type again.
"""

from __future__ import annotations

import asyncio

from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.server.admission.definitions import CLEANUP
from skerry.server.catalogue import CRD_PREFIX
from skerry.server.change import Change
from skerry.server.codec import decode, encode
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Conflict, Store, Write


class DefinitionCleanup:
    """Removes the objects of types that are being deleted."""

    def __init__(self, store: Store, dispatcher: Dispatcher, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._terminating: dict[str, None] = {}
        self._pending = asyncio.Event()
        dispatcher.observe(CRD_PREFIX, self._observe)
        self._dispatcher = dispatcher
        self._observed: set[str] = set()

    def _observe(self, change: Change) -> None:
        value = change.event.value
        if value is None:
            self._terminating.pop(change.event.key, None)
        elif "deletionTimestamp" in decode(value, change.event.revision)["metadata"]:
            self._terminating[change.event.key] = None
            self._pending.set()

    def _instance_changed(self, change: Change) -> None:
        if change.event.value is None and self._terminating:
            self._pending.set()

    async def run(self) -> None:
        """Clean up whenever there is something to, for ever."""
        for entry in (await self._store.range(CRD_PREFIX)).entries:
            if "deletionTimestamp" in decode(entry.value, entry.revision)["metadata"]:
                self._terminating[entry.key] = None
                self._pending.set()
        while True:
            await self._pending.wait()
            self._pending.clear()
            for key in list(self._terminating):
                await self._clean(key)

    async def _clean(self, key: str) -> None:
        entry = await self._store.get(key)
        if entry is None:
            self._terminating.pop(key, None)
            return
        definition = decode(entry.value, entry.revision)
        if CLEANUP not in definition["metadata"].get("finalizers", []):
            self._terminating.pop(key, None)
            return
        group, resource = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        everywhere = type_prefix(group, resource)
        if everywhere not in self._observed:
            self._observed.add(everywhere)
            self._dispatcher.observe(everywhere, self._instance_changed)
        cluster = ObjectKey.parse(key).cluster
        if await self._delete_instances(type_prefix(group, resource, cluster)):
            await self._release(key, entry.revision, definition)

    async def _delete_instances(self, prefix: str) -> bool:
        """Delete, or mark, every object below *prefix*; tell whether none is left."""
        left = False
        for entry in (await self._store.range(prefix)).entries:
            obj = decode(entry.value, entry.revision)
            metadata = obj["metadata"]
            write = Write(entry.key, None, expected=entry.revision)
            if metadata.get("finalizers"):
                left = True
                if "deletionTimestamp" in metadata:
                    continue
                metadata["deletionTimestamp"] = rfc3339(self._clock.now())
                metadata["deletionGracePeriodSeconds"] = 0
                write = Write(entry.key, encode(obj), expected=entry.revision)
            try:
                await self._store.commit([write])
            except Conflict:
                left = True
                self._pending.set()
        return not left

    async def _release(self, key: str, revision: int, definition: Object) -> None:
        metadata = definition["metadata"]
        metadata["finalizers"] = [f for f in metadata["finalizers"] if f != CLEANUP]
        value = encode(definition) if metadata["finalizers"] else None
        try:
            await self._store.commit([Write(key, value, expected=revision)])
        except Conflict:
            self._pending.set()
            return
        self._terminating.pop(key, None)
