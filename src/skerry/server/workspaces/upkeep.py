"""What takes its time: emptying workspaces and bindings that go, following exports that change.

Nothing here polls. A workspace or binding that is being deleted is queued when it is marked, and
again whenever something in it goes; an export's bindings when the export changes, bindings that
lack something when what they lack may have come, slices with their export and Partition, and
PartitionSets with the Shards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from skerry.api.kcp.compute import TOPOLOGY
from skerry.api.keys import ObjectKey, type_prefix
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.workspaces.bindings import (
    FINALIZER,
    agreed_spec,
    bound_status,
    is_pinned_elsewhere,
)
from skerry.logic.machinery.workspaces.names import ROOT
from skerry.logic.machinery.workspaces.remaining import set_condition
from skerry.logic.machinery.workspaces.workspace_content import (
    CLUSTER_FINALIZER,
    PHASE_LABEL,
    WORKSPACE_FINALIZER,
)
from skerry.server.catalogue import CRD_PREFIX
from skerry.server.change import Change
from skerry.server.codec import decode, encode
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.emptying import Emptied, Emptying, mark, without_finalizer
from skerry.server.workspaces.exports import export_reference, identity_key, verify_identity
from skerry.server.workspaces.partition_sets import SETS, PartitionSets
from skerry.server.workspaces.slices import SLICES, Slices
from skerry.server.workspaces.state import APIS, CORE, KEPT_SCHEMAS, TENANCY, HubState
from skerry.store.base import Conflict, Entry, Store, Write

log = Logger("workspaces")

_MARKED = b'"deletionTimestamp"'
# Side by side, so that the store commits several at once; each is a few milliseconds of reading.
_WORKERS = 8


class WorkspaceUpkeep:
    """Finishes deletions and re-binds."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        state: HubState,
        catalogue: HubCatalogue,
        clock: Clock,
        slices: Slices,
        partition_sets: PartitionSets,
        tenancy_identity: str,
        *,
        holding: frozenset[GroupResource] = frozenset(),
    ) -> None:
        """Types in *holding* go before all others, which stay while one of those is held back."""
        self._store = store
        self._dispatcher = dispatcher
        self._state = state
        self._catalogue = catalogue
        self._clock = clock
        self._slices = slices
        self._partition_sets = partition_sets
        self._emptying = Emptying(
            store, dispatcher, state, catalogue, clock, f"workspaces:{tenancy_identity}", holding
        )
        self._due: dict[str, None] = {}
        self._handled: set[str] = set()
        # Clusters being emptied, with the key of what they belong to.
        self._terminating: dict[str, str] = {}
        self._pending = asyncio.Event()
        self._prefixes = (
            type_prefix(TENANCY, f"workspaces:{tenancy_identity}"),
            type_prefix(CORE, "logicalclusters"),
            type_prefix(APIS, "apibindings"),
        )
        for prefix in self._prefixes:
            dispatcher.observe(prefix, self._marked)
        dispatcher.observe(type_prefix(APIS, "apiexports"), self._offer_changed)
        dispatcher.observe(type_prefix(APIS, "apiresourceschemas"), self._offer_changed)
        dispatcher.observe(CRD_PREFIX, self._names_changed)
        dispatcher.observe(type_prefix("", "secrets"), self._secret_changed)
        # Of whichever export Partitions come.
        dispatcher.observe(type_prefix(TOPOLOGY, "partitions")[:-1], self._partition_changed)
        dispatcher.observe(type_prefix(*SETS)[:-1], self._partition_set_changed)
        dispatcher.observe(type_prefix(CORE, "shards"), self._shard_changed)

    def _marked(self, change: Change) -> None:
        event = change.event
        if event.value is None:
            # Something went from a cluster that may be waiting for just that.
            cluster = ObjectKey.parse(event.key).cluster
            self._nudge(cluster)
            self._retry_waiting(cluster)
        elif _MARKED in event.value:
            self._queue(event.key)

    def _nudge(self, cluster: str) -> None:
        if cluster in self._terminating:
            self._queue(self._terminating[cluster])

    def _offer_changed(self, change: Change) -> None:
        key = ObjectKey.parse(change.event.key)
        if key.resource == "apiexports":
            self._queue_slices(key)
            if change.event.previous is not None:
                self._queue(change.event.key)
        elif change.event.value is not None and change.event.previous is None:
            for export in self._offering(key):
                self._queue(ObjectKey(APIS, "apiexports", key.cluster, "", export).path())
        if self._state.waiting:
            self._retry_waiting()

    def _queue_slices(self, export: ObjectKey) -> None:
        """Look at the slices of an export that came, went or changed."""
        for (cluster, name), obj in self._state.slices.items():
            reference = (obj.get("spec") or {}).get("export") or {}
            path = reference.get("path", "")
            where = self._state.resolve(path) if path else cluster
            if (where, reference.get("name")) == (export.cluster, export.name):
                self._queue(ObjectKey(*SLICES, cluster, "", name).path())

    def _partition_changed(self, change: Change) -> None:
        """Look at the slices that name a Partition which came, went or changed, and its set."""
        key, owner = ObjectKey.parse(change.event.key), self._partition_sets.owner(change)
        if owner:
            self._queue(owner)
        for (cluster, name), obj in self._state.slices.items():
            if cluster == key.cluster and (obj.get("spec") or {}).get("partition") == key.name:
                self._queue(ObjectKey(*SLICES, cluster, "", name).path())

    def _partition_set_changed(self, change: Change) -> None:
        due = self._partition_sets.changed(change)
        if due:
            self._queue(due)

    def _shard_changed(self, change: Change) -> None:
        """Look at every slice and every PartitionSet: what they say is of Shards."""
        for key in self._partition_sets.all():
            self._queue(key)
        for cluster, name in self._state.slices:
            self._queue(ObjectKey(*SLICES, cluster, "", name).path())

    def _offering(self, schema: ObjectKey) -> Iterator[str]:
        for (cluster, name), export in self._state.exports.items():
            wanted = (export.get("spec") or {}).get("latestResourceSchemas") or ()
            if cluster == schema.cluster and schema.name in wanted:
                yield name

    def _names_changed(self, change: Change) -> None:
        if change.event.value is None:
            self._retry_waiting(ObjectKey.parse(change.event.key).cluster)

    def _secret_changed(self, change: Change) -> None:
        """Look again at exports of the cluster whose identity was not to be had."""
        if self._state.unidentified and change.event.value is not None:
            cluster = ObjectKey.parse(change.event.key).cluster
            for where, name in self._state.unidentified:
                if where == cluster:
                    self._queue(ObjectKey(APIS, "apiexports", cluster, "", name).path())

    def _retry_waiting(self, only: str = "") -> None:
        """Look again at bindings that lack something."""
        for cluster, name in self._state.waiting:
            if only in ("", cluster):
                self._queue(ObjectKey(APIS, "apibindings", cluster, "", name).path())

    def _queue(self, key: str) -> None:
        self._due[key] = None
        self._pending.set()

    async def run(self) -> None:
        """Work until cancelled."""
        for prefix in self._prefixes:
            for entry in (await self._store.range(prefix)).entries:
                if _MARKED in entry.value:
                    self._queue(entry.key)
        for key in await self._partition_sets.load():
            self._queue(key)
        self._retry_waiting()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_WORKERS):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        """Handle what is due, one key at a time, and no key twice at once."""
        while True:
            key = next((k for k in self._due if k not in self._handled), None)
            if key is None:
                self._pending.clear()
                await self._pending.wait()
                continue
            del self._due[key]
            self._handled.add(key)
            try:
                await self._handle(key)
            finally:
                self._handled.discard(key)
                self._pending.set()

    async def _handle(self, key: str) -> None:
        entry, parsed = await self._store.get(key), ObjectKey.parse(key)
        try:
            if parsed.resource == "apiexports":
                await self._identify(entry)
                await self._rebind(parsed)
                return
            if entry is None:
                return
            obj = decode(entry.value, entry.revision)
            marked = "deletionTimestamp" in obj["metadata"]
            if parsed.resource == SLICES[1]:
                await self._settle_slice(entry, obj, parsed.cluster)
            elif (parsed.group, parsed.resource.partition(":")[0]) == SETS:
                await self._partition_sets.settle(entry, obj, parsed)
            elif parsed.resource == "apibindings":
                await (self._unbind(entry, obj, parsed) if marked else self._refresh(parsed))
            elif marked and parsed.resource == "logicalclusters":
                await self._empty_cluster(entry, obj, parsed)
            elif marked:
                await self._empty_workspace(entry, obj)
        except Conflict:
            # Somebody else wrote; look again.
            self._queue(key)

    # -- workspaces --------------------------------------------------------------------------

    async def _empty_workspace(self, entry: Entry, workspace: Object) -> None:
        if WORKSPACE_FINALIZER not in workspace["metadata"].get("finalizers", []):
            return
        cluster = (workspace.get("spec") or {}).get("cluster", "")
        last = [without_finalizer(entry, workspace, WORKSPACE_FINALIZER)]
        if not cluster or not await self._owns(workspace, cluster):
            await self._store.commit(last)
            return
        last.append(Write(_cluster_key(cluster), None))
        if await self._emptied(cluster, entry.key, last):
            log.info("workspace deleted", v=2, key=entry.key, cluster=cluster)

    async def _owns(self, workspace: Object, cluster: str) -> bool:
        """Tell whether the logical cluster says it belongs to that Workspace.

        What only one side says is no reason to delete anything.
        """
        entry = await self._store.get(_cluster_key(cluster))
        if entry is None:
            return True
        owner = (decode(entry.value, entry.revision).get("spec") or {}).get("owner") or {}
        return bool(owner.get("uid") == workspace["metadata"]["uid"])

    async def _empty_cluster(self, entry: Entry, cluster: Object, key: ObjectKey) -> None:
        """Empty a cluster that was deleted itself; one with a Workspace goes with that."""
        if (cluster.get("spec") or {}).get("owner"):
            return
        last = [without_finalizer(entry, cluster, CLUSTER_FINALIZER)]
        await self._emptied(key.cluster, entry.key, last)

    async def _emptied(self, cluster: str, owner: str, last: Sequence[Write]) -> bool:
        """Remove what is in *cluster*, then do what comes *last*; tell whether that was done."""
        self._terminating[cluster] = owner
        await self._mark_cluster(cluster)
        result = await self._emptying.empty(cluster, last)
        if result.waits:
            self._await(result, partial(self._nudge, cluster))
            await self._report({owner, _cluster_key(cluster)}, result)
            return False
        self._terminating.pop(cluster, None)
        return True

    async def _report(self, keys: Iterable[str], result: Emptied) -> None:
        """Say in a workspace and its logical cluster what is left, if they do not say so."""
        condition, now = result.remaining.workspace_condition(), rfc3339(self._clock.now())
        writes = []
        for key in sorted(keys):
            entry = await self._store.get(key)
            obj = None if entry is None else decode(entry.value, entry.revision)
            if entry is not None and obj is not None and set_condition(obj, condition, now):
                writes.append(Write(key, encode(obj), expected=entry.revision))
        if writes:
            await self._store.commit(writes)

    async def _mark_cluster(self, cluster: str) -> None:
        """Mark the logical cluster as being deleted, and wait until this server knows."""
        entry = await self._store.get(_cluster_key(cluster))
        if entry is None:
            return
        obj = decode(entry.value, entry.revision)
        if mark(obj, rfc3339(self._clock.now())):
            obj["metadata"].setdefault("labels", {})[PHASE_LABEL] = "Deleting"
            write = Write(entry.key, encode(obj), expected=entry.revision)
            await self._dispatcher.reached(max(await self._store.commit([write])))

    def _await(self, result: Emptied, action: partial[None]) -> None:
        """Look again when something goes of what could not be removed."""
        for everywhere, here in result.waits:
            self._dispatcher.observe_once(everywhere, here, action)

    # -- bindings ----------------------------------------------------------------------------

    async def _unbind(self, entry: Entry, obj: Object, key: ObjectKey) -> None:
        if FINALIZER not in obj["metadata"].get("finalizers", []):
            return
        bound = [
            (each["group"], f"{each['resource']}:{each['schema']['identityHash']}")
            for each in (obj.get("status") or {}).get("boundResources") or []
        ]
        result = await self._emptying.remove(key.cluster, bound)
        if result.waits:
            self._await(result, partial(self._queue, entry.key))
            condition = result.remaining.binding_condition()
            if set_condition(obj, condition, rfc3339(self._clock.now())):
                await self._store.commit([Write(entry.key, encode(obj), expected=entry.revision)])
            return
        await self._store.commit([without_finalizer(entry, obj, FINALIZER)])
        await self._forget_schemas()

    async def _forget_schemas(self) -> None:
        """Let go of schemas that were kept for bindings, when the last of those is gone."""
        unused = [uid for uid in self._state.kept if not self._state.uses(uid)]
        if unused:
            keys = [ObjectKey(*KEPT_SCHEMAS, ROOT, "", uid).path() for uid in unused]
            await self._store.commit([Write(key, None) for key in keys])

    async def _identify(self, entry: Entry | None) -> None:
        """Give an export its identity, if the Secret it names has come."""
        obj = decode(entry.value, entry.revision) if entry is not None else {}
        if entry is None or (obj.get("status") or {}).get("identityHash"):
            return
        cluster = ObjectKey.parse(entry.key).cluster
        key = await identity_key(self._store, cluster, obj)
        if key:
            verify_identity(obj, key, rfc3339(self._clock.now()))
            await self._store.commit([Write(entry.key, encode(obj), expected=entry.revision)])

    async def _settle_slice(self, entry: Entry, obj: Object, cluster: str) -> None:
        status = await self._slices.status(cluster, obj, rfc3339(self._clock.now()))
        if status != obj.get("status"):
            obj["status"] = status
            await self._store.commit([Write(entry.key, encode(obj), expected=entry.revision)])

    async def _rebind(self, key: ObjectKey) -> None:
        """Bring every binding of an export up to date with it."""
        for cluster in list(self._state.bound_clusters(key.cluster, key.name)):
            for name, binding in list(self._state.bindings.get(cluster, {}).items()):
                if binding.is_to(key.cluster, key.name):
                    await self._refresh(ObjectKey(APIS, "apibindings", cluster, "", name))

    async def _refresh(self, key: ObjectKey) -> None:
        entry = await self._store.get(key.path())
        if entry is None:
            return
        obj = decode(entry.value, entry.revision)
        reference = export_reference(obj)
        cluster, name = key.cluster, key.name
        export = self._state.export(reference.get("path", ""), reference.get("name", ""), cluster)
        if export is not None and is_pinned_elsewhere(obj, export.cluster, export.name):
            export = None
        taken = self._state.taken_names(cluster, name, self._catalogue.definitions(cluster))
        old = obj.get("status") or {}
        now = rfc3339(self._clock.now())
        status = bound_status(export, taken, agreed_spec(obj), old, now, cluster)
        if status != old:
            obj["status"] = status
            await self._store.commit([Write(entry.key, encode(obj), expected=entry.revision)])


def _cluster_key(cluster: str) -> str:
    return ObjectKey(CORE, "logicalclusters", cluster, "", "cluster").path()
