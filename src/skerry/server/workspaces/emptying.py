"""Removing everything in a cluster, quickly and completely.

Objects nobody holds back go in one transaction per few hundred. Those with finalizers are marked
and waited for. Until nothing else is left, namespaces stay, and what lets people in: somebody may
have to take a finalizer off. Definitions and bindings go last, for with them goes the knowledge of
which types there were.

Some types go before everything else, and while one of them is held back nothing else goes: what
places the rest of a workspace decides when it may go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field

from skerry.api.keys import type_prefix
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.workspaces.bindings import FINALIZER
from skerry.logic.machinery.workspaces.remaining import Remaining
from skerry.logic.machinery.workspaces.workspace_content import CLUSTER_FINALIZER
from skerry.server.catalogue import CRD_GROUP, CRD_RESOURCE
from skerry.server.codec import decode, encode
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.catalogue import HubCatalogue
from skerry.server.workspaces.schema_rules import kept_schema
from skerry.server.workspaces.state import APIS, CORE, TENANCY, HubState
from skerry.store.base import Entry, Store, Write

# Deletes per transaction: large enough to be quick, small enough not to hold others up.
_BATCH = 200
# What the server notes beside objects.
_SERVER_KEYS = (("marks", "default-location"), ("allocations", "services"))
# Finalizers that stand for what is being done here.
_OWN = (FINALIZER, CLUSTER_FINALIZER)
_RBAC = "rbac.authorization.k8s.io"
# One after another, each when all before it are gone.
_LATE = (
    (("", "namespaces"),),
    (
        (_RBAC, "clusterroles"),
        (_RBAC, "clusterrolebindings"),
        (CRD_GROUP, CRD_RESOURCE),
        (APIS, "apibindings"),
    ),
)
_KEPT = (CORE, "logicalclusters")


@dataclass(slots=True)
class Emptied:
    """What could not be removed yet: prefixes of such types, everywhere and in the cluster."""

    waits: list[tuple[str, str]] = field(default_factory=list)
    remaining: Remaining = field(default_factory=Remaining)


class Emptying:
    """Removes content."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        state: HubState,
        catalogue: HubCatalogue,
        clock: Clock,
        workspaces: str,
        holding: frozenset[GroupResource] = frozenset(),
    ) -> None:
        """Types in *holding* go first; while one of those is held back, everything else stays."""
        self._holding = holding
        self._dispatcher = dispatcher
        # Types found to have no object anywhere, and the record of changes that was true by.
        self._absent: set[str] = set()
        self._as_of = dispatcher.touched
        self._state = state
        self._store = store
        self._catalogue = catalogue
        self._clock = clock
        # Where workspaces are kept.
        self._workspaces = workspaces

    async def empty(self, cluster: str, last: Sequence[Write]) -> Emptied:
        """Remove everything in *cluster* but the logical cluster itself.

        When nothing is left to wait for, the writes *last* are committed too, with the rest.
        """
        stored = {
            (r.stored_group, r.storage_resource) for r in self._catalogue.types(cluster).stored
        }
        removal = _Removal(self._store, rfc3339(self._clock.now()))
        first = {each for each in stored if self._holds(*each)}
        await self._remove(removal, cluster, first)
        if removal.result.waits:
            await removal.finish()
            return removal.result
        for group, resource in _SERVER_KEYS:
            if not await self._is_absent(type_prefix(group, resource)):
                await removal.notes(type_prefix(group, resource, cluster))
        await self._keep_schemas(removal, cluster)
        late = {each for group in _LATE for each in group} | first
        await self._remove(removal, cluster, stored - late - {_KEPT} - self._known_absent(cluster))
        for types in _LATE:
            if not removal.result.waits:
                for group, resource in types:
                    await removal.objects(group, resource, cluster)
        if not removal.result.waits:
            removal.writes += last
        await removal.finish()
        return removal.result

    async def _remove(
        self, removal: _Removal, cluster: str, types: Collection[tuple[str, str]]
    ) -> None:
        """Remove or mark the objects of some types, in order."""
        for group, resource in sorted(types):
            if not await self._is_absent(type_prefix(group, resource)):
                await removal.objects(group, resource, cluster)

    def _holds(self, group: str, resource: str) -> bool:
        """Tell whether a type, from whichever export, goes before all others."""
        return GroupResource(group, resource.partition(":")[0]) in self._holding

    def _known_absent(self, cluster: str) -> set[tuple[str, str]]:
        """Return the types of which the server itself knows that *cluster* has no object.

        It knows of everything that was created before the cluster was marked.
        """
        state = self._state
        kinds: dict[str, Collection[tuple[str, str]]] = {
            "apiconversions": state.conversions,
            "apiexportendpointslices": state.slices,
            "apiexports": state.exports,
            "apiresourceschemas": state.schemas,
        }
        absent = {
            (APIS, resource)
            for resource, known in kinds.items()
            if not any(where == cluster for where, _ in known)
        }
        if cluster not in state.children:
            absent.add((TENANCY, self._workspaces))
        return absent

    async def _is_absent(self, prefix: str) -> bool:
        """Tell whether there is no object of a type in any cluster.

        Most types of most workspaces are never used. Once found empty a type stays so until
        something happens below its prefix; whatever was created before the cluster was marked
        has been dispatched before the mark was.
        """
        if self._as_of is not self._dispatcher.touched:
            self._as_of, self._absent = self._dispatcher.touched, set()
        if prefix in self._as_of:
            return False
        if prefix not in self._absent:
            if (await self._store.range(prefix, limit=1)).entries:
                return False
            self._absent.add(prefix)
        return True

    async def _keep_schemas(self, removal: _Removal, cluster: str) -> None:
        """Keep what other workspaces bind from this one; their objects stay."""
        for where, name in [key for key in self._state.schemas if key[0] == cluster]:
            write = kept_schema(self._state, self._state.schemas[(where, name)])
            if write is not None:
                removal.writes.append(write)

    async def remove(self, cluster: str, types: Sequence[tuple[str, str]]) -> Emptied:
        """Remove all objects of *types* in *cluster*."""
        removal = _Removal(self._store, rfc3339(self._clock.now()))
        for group, resource in types:
            await removal.objects(group, resource, cluster)
        await removal.finish()
        return removal.result


