"""What a change not yet made would do to destinations.

A hypothetical batch is put into the table itself, the placements it touches are asked, and it is
rolled back; so the answer comes from the same structures as the deed would, costs as little, and
knows no cap. Between the two nobody else may look, which in one thread needs no lock.

The way back is a list of opposites, each taken from the table just before its change is made and
played in reverse. So a batch that changes one object twice, or removes what it has put, comes out
as it was; and since an opposite is an ordinary change, nobody has to hear that it was undone.

What has to be compared depends on who is touched. A placement that merely selects can differ at the
Locations the batch is about and nowhere else, so only these are asked, before and after. One with a
strategy may take a Location at the other end of the fleet because it lost one here, and one that is
itself edited may differ anywhere: of these the whole answer is compared.

What runs at a Location that would not admit it any more is not removed but held, and listed apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from pyroaring import BitMap

from skerry.api.kcp.resources import workspace_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import Grant
from skerry.logic.fleet.placement.records import Destination, Location, Placement, SyncTarget

_FEW_LOCATIONS = 16

Record = Placement | Location | SyncTarget | Grant
Running = Callable[[ObjectRef], frozenset[Destination]]


@dataclass(frozen=True, slots=True)
class Put:
    """An EdgePlacement, Location, SyncTarget or LocationGrant as it would be."""

    record: Record


@dataclass(frozen=True, slots=True)
class Remove:
    """An object that would be gone."""

    kind: type[Record]
    ref: ObjectRef


@dataclass(frozen=True, slots=True)
class LabelWorkspace:
    """The labels a workspace would have."""

    cluster: str
    labels: Mapping[str, str]


Change = Put | Remove | LabelWorkspace


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change does to one placement; all lists in the order of slices.

    ``held`` would stay until its removal is confirmed; ``freed`` is held now and would not be.
    """

    placement: ObjectRef
    added: tuple[Destination, ...]
    removed: tuple[Destination, ...]
    held: tuple[Destination, ...] = ()
    freed: tuple[Destination, ...] = ()


def what_if(
    index: DestinationTable,
    changes: Sequence[Change],
    running: Running = lambda _: frozenset(),
) -> list[Difference]:
    """Return the placements that *changes*, made together, would change, by name.

    *running* returns the destinations a placement has now, for strategies and for what is held.
    """
    with hypothetical(index, changes) as touched:
        scope = _Scope(index, running, touched)
        after = scope.answers()
    before = scope.answers()
    differences = (_difference(ref, before[ref], after[ref]) for ref in sorted(touched.placements))
    return [each for each in differences if each.added or each.removed or each.held or each.freed]


@dataclass(slots=True)
class Touched:
    """What a batch of changes may have made different.

    ``changed`` are placements that are themselves changed; ``locations`` those Locations that any
    other difference must be at.
    """

    placements: set[ObjectRef] = field(default_factory=set)
    changed: set[ObjectRef] = field(default_factory=set)
    locations: set[ObjectRef] = field(default_factory=set)


@contextmanager
def hypothetical(index: DestinationTable, changes: Sequence[Change]) -> Iterator[Touched]:
    """Have *changes* in the table while inside; afterwards it is as before, whatever happens.

    Nobody else may look in between, so there must be no waiting inside.
    """
    touched, undo = Touched(), list[Change]()
    try:
        for change in changes:
            undo.append(_inverse(index, change))
            _note(index, change, touched)
            touched.placements |= _make(index, change)
            _note(index, change, touched)
        yield touched
    finally:
        for change in reversed(undo):
            _make(index, change)


def _note(index: DestinationTable, change: Change, touched: Touched) -> None:
    """Note the Locations a change is about, as things are now."""
    kind, ref = _subject(change)
    inventory = index.inventory
    if kind is Placement:
        touched.changed.add(ref)
    elif kind is Location:
        touched.locations.add(ref)
    else:
        numbers = inventory.locations_in(ref.cluster)
        if kind is SyncTarget:
            target = inventory.sync_target(ref)
            numbers = inventory.having(ref.cluster, target.labels) if target else BitMap()
        touched.locations.update(inventory.location_at(number).ref for number in numbers)


class _Answer(NamedTuple):
    """Destinations of a placement, as far as they may differ, and those of them that are held."""

    destinations: list[Destination]
    held: list[Destination]


