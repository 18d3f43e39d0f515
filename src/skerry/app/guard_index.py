"""What admission of guards depends on: destinations of placements, as the edge scheduler sees them.

The same table as the scheduler's, fed by the hub's own events instead of informers. It is filled
when there is a first PlacementGuard and dropped with the last: a hub without guards keeps nothing
and computes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from skerry.api.edge import EDGE_PLACEMENTS, PLACEMENT_GUARDS, ROLLOUTS, edge_placement_ref
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.keys import ObjectKey
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.logic.fleet.explanation.changes import what_or_none
from skerry.logic.fleet.guards.index import GuardIndex
from skerry.logic.fleet.guards.spec import Guard, guard_of, says_of_objects
from skerry.logic.fleet.placement.choosing import MakeChoosing
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import (
    Location,
    Placement,
    is_being_deleted,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.whatif import Remove
from skerry.logic.fleet.placement.workspace_tree import lean_workspace
from skerry.logic.fleet.translation.selected import What
from skerry.server.change import Change
from skerry.server.codec import decode
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.state import HubState, entries_of
from skerry.store.base import Store

_FOLLOWED = (WORKSPACES, LOCATIONS, SYNC_TARGETS, EDGE_PLACEMENTS, ROLLOUTS)


class IndexedPlacement(NamedTuple):
    """Where a placement is stored, and what guards ask of it besides its destinations."""

    key: str
    uid: str
    labels: Mapping[str, str]
    destinations: int
    # None: its selectors are malformed, and choose nothing.
    what: What | None = None

    def chooses(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a Namespace with these labels is placed."""
        return self.what is not None and self.what.namespaces.matches(labels)

    def names(self, item: ObjectRef, labels: Mapping[str, str]) -> bool:
        """Tell whether an object in no Namespace is placed."""
        return self.what is not None and self.what.names(item, labels)


