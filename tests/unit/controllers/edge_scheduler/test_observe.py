"""What is compared for one placement: its destinations, its slices, and the names they may have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skerry.api.edge import (
    GUARD_FINALIZER,
    SINGLE_PLACEMENT_SLICES,
    SOURCE_PLACEMENT,
    SliceOwner,
    edge_placement_ref,
    placement_of_slice,
)
from skerry.api.errors import NotFound
from skerry.api.kcp.resources import workspace_ref
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.consent import ConsentState
from skerry.controllers.edge_scheduler.decide import decide
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.controllers.edge_scheduler.observe import BY_PLACEMENT, Observer, slice_owners
from skerry.controllers.edge_scheduler.observed import (
    Cause,
    Consent,
    Gathered,
    Gone,
    Kept,
    Observation,
    Observed,
)
from skerry.controllers.edge_scheduler.placement_cache import PlacementCache
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import location_of, placement_of, sync_target_of
from skerry.logic.fleet.placement.slices import lean_slice, new_slice, slice_as_written
from skerry.runtime.client import Client
from skerry.runtime.index import Index, key_of
from skerry.runtime.informer import Informer
from skerry.runtime.write_overlay import InformerOverlay
from skerry.scheduler.placement import location_chooser
from tests.kit.chain import building

_OWNER = SliceOwner("web", "uid-web").reference()
_LABEL = {SOURCE_PLACEMENT: "web"}


NOW = datetime(2025, 6, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("metadata", "placement"),
    [
        ({"name": "web-2", "ownerReferences": [_OWNER], "labels": _LABEL}, "web"),
        # A restore without owner references: the scheduler took it for a placement "web-2".
        ({"name": "web-2", "labels": _LABEL}, "web"),
        ({"name": "web-2"}, "web-2"),
    ],
)
def test_the_scheduler_takes_every_slice_for_whose_it_is_to_all_others(
    metadata: dict[str, Any], placement: str
) -> None:
    piece = {"metadata": {**metadata, "annotations": {"kcp.io/cluster": "wmw"}}}
    assert slice_owners(piece) == (("wmw", placement),)
    assert placement_of_slice(piece) == placement


class World:
    """Caches as informers fill them, and a server to read slices from."""

    def __init__(self, limit: int = 2) -> None:
        self.table = DestinationTable(location_chooser)
        self.cache = PlacementCache(
            ConsentState(self.table, lambda _: None), GuardState(self.table, lambda: NOW)
        )
        self.placements, self.slices = Index(), Index()
        self.slices.add_index(BY_PLACEMENT, slice_owners)
        self.stored: dict[str, Object] = {}
        self.reads: list[str] = []
        self.on_read: Callable[[], object] = lambda: None
        informer = SimpleNamespace(
            gvr=SINGLE_PLACEMENT_SLICES, index=self.slices, resource_version="1"
        )
        self.observer = Observer(
            self.table,
            cast(Informer, SimpleNamespace(index=self.placements)),
            InformerOverlay(cast(Informer, informer), project=slice_as_written),
            self.cache,
            cast(Client, self),
            limit,
        )
        self.table.put_location(location_of(building.location("l", {}, {})))

    def for_cluster(self, cluster: str) -> World:
        return self

    async def get(self, gvr: Any, name: str) -> Object:
        self.reads.append(name)
        self.on_read()
        if name not in self.stored:
            raise NotFound.of(gvr.group, gvr.resource, name)
        return self.stored[name]

    def place(self, name: str, *selectors: Object, **spec: Any) -> None:
        obj = building.placement(name, *(selectors or ({},)), **spec)
        obj["metadata"] |= {"uid": f"uid-{name}", "generation": 4}
        self.placements.put(key_of(obj), obj)
        self.table.put_placement(placement_of(obj))

    def targets(self, *names: str) -> None:
        for name in names:
            self.table.put_sync_target(sync_target_of(building.sync_target(name, {})))

    def slice(self, name: str, owner: str, uid: str = "") -> None:
        obj = new_slice(name, SliceOwner(owner, uid or f"uid-{owner}"), ())
        obj["metadata"] |= {"annotations": {"kcp.io/cluster": "wmw"}, "uid": f"u-{name}"}
        self.stored[name] = obj
        self.slices.put(key_of(obj), lean_slice(obj))

    def observe(self, name: str = "web") -> Observation | None:
        return asyncio.run(self.observer.observe(edge_placement_ref("wmw", name)))

    def observed(self, name: str = "web") -> Observed:
        found = self.observe(name)
        assert isinstance(found, Observed)
        return found


def test_a_placement_that_is_not_there_is_gone() -> None:
    assert World().observe() == Gone(edge_placement_ref("wmw", "web"))


def test_a_placement_that_is_being_deleted_is_left_alone() -> None:
    world = World()
    obj = building.placement("web", {})
    obj["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    world.placements.put(key_of(obj), obj)
    found = world.observe()
    assert isinstance(found, Kept)
    plan = decide(found)
    assert plan.observed == Kept(edge_placement_ref("wmw", "web"))
    assert not plan.actions
    assert not plan.before


def test_what_is_found_counts_locations_and_destinations_at_a_generation() -> None:
    world = World()
    world.place("web")
    world.targets("a", "b")
    found = world.observed()
    assert (found.result.generation, found.result.matching, found.result.chosen) == (4, 1, 1)
    assert [each.sync_target for each in found.destinations] == ["a", "b"]
    assert found.owner == SliceOwner("web", "uid-web")
    assert (found.found, found.refused, found.tracked, found.chosen) == (None, (), False, None)


def test_an_invalid_selector_has_errors_and_no_destinations() -> None:
    world = World()
    world.place("web", {"matchLabels": {"x" * 70: "y"}})
    world.targets("a")
    found = world.observed()
    assert found.result.errors
    assert found.destinations == ()


def test_one_page_is_enough_for_few_and_more_have_further_names() -> None:
    world = World()
    world.place("web")
    world.targets("a", "b")
    assert world.observed().page_names == ("web",)
    world.targets("c")
    assert world.observed().page_names == ("web", "web-2", "web-3")


def test_names_of_other_placements_are_not_for_pages() -> None:
    world = World()
    world.place("web")
    world.place("web-2", {"matchLabels": {"no": "where"}})
    world.targets("a", "b", "c")
    world.slice("web-2", "web")
    found = world.observed()
    assert found.page_names == ("web", "web-3", "web-4")
    assert set(found.slices) == {"web-2"}, "it is still read as the placement's"


def test_a_placement_does_without_its_name_while_anothers_page_has_it() -> None:
    world = World()
    world.place("web")
    world.place("web-2")
    world.slice("web-2", "web")
    assert world.observed("web-2").page_names == ("web-2-2",)
    world.slice("web-2", "web", "another-life")
    assert world.observed("web-2").page_names == ("web-2",), "the garbage collector's anyway"
    world.slice("web-2", "stranger")
    assert world.observed("web-2").page_names == ("web-2",)


def test_a_slice_of_nobody_is_seen_where_a_page_would_be() -> None:
    world = World()
    world.place("web")
    world.targets("a", "b", "c")
    world.slice("web-3", "nobody")
    world.slice("other", "nobody")
    assert set(world.observed().slices) == {"web-3"}


def test_observing_twice_says_the_same_and_takes_nothing_away() -> None:
    world = World()
    world.place("web", strategy={"numberOfLocations": 1})
    world.targets("a")
    ref = edge_placement_ref("wmw", "web")
    cause = Cause("EdgePlacement", ref)
    world.cache.causes.note(ref, cause)
    first = world.observed()
    assert world.observed() == first
    assert first.causes == world.cache.causes.of(ref) == Gathered((cause,), 1)
    assert world.cache.result(ref) is None


def test_a_new_process_reads_once_what_a_strategy_chose_before() -> None:
    world = World()
    world.table.put_location(location_of(building.location("m", {}, {})))
    world.targets("a")
    world.place("web", strategy={"numberOfLocations": 1})
    world.slice("web", "web")
    world.stored["web"]["destinations"] = [
        {"cluster": "imw", "locationName": "m", "syncTargetName": "a", "syncTargetUID": "u"}
    ]
    found = world.observed()
    assert found.chosen is not None
    assert [each.name for each in found.chosen] == ["m"], "who is there stays"
    assert world.reads == ["web"]
    world.observed()
    assert world.reads == ["web"]


def test_locations_with_a_broken_instance_selector_are_named() -> None:
    world = World()
    broken = building.location("x", {}, {"matchLabels": {"y" * 70: "z"}})
    world.table.put_location(location_of(broken))
    world.place("web")
    (named,) = world.observed().result.broken_locations
    assert named.startswith("imw|x: ")


def test_a_placement_that_guards_keep_alive_wants_no_destination_any_more() -> None:
    world = World()
    world.place("web")
    world.targets("a")
    world.slice("web", "web")
    obj = world.placements.get(key_of(building.placement("web")))
    assert obj is not None
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": [GUARD_FINALIZER]}
    world.placements.put(key_of(obj), {**obj, "metadata": {**obj["metadata"], **ending}})
    found = world.observed()
    assert found.destinations == ()
    assert set(found.slices) == {"web"}, "all that it has departs"
    assert found.result.generation == 4


def test_a_placement_that_goes_while_slices_are_read_is_gone() -> None:
    world = World()
    world.place("web", strategy={"numberOfLocations": 1})
    world.slice("web", "web")
    world.on_read = lambda: world.placements.remove(key_of(building.placement("web")))
    assert world.observe() == Gone(edge_placement_ref("wmw", "web"))


@pytest.mark.parametrize(
    ("mode", "consent", "destinations"),
    [
        ("Enforce", Consent(1, 0, 0, ("root:imw/eu",)), 0),
        ("Observe", Consent(0, 0, 1, ("root:imw/eu",)), 1),
    ],
)
def test_what_grants_say_is_found_with_who_says_it(
    mode: str, consent: Consent, destinations: int
) -> None:
    world = World()
    world.place("web")
    world.targets("a")
    world.table.put_workspace("imw", {}, workspace_ref("root", "imw"))
    grant = building.grant("eu", mode=mode, paths=["root:other"], selector={})
    world.table.put_grant(grant_of(grant))
    found = world.observed()
    assert found.result.consent == consent
    assert len(found.destinations) == destinations
    elsewhere = building.placement("elsewhere", {"matchLabels": {"no": "where"}})
    elsewhere["metadata"] |= {"uid": "u", "generation": 1}
    world.placements.put(key_of(elsewhere), elsewhere)
    world.table.put_placement(placement_of(elsewhere))
    assert world.observed("elsewhere").result.consent is None, "no grant is about its Locations"
