"""What takes its time: emptying workspaces and bindings that go, following exports that change.

Nothing here polls. A workspace or binding that is being deleted is queued when it is marked, and
again whenever something in it goes; an export's bindings when the export changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from skerry.api.keys import ObjectKey, type_prefix
from skerry.kit.clock import Clock, rfc3339
from skerry.kit.log import Logger
from skerry.logic.resource import Object
from skerry.logic.workspaces.bindings import FINALIZER, bound_status
from skerry.logic.workspaces.births import (
    CLUSTER_FINALIZER,
    PHASE_LABEL,
    WORKSPACE_FINALIZER,
)
from skerry.server.codec import decode, encode
from skerry.server.watch.change import Change
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.state import APIS, CORE, TENANCY, HubState
from skerry.store.base import Conflict, Entry, Store, Write

log = Logger("workspaces")

# Deletes per transaction: large enough to be quick, small enough not to hold others up.
_BATCH = 100
# What the server notes beside objects.
_SERVER_KEYS = (("marks", "default-location"), ("allocations", "services"))


class WorkspaceUpkeep:
    """Finishes deletions and re-binds."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        state: HubState,
        catalogue: HubCatalogue,
        clock: Clock,
        tenancy_identity: str,
    ) -> None:
        self._store = store
        self._dispatcher = dispatcher
        self._state = state
        self._catalogue = catalogue
        self._clock = clock
        self._workspaces = f"workspaces:{tenancy_identity}"
        self._due: dict[str, None] = {}
        # Clusters being emptied, with the key of the workspace they belong to.
        self._emptying: dict[str, str] = {}
        self._wake = asyncio.Event()
        dispatcher.observe(type_prefix(TENANCY, self._workspaces), self._marked)
        dispatcher.observe(type_prefix(APIS, "apibindings"), self._marked)
        dispatcher.observe(type_prefix(APIS, "apiexports"), self._export_changed)

    def _marked(self, change: Change) -> None:
        event = change.event
        if event.value is None:
            # Something went from a cluster that may be waiting for just that.
            self._nudge(ObjectKey.parse(event.key).cluster)
        elif b'"deletionTimestamp"' in event.value:
            self._queue(event.key)

    def _nudge(self, cluster: str) -> None:
        if cluster in self._emptying:
            self._queue(self._emptying[cluster])

    def _export_changed(self, change: Change) -> None:
        if change.event.value is not None and change.event.previous is not None:
            self._queue(change.event.key)

    def _queue(self, key: str) -> None:
        self._due[key] = None
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        for resource, group in ((self._workspaces, TENANCY), ("apibindings", APIS)):
            for entry in (await self._store.range(type_prefix(group, resource))).entries:
                if b'"deletionTimestamp"' in entry.value:
                    self._queue(entry.key)
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                key = next(iter(self._due))
                del self._due[key]
                await self._handle(key)

    async def _handle(self, key: str) -> None:
        entry = await self._store.get(key)
        if entry is None:
            return
        obj, parsed = decode(entry.value, entry.revision), ObjectKey.parse(key)
        try:
            if parsed.resource == "apiexports":
                await self._rebind(parsed)
            elif "deletionTimestamp" not in obj["metadata"]:
                return
            elif parsed.resource == "apibindings":
                await self._unbind(entry, obj, parsed)
            else:
                await self._empty_workspace(entry, obj)
        except Conflict:
            # Somebody else wrote; look again.
            self._queue(key)

    # -- workspaces --------------------------------------------------------------------------

    async def _empty_workspace(self, entry: Entry, workspace: Object) -> None:
        if WORKSPACE_FINALIZER not in workspace["metadata"].get("finalizers", []):
            return
        cluster = (workspace.get("spec") or {}).get("cluster", "")
        if cluster:
            self._emptying[cluster] = entry.key
            await self._mark_cluster(cluster)
            if not await self._empty(cluster):
                return
            self._emptying.pop(cluster, None)
        writes = [_without_finalizer(entry, workspace, WORKSPACE_FINALIZER)]
        if cluster:
            writes.append(Write(_cluster_key(cluster), None))
        await self._store.commit(writes)
        log.info("workspace deleted", v=2, key=entry.key, cluster=cluster)

    async def _mark_cluster(self, cluster: str) -> None:
        """Say that the logical cluster is going away."""
        entry = await self._store.get(_cluster_key(cluster))
        if entry is None:
            return
        obj = decode(entry.value, entry.revision)
        if _mark(obj, rfc3339(self._clock.now())):
            obj["metadata"].setdefault("labels", {})[PHASE_LABEL] = "Deleting"
            await self._store.commit([Write(entry.key, encode(obj), expected=entry.revision)])

    async def _empty(self, cluster: str) -> bool:
        """Delete everything in *cluster*; tell whether nothing is left."""
        left = False
        for kind, what in _SERVER_KEYS:
            await self._delete_raw(type_prefix(kind, what, cluster))
        for resource in self._catalogue.types(cluster).stored:
            info = resource.info
            if (info.group, info.resource) == (CORE, "logicalclusters"):
                continue
            prefix = type_prefix(info.group, resource.storage_resource, cluster)
            waits = await self._delete_all(prefix)
            if waits:
                left = True
                self._dispatcher.observe_once(
                    type_prefix(info.group, resource.storage_resource),
                    prefix,
                    lambda: self._nudge(cluster),
                )
        return not left

    async def _delete_all(self, prefix: str) -> bool:
        """Delete what lies below *prefix*; mark what has finalizers and tell of it."""
        waits = False
        async for batch in _batches(self._store, prefix):
            writes = []
            for entry in batch:
                obj = decode(entry.value, entry.revision)
                finalizers = [
                    name
                    for name in obj["metadata"].get("finalizers", [])
                    if name not in (FINALIZER, CLUSTER_FINALIZER)
                ]
                if not finalizers:
                    writes.append(Write(entry.key, None, expected=entry.revision))
                    continue
                waits = True
                if _mark(obj, rfc3339(self._clock.now())):
                    writes.append(Write(entry.key, encode(obj), expected=entry.revision))
            if writes:
                await self._store.commit(writes)
        return waits

    async def _delete_raw(self, prefix: str) -> None:
        """Delete keys of the server's own, which are no objects."""
        async for batch in _batches(self._store, prefix):
            await self._store.commit([Write(entry.key, None) for entry in batch])

    # -- bindings ----------------------------------------------------------------------------

    async def _unbind(self, entry: Entry, obj: Object, key: ObjectKey) -> None:
        if FINALIZER not in obj["metadata"].get("finalizers", []):
            return
        for bound in (obj.get("status") or {}).get("boundResources") or []:
            resource = f"{bound['resource']}:{bound['schema']['identityHash']}"
            prefix = type_prefix(bound["group"], resource, key.cluster)
            if await self._delete_all(prefix):
                self._dispatcher.observe_once(
                    type_prefix(bound["group"], resource),
                    prefix,
                    lambda: self._queue(entry.key),
                )
                return
        await self._store.commit([_without_finalizer(entry, obj, FINALIZER)])

    async def _rebind(self, key: ObjectKey) -> None:
        """Bring every binding of an export up to date with it."""
        for cluster in list(self._state.bound_clusters(key.cluster, key.name)):
            for name, binding in list(self._state.bindings.get(cluster, {}).items()):
                if (binding.export_cluster, binding.export_name) == (key.cluster, key.name):
                    await self._refresh(cluster, name)

    async def _refresh(self, cluster: str, name: str) -> None:
        entry = await self._store.get(ObjectKey(APIS, "apibindings", cluster, "", name).path())
        if entry is None:
            return
        obj = decode(entry.value, entry.revision)
        reference = obj["spec"]["reference"]["export"]
        export = self._state.export(reference.get("path", ""), reference["name"], cluster)
        taken = self._state.taken_names(cluster, name, self._catalogue.definitions(cluster))
        old = obj.get("status") or {}
        status = bound_status(export, taken, obj["spec"], old, rfc3339(self._clock.now()))
        if status != old:
            obj["status"] = status
            await self._store.commit([Write(entry.key, encode(obj), expected=entry.revision)])


async def _batches(store: Store, prefix: str) -> AsyncIterator[Sequence[Entry]]:
    after = ""
    while True:
        page = await store.range(prefix, after=after, limit=_BATCH)
        if page.entries:
            yield page.entries
        if not page.more:
            return
        after = page.entries[-1].key


def _mark(obj: Object, now: str) -> bool:
    """Mark *obj* as being deleted; tell whether it was not."""
    if "deletionTimestamp" in obj["metadata"]:
        return False
    obj["metadata"] |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
    return True


def _without_finalizer(entry: Entry, obj: Object, finalizer: str) -> Write:
    """Return the write that takes *finalizer* off, which deletes the object if it was the last."""
    kept = [name for name in obj["metadata"].get("finalizers", []) if name != finalizer]
    if not kept:
        return Write(entry.key, None, expected=entry.revision)
    obj["metadata"]["finalizers"] = kept
    return Write(entry.key, encode(obj), expected=entry.revision)


def _cluster_key(cluster: str) -> str:
    return ObjectKey(CORE, "logicalclusters", cluster, "", "cluster").path()
