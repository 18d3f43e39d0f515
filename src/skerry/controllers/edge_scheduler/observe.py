"""What a placement should have, from the index, and what it has, from the slices' cache.

Reading changes nothing: what is to be remembered is part of what is observed, and is remembered
when the plan is carried out. Only what a process that has just started does not know yet is read
from the server first (``recall``).

The index and the overlay of slices are read without waiting in between, so what is desired and what
is there belong to one moment. Where something has to be read from the server, all of it is computed
again afterwards. The overlay shows the answers to our own writes before the watch does: without it
the next reconcile would find the slices of before, and write them once more or lose a Conflict.

None means one of two things: there is nothing to do, or the answer would be made from half of what
it depends on. Then an event is on its way that enqueues the placement again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from skerry.api.edge import (
    SINGLE_PLACEMENT_SLICES,
    SliceOwner,
    is_staged,
    placement_of_slice,
    slice_owner,
)
from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.guards import Unread
from skerry.controllers.edge_scheduler.observed import (
    Consent,
    Gone,
    Kept,
    Observation,
    Observed,
    Recording,
    Result,
)
from skerry.controllers.edge_scheduler.placement_cache import PlacementCache
from skerry.controllers.edge_scheduler.staged_removal import is_concerned, without_finalizer
from skerry.kit.log import Logger
from skerry.logic.fleet.guards.book import has_finalizer
from skerry.logic.fleet.placement.destination import NOWHERE, Chosen, DestinationTable
from skerry.logic.fleet.placement.records import Destination, is_being_deleted
from skerry.logic.fleet.placement.slices import destinations_in, page_names, page_number
from skerry.runtime.client import Client
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Informer
from skerry.runtime.write_overlay import InformerOverlay

NAME = "edge-scheduler"
BY_PLACEMENT = "placement"
# Locations with a broken instanceSelector that a condition names; the rest are counted.
_MAX_NAMED = 5

_log = Logger(NAME)


def slice_owners(obj: Object) -> tuple[tuple[str, str], ...]:
    """Index slices under the placement they belong to."""
    return ((key_of(obj).cluster, placement_of_slice(obj)),)


class Observer:
    """Observes one placement at a time."""

    def __init__(
        self,
        index: DestinationTable,
        placements: Informer,
        slices: InformerOverlay,
        cache: PlacementCache,
        client: Client,
        limit: int,
        recording: Callable[[ObjectRef, Object], Recording | None] | None = None,
    ) -> None:
        """*limit* is how many destinations a slice may hold.

        *recording* returns what the decisions about a placement are recorded with.
        """
        self._recording = recording
        self._index = index
        self._placements = placements
        self._slices = slices
        self._cache = cache
        self._client = client
        self._limit = limit

    async def observe(self, ref: ObjectRef) -> Observation | None:
        """Return what is to be compared; None when there is nothing to do.

        A turn either has what guards need, or reads the pages that it lacks. If the next one lacks
        the same, they hold something else by now than the cache says: its event comes back here.
        """
        _log.info("processing key", v=2, key=ref.qualified_name)
        obj = self.placement(ref)
        if obj is None:
            _log.info("object deleted before handled", v=2, key=ref.qualified_name)
            return self._gone(ref)
        if is_being_deleted(obj) and not has_finalizer(obj) and not is_staged(obj):
            return self._released(ref, obj)
        await self.recall(ref)
        if self._cache.rollouts is not None:
            await self._cache.rollouts.resolve(ref, self._client)
        unread = Unread(())
        while True:
            # No waiting in here: the index and the caches are read at one moment.
            obj = self.placement(ref)
            if obj is None:
                return self._gone(ref)
            observed = self._observed(ref, obj)
            if is_staged(obj):
                return self._with_rollout(observed)
            rollouts = self._cache.rollouts
            waiting = rollouts.departing(observed) if rollouts is not None else frozenset[int]()
            guarded = self._cache.guards.observe(observed, obj, waiting)
            if not isinstance(guarded, Unread):
                return self._with_rollout(replace(observed, guarded=guarded))
            if guarded == unread:
                return None  # the cache is behind what was read, and an event is on its way
            unread = guarded
            for piece in await self._read_pages(ref, unread.pages):
                self._cache.guards.note(ref, destinations_in(piece))

    def _released(self, ref: ObjectRef, obj: Object) -> Gone | Kept:
        """Let a placement go whose removal in waves nobody asks for any more."""
        if is_concerned(obj):
            return Gone(ref, actions=(without_finalizer(ref, obj),))
        return Kept(ref)

    def _gone(self, ref: ObjectRef) -> Gone:
        """Return the end of a placement; its slices are left to the garbage collector."""
        rollouts = self._cache.rollouts
        actions = rollouts.orphaned(ref) if rollouts is not None else ()
        return Gone(ref, self._cache.causes.of(ref), actions)

    def _with_rollout(self, observed: Observed) -> Observed:
        rollouts = self._cache.rollouts
        found = rollouts.observe(observed) if rollouts is not None else None
        return replace(observed, rollout=found) if found is not None else observed

    def placement(self, ref: ObjectRef) -> Object | None:
        """Return the EdgePlacement called *ref*."""
        return self._placements.index.get(Key(ref.cluster, "", ref.name))

    def _observed(self, ref: ObjectRef, obj: Object) -> Observed:
        """Return what the index and the caches have, at one moment.

        Two ways end early. One that is being deleted, and that guards keep, wants no destination:
        all that it has departs. Of one with an invalid selector no slice is looked at.
        """
        metadata = obj["metadata"]
        owner, causes = SliceOwner(metadata["name"], metadata["uid"]), self._cache.causes.of(ref)
        placement = self._index.placement(ref)
        generation = int(metadata.get("generation") or 0)
        if is_being_deleted(obj) and not is_staged(obj):
            slices = self._pages(ref, 0)[0]
            return Observed(
                ref,
                owner,
                Result(generation),
                slices=slices,
                causes=causes,
                history=self._recorded(ref, obj),
            )
        if placement is None or placement.errors:
            errors = placement.errors if placement is not None else ()
            return Observed(ref, owner, Result(generation, errors=errors), causes=causes)
        index, inventory = self._index, self._index.inventory
        running = self._cache.running.destinations(ref)
        pairs = {each.location_ref for each in running}
        found = index.chosen(ref, self._cache.chosen(ref) or NOWHERE, pairs)
        destinations = tuple(index.destinations_of(found, running))
        strategy = placement.strategy
        result = Result(
            generation,
            len(found.matching),
            len(found.locations),
            len(destinations),
            unsatisfiable=placement.unsatisfiable,
            wanted_locations=strategy.number if strategy else None,
            shortage=found.shortage,
            broken_locations=self._broken(found.locations),
            consent=self._consent(found),
        )
        slices, names = self._pages(ref, len(destinations))
        granted = index.consent.is_used
        return Observed(
            ref,
            owner,
            result,
            destinations,
            slices,
            names,
            causes,
            frozenset(inventory.location_at(n).ref for n in found.locations) if strategy else None,
            found if granted else None,
            tuple(inventory.location_at(n).ref for n in found.refused) if granted else (),
            bool(found.refused),
            history=self._recorded(ref, obj),
            staged=obj if is_concerned(obj) else None,
        )

    def _recorded(self, ref: ObjectRef, obj: Object) -> Recording | None:
        return self._recording(ref, obj) if self._recording is not None else None

    def _consent(self, found: Chosen) -> Consent | None:
        """Return what grants have to do with a placement; None where none is about its Locations.

        None takes the condition ``Granted`` off the status again.
        """
        consent = self._index.consent
        if not consent.is_used or not consent.is_about(found.matching):
            return None
        refusing = consent.refusing_names(found.refused or found.observed)
        return Consent(len(found.refused), len(found.held), len(found.observed), refusing)

    # -- slices ------------------------------------------------------------------------------

    def _pages(self, ref: ObjectRef, count: int) -> tuple[dict[str, Object], tuple[str, ...]]:
        """Return the slices of a placement, and the names that they may have.

        Among the slices are those of these names that are nobody's, to be taken over.
        """
        own = self._own_slices(ref)
        # One page holds them all, unless its name is not to be had. Else as many further names as
        # all of them could need: ``pages`` takes no more of them than it fills.
        fresh = -(-count // self._limit)
        is_taken = self._is_taken(ref)
        if count <= self._limit and not is_taken(ref.name):
            fresh = 0
        names = tuple(page_names(ref.name, own, fresh, is_taken))
        for name in names:
            if name not in own:
                cached = self._slices.get(Key(ref.cluster, "", name))
                if cached is not None:
                    own[name] = cached
        return own, names

    def _own_slices(self, ref: ObjectRef) -> dict[str, Object]:
        """Return the slices that everybody reads as the placement's."""
        found = self._slices.by(BY_PLACEMENT, (ref.cluster, ref.name))
        return {each["metadata"]["name"]: each for each in found}

    def _is_taken(self, ref: ObjectRef) -> Callable[[str], bool]:
        """Return the test whether the name of a slice belongs to another placement.

        It does if a placement is called so. And the placement's own name does, as long as another
        one has a page there: it will remove it when it has put its destinations elsewhere.
        """

        def is_taken(name: str) -> bool:
            if name != ref.name:
                return Key(ref.cluster, "", name) in self._placements.index
            held = self._slices.get(Key(ref.cluster, "", name))
            return held is not None and self._is_anothers_page(ref, held)

        return is_taken

    def _is_anothers_page(self, ref: ObjectRef, held: Object) -> bool:
        name = placement_of_slice(held)
        if name == ref.name or page_number(name, ref.name) is None:
            return False
        other = self._placements.index.get(Key(ref.cluster, "", name))
        if other is None or is_being_deleted(other):
            return False
        owner = slice_owner(held["metadata"])
        return owner is None or owner.uid == other["metadata"]["uid"]

    def _broken(self, chosen: Sequence[int]) -> tuple[str, ...]:
        inventory = self._index.inventory
        if not inventory.broken:
            return ()
        named = [inventory.location_at(number) for number in chosen if number in inventory.broken]
        return tuple(f"{each.ref.qualified_name}: {each.errors[0]}" for each in named[:_MAX_NAMED])

    # -- what a new process does not know ----------------------------------------------------

    async def recall(self, ref: ObjectRef) -> None:
        """Learn from the slices what was chosen before we started, and what is running.

        Again when the index changed meanwhile: who is refused then must be known to run or not.
        The server is read and not the cache, as that keeps digests of destinations and no names. A
        strategy prefers what it chose before, so a restart is no reason to move.
        """
        while self._forgot_choice(ref) or self._forgot_running(ref):
            found = await self._read_slices(ref)
            if self._forgot_choice(ref):
                everywhere = (each for piece in found for each in destinations_in(piece))
                self._cache.note_chosen(ref, frozenset(each.location_ref for each in everywhere))
            self._cache.running.note(ref, self._held_by(ref, found))

    def _forgot_choice(self, ref: ObjectRef) -> bool:
        placement = self._index.placement(ref)
        strategy = placement.strategy if placement is not None else None
        return strategy is not None and self._cache.chosen(ref) is None

    def _forgot_running(self, ref: ObjectRef) -> bool:
        return not self._cache.running.knows(ref) and self._index.refuses(ref)

    async def _read_slices(self, ref: ObjectRef) -> list[Object]:
        return await self._read_pages(ref, sorted({ref.name, *self._own_slices(ref)}))

    async def _read_pages(self, ref: ObjectRef, names: Iterable[str]) -> list[Object]:
        """Read slices one after the other; one that is not there holds nothing."""
        found: list[Object] = []
        for name in names:
            with suppress(NotFound):
                client = self._client.for_cluster(ref.cluster)
                found.append(await client.get(SINGLE_PLACEMENT_SLICES, name))
        return found

    def _held_by(self, ref: ObjectRef, slices: Sequence[Object]) -> set[Destination]:
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