class _Scope:
    """The placements that changes touched, and what has to be asked of them.

    A placement that is itself changed, or has a strategy, may differ anywhere and is asked for
    everything; the others only for what they have at the Locations touched.
    """

    def __init__(self, index: DestinationTable, running: Running, touched: Touched) -> None:
        self._index = index
        self._running = running
        self._touched = touched

    def answers(self) -> dict[ObjectRef, _Answer]:
        """Return the destinations of the touched placements, as far as they may differ."""
        numbers = map(self._index.inventory.location_number, self._touched.locations)
        there = BitMap(number for number in numbers if number is not None)
        # Of few Locations it is cheaper to ask who selects them than to ask everybody for all.
        selecting = None
        if len(there) <= _FEW_LOCATIONS:
            selecting = [
                (self._index.selecting(number), self._index.destinations_at((number,)))
                for number in there
            ]
        return {ref: self._answer(ref, there, selecting) for ref in self._touched.placements}

    def _answer(
        self,
        ref: ObjectRef,
        there: BitMap,
        selecting: Sequence[tuple[set[ObjectRef], list[Destination]]] | None,
    ) -> _Answer:
        index, placement = self._index, self._index.placement(ref)
        strategy = placement is not None and placement.strategy is not None
        everywhere = strategy or ref in self._touched.changed
        if not everywhere and not index.consent.governs:
            if selecting is not None:
                found = [each for refs, held in selecting if ref in refs for each in held]
                return _Answer(sorted(found) if len(selecting) > 1 else found, [])
            return _Answer(index.destinations_at(index.matching(ref) & there), [])
        running = self._running(ref)
        pairs = {each.location_ref for each in running}
        chosen = index.chosen(ref, pairs, pairs)
        if not everywhere:
            chosen = chosen._replace(locations=[n for n in chosen.locations if n in there])
        destinations = index.destinations_of(chosen, running)
        held = {index.inventory.location_at(number).ref for number in chosen.held}
        return _Answer(destinations, [d for d in destinations if d.location_ref in held])


def _subject(change: Change) -> tuple[type, ObjectRef]:
    if isinstance(change, LabelWorkspace):
        return LabelWorkspace, workspace_ref(change.cluster, "")
    if isinstance(change, Remove):
        return change.kind, change.ref
    return type(change.record), change.record.ref


def _difference(ref: ObjectRef, before: _Answer, after: _Answer) -> Difference:
    return Difference(
        ref,
        _missing(after.destinations, before.destinations),
        _missing(before.destinations, after.destinations),
        _missing(after.held, before.held),
        _missing(before.held, after.held),
    )


def _missing(found: Sequence[Destination], known: Sequence[Destination]) -> tuple[Destination, ...]:
    """Return what is *found* and not *known*."""
    if not found or not known:
        return tuple(found)
    there = set(known)
    return tuple(each for each in found if each not in there)


def _make(index: DestinationTable, change: Change) -> set[ObjectRef]:
    if isinstance(change, LabelWorkspace):
        return index.put_workspace(change.cluster, change.labels)
    if isinstance(change, Remove):
        if change.kind is Placement:
            return index.remove_placement(change.ref)
        if change.kind is Location:
            return index.remove_location(change.ref)
        if change.kind is Grant:
            return index.remove_grant(change.ref)
        return index.remove_sync_target(change.ref)
    if isinstance(change.record, Placement):
        return index.put_placement(change.record)
    if isinstance(change.record, Location):
        return index.put_location(change.record)
    if isinstance(change.record, Grant):
        return index.put_grant(change.record)
    return index.put_sync_target(change.record)


def _inverse(index: DestinationTable, change: Change) -> Change:
    """Return the change that would take *change* back."""
    if isinstance(change, LabelWorkspace):
        return LabelWorkspace(change.cluster, index.workspace_labels(change.cluster))
    kind, ref = _subject(change)
    old: Record | None
    if kind is Placement:
        old = index.placement(ref)
    elif kind is Location:
        old = index.inventory.location(ref)
    elif kind is Grant:
        old = index.consent.grant(ref)
    else:
        old = index.inventory.sync_target(ref)
    return Put(old) if old is not None else _removal(change)


def _removal(change: Put | Remove) -> Remove:
    return change if isinstance(change, Remove) else Remove(type(change.record), change.record.ref)
