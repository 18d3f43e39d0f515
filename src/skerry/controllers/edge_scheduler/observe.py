"""What a placement should have, from the index, and what it has, from the slices' cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from skerry.api.edge import (
    SINGLE_PLACEMENT_SLICES,
    SliceOwner,
    placement_of_slice,
    slice_owner,
    slice_ref,
)
from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.consent import ConsentState
from skerry.controllers.edge_scheduler.keys import NAME, Waking
from skerry.controllers.edge_scheduler.written import HeldSlice, WrittenSlices
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.index import NOWHERE, Chosen, PlacementIndex
from skerry.logic.fleet.placement.records import Destination, is_being_deleted
from skerry.logic.fleet.placement.slices import destinations_in, slice_names
from skerry.runtime.client import Client
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Informer

BY_PLACEMENT = "placement"
# Locations with a broken instanceSelector that a condition names; the rest are counted.
_MOST_NAMED = 5

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class Result:
    """What was found for a placement, at one generation of it."""

    generation: int
    matching: int = 0
    chosen: int = 0
    destinations: int = 0
    errors: tuple[str, ...] = ()
    unsatisfiable: tuple[str, ...] = ()
    wanted_locations: int | None = None
    # Why a strategy found fewer than that.
    shortage: str = ""
    broken_locations: tuple[str, ...] = ()
    consent: Consent | None = None


@dataclass(frozen=True, slots=True)
class Consent:
    """What grants have to do with a placement: numbers of Locations, and who refuses them.

    ``held`` are some of those ``refused``. ``observed`` would be refused if grants enforced.
    """

    refused: int = 0
    held: int = 0
    observed: int = 0
    refusing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """One placement: its destinations, and the slices that are thought to be its own."""

    ref: ObjectRef
    owner: SliceOwner
    result: Result
    destinations: tuple[Destination, ...] = ()
    slices: Mapping[str, HeldSlice] = field(default_factory=dict)
    # Names that are other placements' own.
    taken: frozenset[str] = frozenset()
    # Whether what the slices hold is to be remembered, because some Location refuses it.
    tracked: bool = False


def slice_owners(obj: Object) -> tuple[tuple[str, str], ...]:
    """Index slices under the placement they belong to."""
    return ((key_of(obj).cluster, placement_of_slice(obj)),)


class Observer:
    """Looks at one placement at a time."""

    def __init__(
        self,
        index: PlacementIndex,
        placements: Informer,
        slices: Informer,
        written: WrittenSlices,
        waking: Waking,
        client: Client,
        consent: ConsentState,
        per_slice: int,
    ) -> None:
        self._consent = consent
        self._index = index
        self._placements = placements
        self._slices = slices
        self._written = written
        self._waking = waking
        self._client = client
        self._per_slice = per_slice
        # Locations chosen, by placement; only those with a strategy have memory.
        self._chosen: dict[ObjectRef, frozenset[ObjectRef]] = {}
        # What was found last, for the status.
        self.results: dict[ObjectRef, Result] = {}

    async def observe(self, ref: ObjectRef) -> Observed | None:
        """Return what is to be compared; None when there is nothing to do."""
        _log.info("processing key", v=2, key=ref.qualified_name)
        obj = self.placement(ref)
        if obj is None:
            _log.info("object deleted before handled", v=2, key=ref.qualified_name)
            self._chosen.pop(ref, None)
            self.results.pop(ref, None)
            self._consent.forget(ref)
            self._waking.cause(ref)
            return None
        if is_being_deleted(obj):
            return None
        return await self._observed(ref, obj)

    def placement(self, ref: ObjectRef) -> Object | None:
        """Return the EdgePlacement called *ref*."""
        return self._placements.index.get(Key(ref.cluster, "", ref.name))

    async def _observed(self, ref: ObjectRef, obj: Object) -> Observed:
        metadata = obj["metadata"]
        owner = SliceOwner(metadata["name"], metadata["uid"])
        await self._remember(ref)
        # No waiting from here on: the index and the caches are read at one moment.
        placement = self._index.placement(ref)
        generation = int(metadata.get("generation") or 0)
        if placement is None or placement.errors:
            errors = placement.errors if placement is not None else ()
            self.results[ref] = Result(generation, errors=errors)
            return Observed(ref, owner, self.results[ref])
        running = self._consent.running.destinations(ref)
        pairs = {each.location_ref for each in running}
        found = self._index.chosen(ref, self._chosen.get(ref, NOWHERE), pairs)
        chosen = found.locations
        if placement.strategy is not None:
            located = (self._index.inventory.location_at(number).ref for number in chosen)
            self._chosen[ref] = frozenset(located)
        destinations = tuple(self._index.destinations_of(found, running))
        self.results[ref] = Result(
            generation,
            len(found.matching),
            len(chosen),
            len(destinations),
            unsatisfiable=placement.unsatisfiable,
            wanted_locations=placement.strategy.number if placement.strategy else None,
            shortage=found.shortage,
            broken_locations=self._broken(chosen),
            consent=self._consented(ref, found),
        )
        more = len(destinations) > self._per_slice
        taken: frozenset[str] = self._taken(ref) if more else frozenset()
        pages = -(-len(destinations) // self._per_slice)
        held = self._held(ref, slice_names(ref.name, pages, taken))
        return Observed(
            ref, owner, self.results[ref], destinations, held, taken, bool(found.refused)
        )

    def _consented(self, ref: ObjectRef, found: Chosen) -> Consent | None:
        """Return what grants have to do with a placement, and note it for their owners."""
        state = self._consent
        if not self._index.consent.is_used:
            return None
        state.note(ref, found)
        if not found.refused:
            state.running.forget(ref)
        refused = (self._index.inventory.location_at(n).ref for n in found.refused)
        state.running.settle(ref, refused)
        if not self._index.consent.is_about(found.matching):
            return None
        refusing = self._index.consent.refusing_names(found.refused or found.observed)
        return Consent(len(found.refused), len(found.held), len(found.observed), refusing)

    def _held(self, ref: ObjectRef, ours: Sequence[str]) -> dict[str, HeldSlice]:
        """Return the slices that belong to the placement, or have names that are its own."""
        keys = self._slices.index.keys_by(BY_PLACEMENT, (ref.cluster, ref.name))
        names = {*ours, *(key.name for key in keys), *self._written.names(ref)}
        found: dict[str, HeldSlice] = {}
        for name in sorted(names):
            cached = self._slices.index.get(Key(ref.cluster, "", name))
            held = self._written.newest(slice_ref(ref.cluster, name), cached)
            if held is not None and (name in ours or _owned(held, ref.name)):
                found[name] = held
        return found

    def _taken(self, ref: ObjectRef) -> frozenset[str]:
        prefix = f"{ref.name}-"
        return frozenset(
            key.name
            for key in self._placements.index
            if key.cluster == ref.cluster and key.name.startswith(prefix)
        )

    def _broken(self, chosen: list[int]) -> tuple[str, ...]:
        inventory = self._index.inventory
        if not inventory.broken:
            return ()
        named = [inventory.location_at(number) for number in chosen if number in inventory.broken]
        return tuple(f"{each.ref.qualified_name}: {each.errors[0]}" for each in named[:_MOST_NAMED])

    async def _remember(self, ref: ObjectRef) -> None:
        """Learn from the slices what was chosen before we started, and what is running.

        Again when the index changed meanwhile: who is refused then must be known to run or not.
        """
        while self._forgot_choice(ref) or self._forgot_running(ref):
            found = await self._read_slices(ref)
            if self._forgot_choice(ref):
                everywhere = (each for piece in found for each in destinations_in(piece))
                self._chosen[ref] = frozenset(each.location_ref for each in everywhere)
            self._consent.running.note(ref, self._own(ref, found))

    def _forgot_choice(self, ref: ObjectRef) -> bool:
        placement = self._index.placement(ref)
        strategy = placement.strategy if placement is not None else None
        return strategy is not None and ref not in self._chosen

    def _forgot_running(self, ref: ObjectRef) -> bool:
        return not self._consent.running.knows(ref) and self._index.refuses(ref)

    async def _read_slices(self, ref: ObjectRef) -> list[Object]:
        found: list[Object] = []
        for name in self._held(ref, [ref.name]):
            with suppress(NotFound):
                found.append(
                    await self._client.for_cluster(ref.cluster).get(SINGLE_PLACEMENT_SLICES, name)
                )
        return found

    def _own(self, ref: ObjectRef, slices: Sequence[Object]) -> set[Destination]:
        """Return what slices hold that belong to no other object than the placement there is.

        Those of a namesake that was deleted say nothing of this one.
        """
        obj = self.placement(ref)
        uid = obj["metadata"]["uid"] if obj is not None else ""
        return {
            destination
            for piece in slices
            if (owner := slice_owner(piece["metadata"])) is None or owner.uid == uid
            for destination in destinations_in(piece)
        }


def _owned(held: HeldSlice, placement: str) -> bool:
    return placement_of_slice({"metadata": held.metadata}) == placement
