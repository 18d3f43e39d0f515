"""What a change not yet made would do to destinations.

The change is made to the index itself, the placements it touches are asked, and it is taken back;
so the answer comes from the same structures as the deed would, costs as little, and knows no cap.
Between the two nobody else may look, which in one thread needs no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

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
    made = _Made(index, present)
    undo: list[Change] = []
    for change in changes:
        undo.append(_inverse(index, change))
        made.make(change)
    after = made.answers()
    for change in reversed(undo):
        _make(index, change)
    before = made.answers()
    differences = (
        _difference(place, before[place], after[place]) for place in sorted(made.touched)
    )
    return [each for each in differences if each.added or each.removed]


class _Made:
    """What changes have touched: placements, and the Locations any difference must be at.

    A placement that is itself changed, or has a strategy, may differ anywhere and is asked for
    everything; the others only for what they have at those Locations.
    """

    def __init__(
        self, index: PlacementIndex, present: Callable[[Place], frozenset[tuple[str, str]]]
    ) -> None:
        self._index = index
        self._present = present
        self.touched: set[Place] = set()
        self._changed: set[Place] = set()
        self._locations: set[Place] = set()

    def make(self, change: Change) -> None:
        self._note(change)
        self.touched |= _make(self._index, change)
        self._note(change)

    def _note(self, change: Change) -> None:
        """Note the Locations a change is about, as things are now."""
        kind, place = _subject(change)
        inventory = self._index.inventory
        if kind is Placement:
            self._changed.add(place)
        elif kind is Location:
            self._locations.add(place)
        else:
            numbers = inventory.locations_in(place.cluster)
            if kind is SyncTarget:
                target = inventory.sync_target(place)
                numbers = inventory.having(place.cluster, target.labels) if target else BitMap()
            self._locations.update(inventory.location_at(number).place for number in numbers)

    def answers(self) -> dict[Place, list[Destination]]:
        """Return the destinations of the touched placements, as far as they may differ."""
        numbers = map(self._index.inventory.location_number, self._locations)
        there = BitMap(number for number in numbers if number is not None)
        return {place: self._answer(place, there) for place in self.touched}

    def _answer(self, place: Place, there: BitMap) -> list[Destination]:
        placement = self._index.placement(place)
        strategy = placement is not None and placement.strategy is not None
        if strategy or place in self._changed:
            return self._index.destinations(place, self._present(place))
        return self._index.destinations_at(self._index.matching(place) & there)


def _subject(change: Change) -> tuple[type, Place]:
    if isinstance(change, LabelWorkspace):
        return LabelWorkspace, Place(change.cluster, "")
    if isinstance(change, Remove):
        return change.kind, change.place
    return type(change.record), change.record.place


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
    kind, place = _subject(change)
    old: Placement | Location | SyncTarget | None
    if kind is Placement:
        old = index.placement(place)
    elif kind is Location:
        old = index.inventory.location(place)
    else:
        old = index.inventory.sync_target(place)
    return Put(old) if old is not None else _removal(change)


def _removal(change: Put | Remove) -> Remove:
    return (
        change if isinstance(change, Remove) else Remove(type(change.record), change.record.place)
    )
