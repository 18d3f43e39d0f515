"""What an edit not yet made would add and remove.

Destinations come from the table ``destination``, on which the change is made and taken back.
Objects come from asking each placement of the workspace what it selects, before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    LOCATION_GRANTS,
    SINGLE_PLACEMENT_SLICES,
    edge_placement_ref,
    placement_of_slice,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.kinds import GroupResource, ResourceInfo
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.logic.fleet.explanation.links import object_json
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import (
    Destination,
    Placement,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.slices import destinations_in
from skerry.logic.fleet.placement.whatif import Change, Difference, Put, Record, Remove
from skerry.logic.fleet.summary.selection import selection
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.selected import What, what_of
from skerry.logic.machinery.patch.merge_patch import apply_merge_patch
from skerry.logic.machinery.selectors import SelectorError

Labels = Mapping[str, str]
_SLICE = SINGLE_PLACEMENT_SLICES.group_resource


@dataclass(frozen=True, slots=True)
class Workload:
    """A workspace with placements: what each means, and what there is."""

    placements: Mapping[str, What | None]
    items: Mapping[ObjectRef, Labels] = field(default_factory=dict)

    def with_placement(self, name: str, what: What | None) -> Workload:
        return replace(self, placements={**self.placements, name: what})

    def without_placement(self, name: str) -> Workload:
        return replace(self, placements={k: v for k, v in self.placements.items() if k != name})

    def with_item(self, item: ObjectRef, labels: Labels) -> Workload:
        return replace(self, items={**self.items, item: labels})

    def without_item(self, item: ObjectRef) -> Workload:
        """Return it without an object; with a Namespace goes what is in it."""
        inside = item.name if item.group_resource == NAMESPACES else None
        kept = {k: v for k, v in self.items.items() if k != item and k.namespace != (inside or "-")}
        return replace(self, items=kept)

    def selected(self, name: str) -> set[ObjectRef]:
        """Return what a placement means; nothing of one that is not there."""
        if name not in self.placements:
            return set()
        selects = selection(self.placements[name])
        return {
            item for item, labels in self.items.items() if selects(item, labels, self._within(item))
        }

    def _within(self, item: ObjectRef) -> Labels:
        return (
            self.items.get(ObjectRef("", *NAMESPACES, "", item.namespace), {})
            if item.namespace
            else {}
        )


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """What would change for one placement."""

    ref: ObjectRef
    destinations_added: tuple[Destination, ...] = ()
    destinations_removed: tuple[Destination, ...] = ()
    objects_added: tuple[ObjectRef, ...] = ()
    objects_removed: tuple[ObjectRef, ...] = ()
    # What stays until its removal is confirmed, and what needs no confirmation any more.
    destinations_held: tuple[Destination, ...] = ()
    destinations_freed: tuple[Destination, ...] = ()
    # Path of the workspace, where it is known.
    workspace: str = ""

    def as_json(self) -> dict[str, Any]:
        where = {"workspace": self.workspace} if self.workspace else {}
        return {
            "placement": self.ref.name,
            "cluster": self.ref.cluster,
            **where,
            "destinations": {
                "added": [each.as_object() for each in self.destinations_added],
                "removed": [each.as_object() for each in self.destinations_removed],
                "held": [each.as_object() for each in self.destinations_held],
                "freed": [each.as_object() for each in self.destinations_freed],
            },
            "objects": {
                "added": [object_json(each) for each in self.objects_added],
                "removed": [object_json(each) for each in self.objects_removed],
            },
        }


def changes(
    cluster: str,
    before: Workload,
    after: Workload,
    destinations: Sequence[Difference],
    path: Callable[[str], str] = lambda _: "",
) -> list[PlacementChange]:
    """Return the placements that would change, by name; those of *cluster* with their objects.

    *path* returns the path of a workspace, empty when it is not known.
    """
    where = {each.placement: each for each in destinations}
    names = {edge_placement_ref(cluster, name) for name in (*before.placements, *after.placements)}
    found: list[PlacementChange] = []
    for ref in sorted(names | where.keys()):
        was = before.selected(ref.name) if ref in names else set()
        will = after.selected(ref.name) if ref in names else set()
        moved = where.get(ref)
        change = PlacementChange(
            ref,
            moved.added if moved else (),
            moved.removed if moved else (),
            tuple(sorted(will - was)),
            tuple(sorted(was - will)),
            moved.held if moved else (),
            moved.freed if moved else (),
        )
        if change != PlacementChange(ref):
            found.append(replace(change, workspace=path(ref.cluster)))
    return found


def edited(live: Object | None, document: Object) -> Object:
    """Return an object as *document* would leave it.

    A document with content of its own stands for the whole object, as a file to be applied does.
    One with metadata alone is a label change: it is merged, and ``null`` removes.
    """
    if live is None:
        return document
    content = set(document) - {"apiVersion", "kind", "metadata", "status"}
    if not content:
        return apply_merge_patch(live, document)
    kept = {
        name: live["metadata"][name] for name in ("uid", "annotations") if name in live["metadata"]
    }
    given = document.get("metadata") or {}
    notes = {**(kept.get("annotations") or {}), **(given.get("annotations") or {})}
    return {**live, **document, "metadata": {**kept, **given, "annotations": notes}}


_RECORDS: Mapping[GroupResource, Callable[[Object], Record]] = {
    LOCATION_GRANTS.group_resource: grant_of,
    EDGE_PLACEMENTS.group_resource: placement_of,
    LOCATIONS.group_resource: location_of,
    SYNC_TARGETS.group_resource: sync_target_of,
}


def changed_by(
    workload: Workload, info: ResourceInfo, obj: Object, *, delete: bool
) -> tuple[Workload, list[Change]]:
    """Return the workspace as *obj* would leave it, and what that means to destinations."""
    read = _RECORDS.get(info.group_resource)
    if read is None:
        item = item_of(info, obj)
        labels = obj["metadata"].get("labels") or {}
        return workload.without_item(item) if delete else workload.with_item(item, labels), []
    record = read(obj)
    if isinstance(record, Placement):
        name = record.ref.name
        after = (
            workload.without_placement(name)
            if delete
            else workload.with_placement(name, what_or_none(obj))
        )
    else:
        after = workload
    return after, [Remove(type(record), record.ref) if delete else Put(record)]


def placed_at(obj: Object, cluster: str) -> Object:
    """Return *obj* as one of *cluster*, with the identity a server would give it."""
    metadata = {"uid": "(new)", **obj["metadata"]}
    notes = {**(metadata.get("annotations") or {}), CLUSTER_ANNOTATION: cluster}
    return {**obj, "metadata": {**metadata, "annotations": notes}}


def running_by(slices: Sequence[Object]) -> Callable[[ObjectRef], frozenset[Destination]]:
    """Return the lookup of the destinations a placement has by *slices*."""
    found: dict[ObjectRef, set[Destination]] = {}
    for piece in slices:
        ref = edge_placement_ref(ObjectRef.of(_SLICE, piece).cluster, placement_of_slice(piece))
        found.setdefault(ref, set()).update(destinations_in(piece))
    return lambda ref: frozenset(found.get(ref, ()))


def what_or_none(placement: Object) -> What | None:
    """Return what a placement means; None when a selector of it is malformed."""
    try:
        return what_of(placement)
    except SelectorError:
        return None


def item_of(info: ResourceInfo, obj: Object) -> ObjectRef:
    """Return the name of an object of a kind; without a namespace it is in ``default``."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "default") if info.namespaced else ""
    return ObjectRef("", info.group, info.resource, namespace, metadata["name"])
