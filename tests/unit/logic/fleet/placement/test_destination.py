"""The table answers what a scan of everything answers, and names exactly what a change touches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skerry.api.edge import edge_placement_ref, location_ref, sync_target_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import (
    Destination,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.reference import destinations
from skerry.logic.fleet.placement.whatif import Change, LabelWorkspace, Put, Remove, what_if
from skerry.scheduler.placement import location_chooser
from tests.kit.chain import building
from tests.kit.chain.building import equal, expression
from tests.kit.chain.placement_reference import Reference

CLUSTERS = ("c1", "c2")
NAMES = ("n1", "n2", "n3")

_clusters = st.sampled_from(CLUSTERS)
_names = st.sampled_from(NAMES)
_maybe_selector = st.one_of(st.none(), building.selectors)


class TableAgainstReference(RuleBasedStateMachine):
    """Random edits; after each, the placements that changed are among those named."""

    def __init__(self) -> None:
        super().__init__()
        self.index = DestinationTable()
        self.reference = Reference()
        self.known: dict[ObjectRef, list[Destination]] = {}
        self.uids = 0

    def _after(self, touched: set[ObjectRef]) -> None:
        for ref in {*self.reference.placements, *self.known}:
            wanted = self.reference.destinations(ref)
            if wanted != self.known.get(ref, []):
                assert ref in touched, f"{ref} changed and was not among those touched"
            if wanted:
                self.known[ref] = wanted
            else:
                self.known.pop(ref, None)

    @rule(
        name=_names,
        chosen=st.lists(building.selectors, max_size=3),
        workspaces=_maybe_selector,
    )
    def place(self, name: str, chosen: list[Any], workspaces: Any) -> None:
        more = {} if workspaces is None else {"locationWorkspaceSelector": workspaces}
        obj = building.placement(name, *chosen, **more)
        self.reference.placements[edge_placement_ref("wmw", name)] = obj
        self._after(self.index.put_placement(placement_of(obj)))

    @rule(name=_names)
    def unplace(self, name: str) -> None:
        self.reference.placements.pop(edge_placement_ref("wmw", name), None)
        self._after(self.index.remove_placement(edge_placement_ref("wmw", name)))

    @rule(name=_names, cluster=_clusters, labels=building.labels, instances=_maybe_selector)
    def locate(self, name: str, cluster: str, labels: Any, instances: Any) -> None:
        obj = building.location(name, labels, instances, cluster)
        self.reference.locations[location_ref(cluster, name)] = obj
        self._after(self.index.put_location(location_of(obj)))

    @rule(name=_names, cluster=_clusters)
    def remove_location(self, name: str, cluster: str) -> None:
        self.reference.locations.pop(location_ref(cluster, name), None)
        self._after(self.index.remove_location(location_ref(cluster, name)))

    @rule(name=_names, cluster=_clusters, labels=building.labels, anew=st.booleans())
    def target(self, name: str, cluster: str, labels: Any, anew: bool) -> None:
        self.uids += anew
        obj = building.sync_target(name, labels, cluster, uid=f"{name}-{self.uids}")
        self.reference.sync_targets[sync_target_ref(cluster, name)] = obj
        self._after(self.index.put_sync_target(sync_target_of(obj)))

    @rule(name=_names, cluster=_clusters)
    def remove_target(self, name: str, cluster: str) -> None:
        self.reference.sync_targets.pop(sync_target_ref(cluster, name), None)
        self._after(self.index.remove_sync_target(sync_target_ref(cluster, name)))

    @rule(cluster=_clusters, labels=building.labels)
    def label_workspace(self, cluster: str, labels: Any) -> None:
        self.reference.workspaces[cluster] = labels
        self._after(self.index.put_workspace(cluster, labels))

    @rule(name=_names, cluster=_clusters, labels=building.labels, instances=_maybe_selector)
    def wonder_about_a_location(self, name: str, cluster: str, labels: Any, instances: Any) -> None:
        obj = building.location(name, labels, instances, cluster)
        differences = what_if(self.index, [Put(location_of(obj))])
        ref = location_ref(cluster, name)
        old = self.reference.locations.get(ref)
        self.reference.locations[ref] = obj
        self._same(differences)
        self._put_back(self.reference.locations, ref, old)

    @rule(name=_names, cluster=_clusters, labels=building.labels)
    def wonder_about_several_things(self, name: str, cluster: str, labels: Any) -> None:
        ref, target = sync_target_ref(cluster, name), building.sync_target(name, labels, cluster)
        changes: list[Change] = [
            Put(sync_target_of(target)),
            LabelWorkspace(cluster, labels),
            Remove(type(placement_of(building.placement("n1"))), edge_placement_ref("wmw", "n1")),
        ]
        differences = what_if(self.index, changes)
        targets, spaces, placements = (
            dict(self.reference.sync_targets),
            dict(self.reference.workspaces),
            dict(self.reference.placements),
        )
        self.reference.sync_targets[ref] = target
        self.reference.workspaces[cluster] = labels
        self.reference.placements.pop(edge_placement_ref("wmw", "n1"), None)
        self._same(differences)
        self.reference.sync_targets = targets
        self.reference.workspaces = spaces
        self.reference.placements = placements

    def _same(self, differences: Any) -> None:
        changed_sets = {
            each.placement: (set(each.added), set(each.removed)) for each in differences
        }
        wanted = {}
        for ref in {*self.reference.placements, *self.known}:
            after, before = set(self.reference.destinations(ref)), set(self.known.get(ref, []))
            if after != before:
                wanted[ref] = (after - before, before - after)
        assert changed_sets == wanted

    def _put_back(self, objects: dict[ObjectRef, Any], ref: ObjectRef, old: Any) -> None:
        if old is None:
            del objects[ref]
        else:
            objects[ref] = old

    @invariant()
    def destinations_are_those_of_the_reference(self) -> None:
        for ref in self.reference.placements:
            assert self.index.destinations(ref) == self.reference.destinations(ref)

    @invariant()
    def the_twin_from_the_inputs_says_the_same(self) -> None:
        found = destinations(
            map(placement_of, self.reference.placements.values()),
            map(location_of, self.reference.locations.values()),
            map(sync_target_of, self.reference.sync_targets.values()),
            self.reference.workspaces,
        )
        assert found == {ref: self.index.destinations(ref) for ref in self.reference.placements}


TestTableAgainstReference = TableAgainstReference.TestCase
TestTableAgainstReference.settings = settings(
    max_examples=120, stateful_step_count=30, deadline=None
)


def worked_case() -> DestinationTable:
    """The case of the documentation: two SyncTargets, three Locations."""
    index = DestinationTable(location_chooser)
    for name in ("prod", "dev"):
        index.put_location(location_of(building.location(name, {"env": name}, equal(env=name))))
        index.put_sync_target(sync_target_of(building.sync_target(name, {"env": name})))
    index.put_location(location_of(building.location("default", {}, {})))
    return index


def names(index: DestinationTable, ref: ObjectRef) -> list[tuple[str, str]]:
    return [(each.location, each.sync_target) for each in index.destinations(ref)]


def test_an_empty_selector_chooses_every_location_of_every_workspace() -> None:
    index = worked_case()
    index.put_placement(placement_of(building.placement("all2all", {})))
    assert names(index, edge_placement_ref("wmw", "all2all")) == [
        ("default", "dev"),
        ("default", "prod"),
        ("dev", "dev"),
        ("prod", "prod"),
    ]


def test_no_selectors_choose_nothing() -> None:
    index = worked_case()
    index.put_placement(placement_of(building.placement("none")))
    assert index.destinations(edge_placement_ref("wmw", "none")) == []


def test_a_location_without_instance_selector_has_no_instances() -> None:
    index = worked_case()
    index.put_placement(placement_of(building.placement("p", {})))
    index.put_location(location_of(building.location("default", {})))
    assert ("default", "dev") not in names(index, edge_placement_ref("wmw", "p"))


def test_one_invalid_selector_leaves_no_partial_answer() -> None:
    index = worked_case()
    placement = placement_of(building.placement("p", {}, expression("env", "In")))
    index.put_placement(placement)
    assert placement.errors
    assert not index.matching(edge_placement_ref("wmw", "p"))


def test_a_relabel_reports_only_the_placements_that_gain_or_lose_the_location() -> None:
    index = worked_case()
    for name, selector in (("e", equal(env="dev")), ("t", equal(tier="a")), ("all", {})):
        index.put_placement(placement_of(building.placement(name, selector)))
    moved = building.location("dev", {"env": "dev", "tier": "a"}, equal(env="dev"))
    assert index.put_location(location_of(moved)) == {edge_placement_ref("wmw", "t")}
    assert index.put_location(location_of(moved)) == set()


def test_availability_is_news_to_placements_with_a_strategy_only() -> None:
    index = worked_case()
    index.put_placement(placement_of(building.placement("plain", {})))
    index.put_placement(placement_of(building.placement("ready", {}, strategy={"onlyReady": True})))
    alive = sync_target_of(building.sync_target("dev", {"env": "dev"}, ready=True))
    assert index.put_sync_target(alive) == {edge_placement_ref("wmw", "ready")}
    assert names(index, edge_placement_ref("wmw", "ready")) == [
        ("default", "dev"),
        ("default", "prod"),
        ("dev", "dev"),
    ]


def test_selecting_is_reported_for_one_pair() -> None:
    index = worked_case()
    index.put_placement(placement_of(building.placement("e", equal(env="dev"))))
    location: Callable[[str], Any] = lambda name: index.inventory.location(  # noqa: E731
        location_ref("imw", name)
    )
    assert index.selects(edge_placement_ref("wmw", "e"), location("dev"))
    assert not index.selects(edge_placement_ref("wmw", "e"), location("prod"))
    assert not index.selects(edge_placement_ref("wmw", "unknown"), location("prod"))