class _Removal:
    """One removal under way: writes that wait for company, and what stays for now."""

    def __init__(self, store: Store, now: str) -> None:
        self._store = store
        self._now = now
        self.writes: list[Write] = []
        self.result = Emptied()

    async def notes(self, prefix: str) -> None:
        """Remove what is no object."""
        async for batch in _batches(self._store, prefix):
            self.writes += [Write(entry.key, None) for entry in batch]

    async def objects(self, group: str, resource: str, cluster: str) -> None:
        """Remove the objects of one type, or mark them."""
        prefix, waits = type_prefix(group, resource, cluster), False
        async for batch in _batches(self._store, prefix):
            for entry in batch:
                write, held = removal_of(entry, self._now)
                if held:
                    waits = True
                    self.result.remaining.add(group, resource, held)
                if write is not None:
                    self.writes.append(write)
            if len(self.writes) >= _BATCH:
                await self.finish()
        if waits:
            self.result.waits.append((type_prefix(group, resource), prefix))

    async def finish(self) -> None:
        """Commit what has gathered."""
        if self.writes:
            await self._store.commit(self.writes)
            self.writes = []


def removal_of(entry: Entry, now: str) -> tuple[Write | None, Sequence[str]]:
    """Return the write that removes or marks an object, and what holds it for now."""
    if b'"finalizers"' not in entry.value:
        return Write(entry.key, None, expected=entry.revision), ()
    obj = decode(entry.value, entry.revision)
    held = obj["metadata"].get("finalizers") or ()
    if all(name in _OWN for name in held):
        return Write(entry.key, None, expected=entry.revision), ()
    if mark(obj, now):
        return Write(entry.key, encode(obj), expected=entry.revision), held
    return None, held


async def _batches(store: Store, prefix: str) -> AsyncIterator[Sequence[Entry]]:
    after = ""
    while True:
        page = await store.range(prefix, after=after, limit=_BATCH)
        if page.entries:
            yield page.entries
        if not page.more:
            return
        after = page.entries[-1].key


def mark(obj: Object, now: str) -> bool:
    """Mark *obj* as being deleted; tell whether it was not."""
    if "deletionTimestamp" in obj["metadata"]:
        return False
    obj["metadata"] |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
    return True


def without_finalizer(entry: Entry, obj: Object, finalizer: str) -> Write:
    """Return the write that takes *finalizer* off, which deletes the object if it was the last."""
    kept = [name for name in obj["metadata"].get("finalizers", []) if name != finalizer]
    if not kept:
        return Write(entry.key, None, expected=entry.revision)
    obj["metadata"]["finalizers"] = kept
    return Write(entry.key, encode(obj), expected=entry.revision)