class GuardedPlacements:
    """The guards there are and, while there are any, everything they may be about."""

    def __init__(self, state: HubState, store: Store, choosing: MakeChoosing) -> None:
        self._state = state
        self._store = store
        self._choosing = choosing
        self.guards = GuardIndex()
        self.table = DestinationTable(choosing)
        self.placements: dict[ObjectRef, IndexedPlacement] = {}
        self._placed_in: dict[str, set[ObjectRef]] = {}
        # Placements that have a Rollout.
        self.rollouts: set[ObjectRef] = set()
        # Whether any guard counts or protects objects.
        self.looks_at_objects = False
        # Whether everything there is has been read.
        self.is_complete = False
        # Set while there are guards, and something to read for them.
        self._wanted = asyncio.Event()
        # Keys that changed while the rest was read: what is read of them is older.
        self._touched: set[str] = set()

    async def follow(self, dispatcher: Dispatcher) -> None:
        """Keep up with the store; call before the dispatcher runs."""
        store = self._store
        dispatcher.observe(_prefix(PLACEMENT_GUARDS), self._guard_changed, self._reset)
        for gvr in _FOLLOWED:
            dispatcher.observe(_prefix(gvr), self._follower(gvr))
        async for entry in entries_of(store, _prefix(PLACEMENT_GUARDS)):
            self._put_guard(ObjectKey.parse(entry.key), decode(entry.value, entry.revision))

    def of(self, placement: ObjectRef) -> tuple[Guard, ...]:
        """Return the guards of a placement."""
        known = self.placements.get(placement)
        labels = {} if known is None else known.labels
        return self.guards.of(placement, self.table.workspace_labels(placement.cluster), labels)

    def placed_in(self, cluster: str) -> list[ObjectRef]:
        """Return the placements of a workspace, by name."""
        return sorted(self._placed_in.get(cluster, ()))

    def total(self, placement: ObjectRef) -> int:
        """Return how many destinations a placement has, by the scheduler's own count."""
        known = self.placements.get(placement)
        counted = known.destinations if known is not None else 0
        return counted or len(self.table.matching(placement))

    def emptied(self, cluster: str) -> Iterator[Remove]:
        """Yield what is gone when a workspace is, with all below it."""
        inventory, state = self.table.inventory, self._state
        due = [cluster] if cluster else []
        while due:
            each = due.pop()
            due += state.children.get(each, {}).values()
            yield from (Remove(Placement, ref) for ref in self.placed_in(each))
            for number in inventory.locations_in(each):
                yield Remove(Location, inventory.location_at(number).ref)

    def path(self, cluster: str) -> str:
        """Return the path of a workspace, for people."""
        found = self._state.clusters.get(cluster)
        return cluster if found is None else found.path

    # -- following ---------------------------------------------------------------------------

    def _guard_changed(self, change: Change) -> None:
        key = ObjectKey.parse(change.event.key)
        if change.event.value is None:
            ref = ObjectRef(key.cluster, *PLACEMENT_GUARDS.group_resource, "", key.name)
            self.guards.remove(ref)
            self.looks_at_objects = any(map(says_of_objects, self.guards))
            if not self.guards:
                self._forget()
        else:
            self._put_guard(key, change.object())

    def _put_guard(self, key: ObjectKey, obj: Object) -> None:
        resource, _, identity = key.resource.partition(":")
        exported = self._state.by_identity.get((key.group, resource, identity))
        if exported is not None:
            self.guards.provider = exported.schema_cluster
        self.guards.put(guard_of(stamped(obj, key.cluster)))
        self.looks_at_objects = any(map(says_of_objects, self.guards))
        if not self.is_complete:
            self._wanted.set()

    def _follower(self, gvr: GroupVersionResource) -> Callable[[Change], None]:
        def follow(change: Change) -> None:
            if not self._wanted.is_set() and not self.is_complete:
                return
            event = change.event
            if not self.is_complete:
                self._touched.add(event.key)
            obj = None if event.value is None else change.object()
            self._put(gvr, ObjectKey.parse(event.key), obj)

        return follow

    async def run(self) -> None:
        """Read, whenever there is a first guard, everything that guards depend on."""
        while True:
            await self._wanted.wait()
            for gvr in _FOLLOWED:
                async for entry in entries_of(self._store, _prefix(gvr)):
                    key = ObjectKey.parse(entry.key)
                    # What changed meanwhile is newer; other types' names may begin alike.
                    ours = key.resource.partition(":")[0] == gvr.resource
                    if ours and entry.key not in self._touched:
                        self._put(gvr, key, decode(entry.value, entry.revision))
            if self._wanted.is_set():
                self.is_complete = True
                self._wanted.clear()
                self._touched.clear()

    def _reset(self) -> None:
        """Forget everything: it is about to be shown anew."""
        for guard in list(self.guards):
            self.guards.remove(guard.ref)
        self._forget()

    def _forget(self) -> None:
        self._wanted.clear()
        self.is_complete = False
        self._touched.clear()
        self.table = DestinationTable(self._choosing)
        self.placements.clear()
        self._placed_in.clear()
        self.rollouts.clear()
        self.looks_at_objects = any(map(says_of_objects, self.guards))

    def _put(self, gvr: GroupVersionResource, key: ObjectKey, obj: Object | None) -> None:
        ref = ObjectRef(key.cluster, *gvr.group_resource, "", key.name)
        table = self.table
        if gvr == EDGE_PLACEMENTS:
            self._put_placement(key, obj)
        elif gvr == WORKSPACES:
            self._put_workspace(ref, obj)
        elif gvr == ROLLOUTS:
            placement = edge_placement_ref(key.cluster, key.name)
            (self.rollouts.discard if obj is None else self.rollouts.add)(placement)
        elif gvr == LOCATIONS:
            if obj is None or is_being_deleted(obj):
                table.remove_location(ref)
            else:
                table.put_location(location_of(stamped(obj, key.cluster)))
        elif obj is None or is_being_deleted(obj):
            table.remove_sync_target(ref)
        else:
            table.put_sync_target(sync_target_of(stamped(obj, key.cluster)))

    def _put_placement(self, key: ObjectKey, obj: Object | None) -> None:
        ref = edge_placement_ref(key.cluster, key.name)
        if obj is None:
            self.table.remove_placement(ref)
            self.placements.pop(ref, None)
            self._placed_in.get(key.cluster, set()).discard(ref)
            return
        self._placed_in.setdefault(key.cluster, set()).add(ref)
        metadata, status = obj["metadata"], obj.get("status") or {}
        labels = metadata.get("labels") or {}
        count = int(status.get("destinationCount") or 0)
        self.placements[ref] = IndexedPlacement(
            key.path(), metadata["uid"], labels, count, what_or_none(obj)
        )
        self.table.put_placement(placement_of(stamped(obj, key.cluster)))

    def _put_workspace(self, ref: ObjectRef, obj: Object | None) -> None:
        if obj is None:
            return  # its cluster goes with it, and all there was in it
        lean = lean_workspace(stamped(obj, ref.cluster))
        cluster = (lean.get("spec") or {}).get("cluster", "")
        if cluster:
            self.table.put_workspace(cluster, lean["metadata"].get("labels") or {}, ref)


def stamped(obj: Mapping[str, Any], cluster: str) -> Object:
    """Return *obj* with the annotation that says where it is, as clients see it."""
    metadata = obj["metadata"]
    notes = {**(metadata.get("annotations") or {}), CLUSTER_ANNOTATION: cluster}
    return {**obj, "metadata": {**metadata, "annotations": notes}}


def _prefix(gvr: GroupVersionResource) -> str:
    """Return the prefix of a type, whichever export it is bound from."""
    return f"/{gvr.group}/{gvr.resource}"
