"""What an edit not yet made would add and remove.

Destinations come from the table ``destination``, on which the change is made and taken back.
Objects come from asking each placement of the workspace what it selects, before and after; what
becomes of their copies from ``contents``.

An edit is made on paper: ``changed_by`` returns the ``Workload`` as it would be, and the changes of
the table. What an edit of each kind can do:

    a ConfigMap, say               to objects and contents of own placements
    a Namespace                    the same, and by its labels to what is in it
    a Customizer                   to contents
    an EdgePlacement               to destinations, and to what it selects
    a Location                     to destinations of anybody, and to what is customized for it
    a SyncTarget, a LocationGrant  to destinations of anybody

Placements of other workspaces are reported with their destinations alone: what they select is in
workspaces that were not read. Grants let kinds of objects through as well as destinations. Which
they would is in ``Materials.rules``, one before and one after: an object that nobody edited is
compared where the two differ. Not at a destination that is held for want of a grant, or is no
longer: all that is there shares its fate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skerry.api.edge import (
    CUSTOMIZERS,
    EDGE_PLACEMENTS,
    LOCATION_GRANTS,
    edge_placement_ref,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.kinds import GroupResource, ResourceInfo
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ClusterName, ObjectRef, namespace_ref
from skerry.logic.fleet.customization.customize import CustomizerName
from skerry.logic.fleet.explanation.contents import (
    NO_MATERIALS,
    ContentChange,
    Foreseen,
    Materials,
    Rules,
    Taken,
    content_changes,
    foreseen,
)
from skerry.logic.fleet.explanation.links import object_json
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import (
    Destination,
    Location,
    Placement,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.whatif import Change, Difference, Put, Record, Remove
from skerry.logic.fleet.rollout.foresight import RolloutForeseen
from skerry.logic.fleet.summary.selection import selection
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.selected import What, what_of
from skerry.logic.machinery.patch.merge_patch import apply_merge_patch
from skerry.logic.machinery.selectors import SelectorError

Labels = Mapping[str, str]
# Returns the path of a workspace.
Path = Callable[[ClusterName], str]


@dataclass(frozen=True, slots=True)
class Workload:
    """A workspace with placements: what each means, and what there is.

    It is never changed: each edit returns another one, which shares what it did not touch. What is
    still the same object is therefore known to be equal, without comparing it.
    """

    placements: Mapping[str, What | None]
    materials: Materials = NO_MATERIALS

    def with_placement(self, name: str, what: What | None) -> Workload:
        return replace(self, placements={**self.placements, name: what})

    def without_placement(self, name: str) -> Workload:
        return replace(self, placements={k: v for k, v in self.placements.items() if k != name})

    def with_object(self, item: ObjectRef, obj: Object) -> Workload:
        return self._with(objects={**self.materials.objects, item: obj})

    def without_object(self, item: ObjectRef) -> Workload:
        """Return it without an object; with a Namespace goes what is in it."""
        # No Namespace is called "-".
        inside = item.name if item.group_resource == NAMESPACES else "-"
        objects = self.materials.objects
        return self._with(
            objects={k: v for k, v in objects.items() if k != item and k.namespace != inside}
        )

    def with_rules(self, rules: Rules | None) -> Workload:
        """Return it with other grants."""
        return self._with(rules=rules)

    def with_customizer(self, name: CustomizerName, obj: Object | None) -> Workload:
        """Return it with a Customizer; None takes it away."""
        kept = {k: v for k, v in self.materials.customizers.items() if k != name}
        return self._with(customizers=kept if obj is None else {**kept, name: obj})

    def with_location(self, ref: ObjectRef, obj: Object | None) -> Workload:
        """Return it with a Location of its own; None takes it away."""
        kept = {k: v for k, v in self.materials.locations.items() if k != ref}
        return self._with(locations=kept if obj is None else {**kept, ref: obj})

    def _with(self, **changed: Any) -> Workload:
        return replace(self, materials=replace(self.materials, **changed))

    def selected(self, name: str) -> set[ObjectRef]:
        """Return what a placement means; nothing of one that is not there, or that is malformed.

        These are the objects that go on to the edge, as summaries count them; definitions that
        only go along are not among them.
        """
        if name not in self.placements:
            return set()
        selects = selection(self.placements[name])
        return {
            item
            for item, obj in self.materials.objects.items()
            if selects(item, _labels(obj), self._within(item))
        }

    def names(self, name: str, item: ObjectRef) -> bool:
        """Tell whether a placement asks for a Namespace with its labels, not for its room alone."""
        what = self.placements.get(name)
        return what is not None and what.names(item, _labels(self.materials.objects.get(item)))

    def _within(self, item: ObjectRef) -> Labels:
        space = namespace_ref(item.namespace) if item.namespace else None
        return _labels(self.materials.objects.get(space)) if space else {}


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """What would change for one placement; one that equals an empty one is not reported.

    *Added* and *removed* objects are so for the placement, wherever it goes. *Arriving* are those
    that it sends before and after, and that are new at the destinations that are.
    """

    ref: ObjectRef
    destinations_added: tuple[Destination, ...] = ()
    destinations_removed: tuple[Destination, ...] = ()
    objects_added: tuple[ObjectRef, ...] = ()
    objects_removed: tuple[ObjectRef, ...] = ()
    # What stays until its removal is confirmed, and what needs no confirmation any more.
    destinations_held: tuple[Destination, ...] = ()
    destinations_freed: tuple[Destination, ...] = ()
    # How copies would differ; what would go to added destinations; what would not arrive.
    contents: tuple[ContentChange, ...] = ()
    arriving: tuple[ObjectRef, ...] = ()
    withheld: tuple[Foreseen, ...] = ()
    # What would bring the contents there, where the placement has a Rollout.
    rollout: RolloutForeseen | None = None

    @property
    def changes_content(self) -> bool:
        """Whether what is sent would be different, wherever it goes."""
        return bool(self.objects_added or self.objects_removed or self.contents)

    def as_json(self, path: Path) -> dict[str, Any]:
        def listed(found: Sequence[Destination]) -> list[dict[str, str]]:
            return [destination_json(each, path) for each in found]

        rollout = {} if self.rollout is None else {"rollout": self.rollout.as_json()}
        return {
            "placement": self.ref.name,
            "workspace": path(self.ref.cluster),
            **rollout,
            "destinations": {
                "added": listed(self.destinations_added),
                "removed": listed(self.destinations_removed),
                "held": listed(self.destinations_held),
                "freed": listed(self.destinations_freed),
            },
            "objects": {
                "added": [object_json(each) for each in self.objects_added],
                "removed": [object_json(each) for each in self.objects_removed],
                "arriving": [object_json(each) for each in self.arriving],
                "changed": [
                    {
                        "object": object_json(each.item),
                        "fields": list(each.fields),
                        "destinations": listed(each.destinations),
                    }
                    for each in self.contents
                ],
                "withheld": [
                    {
                        "object": object_json(each.item),
                        "reason": each.problem.reason,
                        "message": each.problem.message,
                        "destinations": listed(each.destinations),
                    }
                    for each in self.withheld
                ],
            },
        }


def destination_json(destination: Destination, path: Path) -> dict[str, str]:
    """Return how answers name a destination: by names that people know."""
    return {
        "workspace": path(destination.cluster),
        "location": destination.location,
        "syncTarget": destination.sync_target,
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """A workspace as it is and as it would be, and what that does to destinations.

    ``going`` returns the destinations a placement would have; ``taken`` whose a name is there.
    """

    cluster: ClusterName
    before: Workload
    after: Workload
    moved: Sequence[Difference] = ()
    going: Callable[[ObjectRef], Sequence[Destination]] = lambda _: ()
    taken: Taken = lambda *_: None

    def changes(self) -> list[PlacementChange]:
        """Return the placements that would change, by name; those of the workspace in detail."""
        where = {each.placement: each for each in self.moved}
        own = {
            edge_placement_ref(self.cluster, name)
            for name in (*self.before.placements, *self.after.placements)
        }
        found = []
        for ref in sorted(own | where.keys()):
            moved = where.get(ref, Difference(ref, (), ()))
            change = PlacementChange(
                ref,
                moved.added,
                moved.removed,
                destinations_held=moved.held,
                destinations_freed=moved.freed,
            )
            if ref in own:
                change = self._detailed(change)
            if change != PlacementChange(ref):
                found.append(change)
        return found

    def arriving(self) -> Iterator[tuple[Destination, set[ObjectRef]]]:
        """Yield destinations to which objects would go anew, with these objects."""
        # To a new destination goes everything, to the others what was not selected before.
        moved = {each.placement: each.added for each in self.moved}
        for name in self.after.placements:
            ref = edge_placement_ref(self.cluster, name)
            new = set(moved.get(ref, ()))
            will = self.after.selected(name)
            fresh = will - self.before.selected(name)
            for each in self.going(ref):
                coming = will if each in new else fresh
                if coming:
                    yield each, coming

    def _detailed(self, change: PlacementChange) -> PlacementChange:
        """Return a change of an own placement with what it does to objects."""
        before, after = self.before.materials, self.after.materials
        name = change.ref.name
        was, will = self.before.selected(name), self.after.selected(name)
        new = set(change.destinations_added)
        staying = [each for each in self.going(change.ref) if each not in new]
        # Selected before and after, of other content; a Namespace that is only room has none.
        kept = {
            item
            for item in was & will & before.differing(after)
            if item.group_resource != NAMESPACES or self.after.names(name, item)
        }
        contents, withheld = content_changes(before, after, kept, staying)
        # Of what nobody edited: what grants would let through, or would not any more.
        fate = {*change.destinations_held, *change.destinations_freed}
        regranted = before.regranted(after, (each for each in staying if each not in fate))
        if regranted:
            unedited = (was & will) - before.differing(after)
            passing, refused = content_changes(before, after, unedited, regranted)
            contents, withheld = contents + passing, withheld + refused
        # What is new at a destination: the object, or the destination itself.
        withheld += foreseen(after, will - was, staying, self.taken)
        withheld += foreseen(after, will, change.destinations_added, self.taken)
        return replace(
            change,
            objects_added=tuple(sorted(will - was)),
            objects_removed=tuple(sorted(was - will)),
            contents=tuple(contents),
            arriving=tuple(sorted(will & was)) if new else (),
            withheld=tuple(withheld),
        )


def _labels(obj: Object | None) -> Labels:
    return {} if obj is None else obj["metadata"].get("labels") or {}


# What says which object it is, and of which version.
_KEPT = ("uid", "resourceVersion", "annotations")


def edited(live: Object | None, document: Object) -> Object:
    """Return an object as *document* would leave it.

    A document with content of its own stands for the whole object, as a file to be applied does.
    One with metadata alone is a label change: it is merged, and ``null`` removes. Of a whole object
    the labels are those of the document, while annotations are added to those there are: others
    than its author write some, and a file seldom has them.
    """
    if live is None:
        return document
    if is_label_change(document):
        return apply_merge_patch(live, document)
    kept = {name: live["metadata"][name] for name in _KEPT if name in live["metadata"]}
    given = document.get("metadata") or {}
    notes = {**(kept.get("annotations") or {}), **(given.get("annotations") or {})}
    return {**live, **document, "metadata": {**kept, **given, "annotations": notes}}


# The kinds that destinations follow from, and how each is read; any other is workload.
_RECORDS: Mapping[GroupResource, Callable[[Object], Record]] = {
    LOCATION_GRANTS.group_resource: grant_of,
    EDGE_PLACEMENTS.group_resource: placement_of,
    LOCATIONS.group_resource: location_of,
    SYNC_TARGETS.group_resource: sync_target_of,
}


def is_label_change(document: Object) -> bool:
    """Tell whether a document has metadata alone, so that it is about an object that exists."""
    return not set(document) - {"apiVersion", "kind", "metadata", "status"}


def must_exist(info: ResourceInfo, document: Object) -> bool:
    """Tell whether a document makes sense only about an object that is there.

    What placement is made of needs a content; a Namespace and its like are made of metadata alone.
    """
    return is_label_change(document) and info.group_resource in _RECORDS


def changed_by(
    workload: Workload, info: ResourceInfo, obj: Object, *, delete: bool
) -> tuple[Workload, list[Change]]:
    """Return the workspace as *obj* would leave it, and what that means to destinations."""
    read, kept = _RECORDS.get(info.group_resource), None if delete else obj
    if info.group_resource == CUSTOMIZERS.group_resource:
        named = CustomizerName(item_of(info, obj).namespace, obj["metadata"]["name"])
        return workload.with_customizer(named, kept), []
    if read is None:
        item = item_of(info, obj)
        return workload.without_object(item) if delete else workload.with_object(item, obj), []
    record = read(obj)
    after = workload
    if isinstance(record, Placement):
        name = record.ref.name
        after = (
            workload.without_placement(name)
            if delete
            else workload.with_placement(name, what_or_none(obj))
        )
    elif isinstance(record, Location):
        after = workload.with_location(record.ref, kept)
    return after, [Remove(type(record), record.ref) if delete else Put(record)]


def placed_at(obj: Object, cluster: str) -> Object:
    """Return *obj* as one of *cluster*, with the identity a server would give it."""
    metadata = {"uid": "(new)", **obj["metadata"]}
    notes = {**(metadata.get("annotations") or {}), CLUSTER_ANNOTATION: cluster}
    return {**obj, "metadata": {**metadata, "annotations": notes}}


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
