"""What an edit not yet made would add and remove.

Destinations come from the placement index, which makes the change, answers and takes it back.
Objects come from asking each placement of the workspace what it selects, before and after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skerry.logic.patch.merge_patch import apply_merge_patch
from skerry.logic.placement.records import Destination, Place
from skerry.logic.placement.whatif import Difference
from skerry.logic.resource import Object
from skerry.logic.summary.selection import selection
from skerry.logic.translation.categories import NAMESPACES
from skerry.logic.translation.items import Item
from skerry.logic.translation.what import What

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Workload:
    """A workspace with placements: what each means, and what there is."""

    placements: Mapping[str, What | None]
    items: Mapping[Item, Labels] = field(default_factory=dict)

    def with_placement(self, name: str, what: What | None) -> Workload:
        return replace(self, placements={**self.placements, name: what})

    def without_placement(self, name: str) -> Workload:
        return replace(self, placements={k: v for k, v in self.placements.items() if k != name})

    def with_item(self, item: Item, labels: Labels) -> Workload:
        return replace(self, items={**self.items, item: labels})

    def without_item(self, item: Item) -> Workload:
        """Return it without an object; with a Namespace goes what is in it."""
        inside = item.name if item.type == NAMESPACES else None
        kept = {k: v for k, v in self.items.items() if k != item and k.namespace != (inside or "-")}
        return replace(self, items=kept)

    def selected(self, name: str) -> set[Item]:
        """Return what a placement means; nothing of one that is not there."""
        if name not in self.placements:
            return set()
        selects = selection(self.placements[name])
        return {
            item for item, labels in self.items.items() if selects(item, labels, self._within(item))
        }

    def _within(self, item: Item) -> Labels:
        return self.items.get(Item(*NAMESPACES, "", item.namespace), {}) if item.namespace else {}


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """What would change for one placement."""

    place: Place
    destinations_added: tuple[Destination, ...] = ()
    destinations_removed: tuple[Destination, ...] = ()
    objects_added: tuple[Item, ...] = ()
    objects_removed: tuple[Item, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "placement": self.place.name,
            "cluster": self.place.cluster,
            "destinations": {
                "added": [each.as_object() for each in self.destinations_added],
                "removed": [each.as_object() for each in self.destinations_removed],
            },
            "objects": {
                "added": [each._asdict() for each in self.objects_added],
                "removed": [each._asdict() for each in self.objects_removed],
            },
        }


def changes(
    cluster: str, before: Workload, after: Workload, destinations: Sequence[Difference]
) -> list[PlacementChange]:
    """Return the placements that would change, by name; those of *cluster* with their objects."""
    where = {each.placement: each for each in destinations}
    names = {Place(cluster, name) for name in (*before.placements, *after.placements)}
    found: list[PlacementChange] = []
    for place in sorted(names | where.keys()):
        was = before.selected(place.name) if place in names else set()
        will = after.selected(place.name) if place in names else set()
        moved = where.get(place)
        change = PlacementChange(
            place,
            moved.added if moved else (),
            moved.removed if moved else (),
            tuple(sorted(will - was)),
            tuple(sorted(was - will)),
        )
        if change != PlacementChange(place):
            found.append(change)
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
