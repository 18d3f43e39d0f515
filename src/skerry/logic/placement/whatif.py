"""What a change not yet made would do to destinations.

The change is made to the index itself, the placements it touches are asked, and it is taken back;
so the answer comes from the same structures as the deed would, costs as little, and knows no cap.
Between the two nobody else may look, which in one thread needs no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skerry.logic.placement.index import PlacementIndex
from skerry.logic.placement.records import Destination, Location, Place, Placement, SyncTarget


@dataclass(frozen=True, slots=True)
class Put:
    """An EdgePlacement, Location or SyncTarget as it would be."""

    record: Placement | Location | SyncTarget


@dataclass(frozen=True, slots=True)
class Remove:
    """An object that would be gone."""

    kind: type[Placement] | type[Location] | type[SyncTarget]
    place: Place


@dataclass(frozen=True, slots=True)
class LabelWorkspace:
    """The labels a workspace would have."""

    cluster: str
    labels: Mapping[str, str]


Change = Put | Remove | LabelWorkspace


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change does to one placement; both lists in the order of slices."""

    placement: Place
    added: tuple[Destination, ...]
    removed: tuple[Destination, ...]


def what_if(
    index: PlacementIndex,
    changes: Sequence[Change],
    present: Callable[[Place], frozenset[tuple[str, str]]] = lambda _: frozenset(),
) -> list[Difference]:
    """Return the placements that *changes*, made together, would change, by name.

    *present* tells the Locations a placement has now; only a strategy asks.
    """
    touched: set[Place] = set()
    undo: list[Change] = []
    for change in changes:
        undo.append(_inverse(index, change))
        touched |= _make(index, change)
    after = {place: index.destinations(place, present(place)) for place in touched}
    for change in reversed(undo):
        _make(index, change)
    differences = (
        _difference(place, index.destinations(place, present(place)), after[place])
        for place in sorted(touched)
    )
    return [each for each in differences if each.added or each.removed]


def _difference(
    place: Place, before: Sequence[Destination], after: Sequence[Destination]
) -> Difference:
    was, will = set(before), set(after)
    return Difference(
        place,
        tuple(each for each in after if each not in was),
        tuple(each for each in before if each not in will),
    )


def _make(index: PlacementIndex, change: Change) -> set[Place]:
    if isinstance(change, LabelWorkspace):
        return index.put_workspace(change.cluster, change.labels)
    if isinstance(change, Remove):
        if change.kind is Placement:
            return index.remove_placement(change.place)
        if change.kind is Location:
            return index.remove_location(change.place)
        return index.remove_sync_target(change.place)
    if isinstance(change.record, Placement):
        return index.put_placement(change.record)
    if isinstance(change.record, Location):
        return index.put_location(change.record)
    return index.put_sync_target(change.record)


def _inverse(index: PlacementIndex, change: Change) -> Change:
    """Return the change that would take *change* back."""
    if isinstance(change, LabelWorkspace):
        return LabelWorkspace(change.cluster, index.workspace_labels(change.cluster))
    kind = change.kind if isinstance(change, Remove) else type(change.record)
    place = change.place if isinstance(change, Remove) else change.record.place
    old: Placement | Location | SyncTarget | None
    if kind is Placement:
        old = index.placement(place)
    elif kind is Location:
        old = index.inventory.location(place)
    else:
        old = index.inventory.sync_target(place)
    return Put(old) if old is not None else Remove(kind, place)
