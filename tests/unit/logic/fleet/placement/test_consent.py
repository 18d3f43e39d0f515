"""Consent kept up by bitmaps is what a scan of all grants says, at the cost of the change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from pyroaring import BitMap

from skerry.api.edge import edge_placement_ref, location_grant_ref, location_ref
from skerry.api.kcp.resources import workspace_ref
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import Grant, grant_of
from skerry.logic.fleet.placement.records import location_of, placement_of, sync_target_of
from skerry.logic.fleet.placement.whatif import Put, Remove, what_if
from skerry.logic.machinery.workspaces.names import home_cluster_name
from skerry.scheduler.placement import location_chooser
from tests.kit.chain import building
from tests.kit.chain.building import equal
from tests.kit.chain.placement_reference import Reference

INVENTORIES = ("imw1", "imw2")
SOURCES = ("shop", "bank", "below")
NAMES = ("n1", "n2", "n3")
PATHS = ("root:shop", "root:bank", "root:shop:below", "root:nowhere")
PARENTS = ("root", "root:shop", "root:bank")
KINDS = (("apps", "deployments", True), ("", "secrets", True), ("rbac", "roles", False))
RULES = (
    {"apiGroups": ["*"], "resources": ["*"]},
    {"apiGroups": ["apps"], "resources": ["deployments"]},
    {"apiGroups": ["*"], "resources": ["*"], "scope": "*"},
    {"apiGroups": ["", "rbac"], "resources": ["roles", "secrets"], "scope": "Cluster"},
)

_inventories = st.sampled_from(INVENTORIES)
_sources = st.sampled_from(SOURCES)
_names = st.sampled_from(NAMES)
_modes = st.sampled_from(("Observe", "Enforce"))
_maybe = st.one_of(st.none(), building.selectors)
_children = st.lists(st.tuples(st.sampled_from(PARENTS), building.selectors), max_size=2)


class ConsentAgainstReference(RuleBasedStateMachine):
    """Random edits of grants, Locations, workspaces and placements; after each, a scan."""

    def __init__(self) -> None:
        super().__init__()
        self.index = DestinationTable()
        self.reference = Reference()
        self.known: dict[tuple[ObjectRef, ObjectRef], tuple[bool, ...]] = {}

    def _after(self, touched: set[ObjectRef]) -> None:
        """Check that whoever is admitted or refused where it was not before is reported."""
        verdicts = {}
        for ref in self.reference.placements:
            for where in self.reference.locations:
                if self.index.selects(ref, self._location(where)):
                    verdicts[ref, where] = self._verdict(ref.cluster, where)
        for pair, verdict in verdicts.items():
            if self.known.get(pair, verdict) != verdict:
                assert pair[0] in touched, f"{pair} changed and nobody was notified"
        self.known = verdicts

    def _verdict(self, source: str, where: ObjectRef) -> tuple[bool, ...]:
        kinds = (self.reference.is_admitted(source, where, kind) for kind in KINDS)
        return (
            self.reference.is_admitted(source, where),
            self.reference.would_be_refused(source, where),
            *kinds,
        )

    def _location(self, where: ObjectRef) -> Any:
        return location_of(self.reference.locations[where])

    @rule(source=_sources, name=_names, chosen=st.lists(building.selectors, max_size=2))
    def place(self, source: str, name: str, chosen: list[Any]) -> None:
        obj = building.placement(name, *chosen, cluster=source)
        self.reference.placements[edge_placement_ref(source, name)] = obj
        self._after(self.index.put_placement(placement_of(obj)))

    @rule(source=_sources, name=_names)
    def unplace(self, source: str, name: str) -> None:
        self.reference.placements.pop(edge_placement_ref(source, name), None)
        self._after(self.index.remove_placement(edge_placement_ref(source, name)))

    @rule(inventory=_inventories, name=_names, labels=building.labels)
    def locate(self, inventory: str, name: str, labels: Any) -> None:
        obj = building.location(name, labels, {}, inventory)
        self.reference.locations[location_ref(inventory, name)] = obj
        self._after(self.index.put_location(location_of(obj)))

    @rule(inventory=_inventories, name=_names)
    def remove_location(self, inventory: str, name: str) -> None:
        self.reference.locations.pop(location_ref(inventory, name), None)
        self._after(self.index.remove_location(location_ref(inventory, name)))

    @rule(
        inventory=_inventories,
        name=_names,
        mode=_modes,
        paths=st.lists(st.sampled_from(PATHS), max_size=2),
        children=_children,
        names=st.lists(_names, max_size=2),
        selector=_maybe,
        rules=st.lists(st.sampled_from(RULES), min_size=1, max_size=2),
    )
    def grant(self, inventory: str, name: str, **spec: Any) -> None:
        obj = building.grant(name, inventory, **spec)
        self.reference.grants[location_grant_ref(inventory, name)] = obj
        self._after(self.index.put_grant(grant_of(obj)))

    @rule(inventory=_inventories, name=_names)
    def remove_grant(self, inventory: str, name: str) -> None:
        self.reference.grants.pop(location_grant_ref(inventory, name), None)
        self._after(self.index.remove_grant(location_grant_ref(inventory, name)))

    @rule(inventory=_inventories, enforced=st.booleans())
    def remember(self, inventory: str, enforced: bool) -> None:
        (self.reference.remembered.add if enforced else self.reference.remembered.discard)(
            inventory
        )
        self._after(self.index.put_memory(inventory, enforced=enforced))

    @rule(cluster=_sources, parent=st.sampled_from(("root", "shop")), labels=building.labels)
    def label_workspace(self, cluster: str, parent: str, labels: Any) -> None:
        ref = workspace_ref(parent, cluster)
        self.reference.tree[ref] = (cluster, labels)
        self.reference.workspaces[cluster] = labels
        self._after(self.index.put_workspace(cluster, labels, ref))

    @rule(cluster=_sources, parent=st.sampled_from(("root", "shop")))
    def remove_workspace(self, cluster: str, parent: str) -> None:
        ref = workspace_ref(parent, cluster)
        if self.reference.tree.pop(ref, None) is not None:
            self.reference.workspaces.pop(cluster, None)
            self._after(self.index.remove_workspace(cluster, ref))

    @invariant()
    def every_verdict_is_that_of_the_reference(self) -> None:
        everywhere = BitMap(self.index.inventory.location_labels.everything)
        for source in {ref.cluster for ref in self.reference.placements}:
            refused, observed = self.index.consent.judge(source, everywhere)
            for where in self.reference.locations:
                number = self.index.inventory.location_number(where)
                assert number is not None
                admitted, would, *kinds = self._verdict(source, where)
                assert (number not in refused, number in observed) == (admitted, would)
                if not self.index.consent.is_enforced(number):
                    continue
                for (group, resource, namespaced), permitted in zip(KINDS, kinds, strict=True):
                    kind = GroupResource(group, resource)
                    assert permitted == any(
                        grant.covers(kind, namespaced=namespaced)
                        for grant in self.index.consent.admitting(source, number)
                    )

    @invariant()
    def what_a_placement_has_already_it_keeps(self) -> None:
        for ref in self.reference.placements:
            present = {where for where in self.reference.locations if where.name != "n1"}
            chosen = self.index.chosen(ref, running=present).locations
            kept = {self.index.inventory.location_at(number).ref for number in chosen}
            selected = {
                where
                for where in self.reference.locations
                if self.index.selects(ref, self._location(where))
            }
            assert kept == {
                where
                for where in selected
                if where in present or self.reference.is_admitted(ref.cluster, where)
            }


TestConsentAgainstReference = ConsentAgainstReference.TestCase
TestConsentAgainstReference.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)


def fleet(locations: int, sources: int, *, inventory: str = "imw") -> DestinationTable:
    """Locations with a region each, and a placement everywhere in each of some workspaces."""
    index = DestinationTable()
    add_locations(index, locations, inventory)
    for number in range(sources):
        cluster = f"s{number}"
        index.put_workspace(cluster, {"tier": "gold"}, workspace_ref("root", cluster))
        index.put_placement(placement_of(building.placement("p", {}, cluster=cluster)))
    return index


def add_locations(index: DestinationTable, count: int, inventory: str) -> None:
    for number in range(count):
        labels = {"region": f"r{number % 10}"}
        found = building.location(f"l{number}", labels, {}, inventory)
        index.put_location(location_of(found))
        index.put_sync_target(sync_target_of(building.sync_target("t", {}, inventory)))


def rows(index: DestinationTable) -> int:
    found, index.consent.rows = index.consent.rows, 0
    return found


def put(index: DestinationTable, name: str, inventory: str = "imw", **spec: Any) -> set[ObjectRef]:
    return index.put_grant(grant_of(building.grant(name, inventory, **spec)))


def names(index: DestinationTable, cluster: str) -> list[str]:
    return [each.location for each in index.destinations(edge_placement_ref(cluster, "p"))]


def test_a_workspace_without_grants_is_open() -> None:
    index = fleet(3, 1)
    assert names(index, "s0") == ["l0", "l1", "l2"]
    assert not index.consent.governs


def test_one_enforcing_grant_closes_every_location_of_its_workspace_to_everybody_else() -> None:
    index = fleet(4, 2)
    add_locations(index, 1, "other")
    put(index, "g", paths=["root:s0"], selector=equal(region="r1"))
    assert names(index, "s0") == ["l1", "l0"]
    assert names(index, "s1") == ["l0"], "the other inventory is open"


def test_a_grant_that_observes_refuses_nothing_and_says_what_it_would() -> None:
    index = fleet(4, 2)
    put(index, "g", mode="Observe", paths=["root:s0"], selector=equal(region="r1"))
    assert names(index, "s1") == ["l0", "l1", "l2", "l3"]
    assert len(index.chosen(edge_placement_ref("s1", "p")).observed) == 4
    assert len(index.chosen(edge_placement_ref("s0", "p")).observed) == 3


def test_a_grant_that_observes_admits_nobody_into_an_enforced_workspace() -> None:
    index = fleet(2, 2)
    put(index, "strict", paths=["root:s0"], selector={})
    put(index, "draft", mode="Observe", paths=["root:s1"], selector={})
    assert names(index, "s1") == []
    put(index, "draft", paths=["root:s1"], selector={})
    assert names(index, "s1") == ["l0", "l1"]


def test_a_workspace_that_was_enforced_stays_closed_without_any_grant() -> None:
    index = fleet(2, 1)
    put(index, "g", paths=["root:s0"], selector={})
    index.put_memory("imw", enforced=True)
    assert index.remove_grant(location_grant_ref("imw", "g")) == {edge_placement_ref("s0", "p")}
    assert names(index, "s0") == []
    assert index.put_memory("imw", enforced=False) == {edge_placement_ref("s0", "p")}
    assert names(index, "s0") == ["l0", "l1"]


def test_what_runs_is_held_and_nothing_joins_it() -> None:
    index, ref = fleet(3, 1), edge_placement_ref("s0", "p")
    running = {each for each in index.destinations(ref) if each.location != "l0"}
    put(index, "g", paths=["root:nobody"], selector={})
    assert index.destinations(ref) == []
    assert set(index.destinations(ref, running=running)) == running
    index.put_sync_target(sync_target_of(building.sync_target("new", {}, "imw")))
    assert set(index.destinations(ref, running=running)) == running
    chosen = index.chosen(ref, running={location_ref("imw", "l1"), location_ref("imw", "gone")})
    assert [index.inventory.location_at(n).ref.name for n in chosen.held] == ["l1"]
    assert len(chosen.refused) == 3


def test_a_strategy_counts_what_is_held_and_chooses_among_the_rest() -> None:
    index, ref = DestinationTable(location_chooser), edge_placement_ref("s0", "p")
    add_locations(index, 4, "imw")
    index.put_workspace("s0", {}, workspace_ref("root", "s0"))
    two = building.placement("p", {}, cluster="s0", strategy={"numberOfLocations": 2})
    index.put_placement(placement_of(two))
    before = {location_ref("imw", "l0"), location_ref("imw", "l1")}
    put(index, "g", paths=["root:s0"], names=["l1", "l2", "l3"])

    def chosen(running: Any) -> set[str]:
        found = index.chosen(ref, before, running).locations
        return {index.inventory.location_at(number).ref.name for number in found}

    assert chosen(before) == {"l0", "l1"}
    assert "l0" not in chosen({location_ref("imw", "l1")})
    assert len(chosen({location_ref("imw", "l1")})) == 2


@pytest.mark.parametrize("parent", ["root:s0", "root:elsewhere"])
def test_labels_count_below_the_named_parent_only(parent: str) -> None:
    """Whoever may create children of a workspace could give them any label."""
    index = fleet(1, 2)
    put(index, "g", children=[(parent, equal(tier="gold"))], selector={})
    assert names(index, "s0") == names(index, "s1") == []
    put(index, "g", children=[("root", equal(tier="gold"))], selector={})
    assert names(index, "s0") == ["l0"]
    assert index.put_workspace("s0", {"tier": "tin"}, workspace_ref("root", "s0")) == {
        edge_placement_ref("s0", "p")
    }
    assert names(index, "s0") == []


def test_a_cluster_that_two_workspaces_claim_is_granted_nothing() -> None:
    index = fleet(1, 1)
    put(index, "g", paths=["root:s0"], selector={})
    assert names(index, "s0") == ["l0"]
    forged = workspace_ref("mallory", "s0")
    assert index.put_workspace("s0", {}, forged) == {edge_placement_ref("s0", "p")}
    assert names(index, "s0") == []
    index.remove_workspace("s0", forged)
    assert names(index, "s0") == ["l0"]


def test_the_home_of_a_user_is_granted_by_its_path() -> None:
    index = fleet(1, 0)
    home = home_cluster_name("alice")
    for cluster in (home, "sub"):
        index.put_placement(placement_of(building.placement("p", {}, cluster=cluster)))
    index.put_workspace("sub", {}, workspace_ref(home, "lab"))
    put(index, "g", paths=["user:alice", "user:alice:lab"], selector={})
    assert names(index, home) == names(index, "sub") == ["l0"]
    assert index.consent.tree.path("sub") == "user:alice:lab"


def test_a_malformed_grant_admits_nobody_and_still_enforces() -> None:
    index = fleet(1, 1)
    broken = building.grant("g", paths=["root:s0"], selector=building.expression("a", "In"))
    assert grant_of(broken).errors
    index.put_grant(grant_of(broken))
    assert names(index, "s0") == []
    assert grant_of({**broken, "spec": {"mode": "Enforce", "rules": "all"}}).enforces


def test_a_grant_costs_its_own_locations_and_sources_whatever_else_there_is() -> None:
    spent = []
    for size in (1, 2):
        index = fleet(100 * size, 20 * size)
        for number in range(40 * size):
            source = number % (20 * size)
            put(index, f"g{number}", paths=[f"root:s{source}"], selector=equal(region="r2"))
        rows(index)
        put(index, "one", paths=["root:s3"], names=["l1", "l2"])
        by_grant = rows(index)
        index.put_location(location_of(building.location("l4", {"region": "none"}, {})))
        by_location = rows(index)
        index.put_workspace("s4", {"tier": "tin"}, workspace_ref("root", "s4"))
        spent.append((by_grant, by_location, rows(index)))
    assert spent[0] == spent[1]
    assert sum(spent[0]) < 20


def test_without_grants_nothing_is_looked_at() -> None:
    index = fleet(50, 10)
    assert index.consent.rows == 0


def destination_names(found: Any) -> list[str]:
    return [each.location for each in found]


def test_what_an_enforcing_grant_would_do_is_to_hold_what_runs() -> None:
    index, ref = fleet(3, 2), edge_placement_ref("s1", "p")
    running = {
        edge_placement_ref(f"s{n}", "p"): frozenset(
            index.destinations(edge_placement_ref(f"s{n}", "p"))
        )
        for n in (0, 1)
    }
    grant = grant_of(building.grant("g", paths=["root:s0"], selector={}))
    [found] = what_if(index, [Put(grant)], lambda ref: running[ref])
    assert found.placement == ref
    assert (found.added, found.removed) == ((), ())
    assert destination_names(found.held) == ["l0", "l1", "l2"]
    assert not index.consent.is_used, "and leaves no trace"
    [lost] = what_if(index, [Put(grant)])
    assert destination_names(lost.removed) == ["l0", "l1", "l2"], "what does not run yet is refused"


def test_what_a_grant_would_admit_or_free_is_reported() -> None:
    index = fleet(2, 2)
    put(index, "g", paths=["root:s0"], selector={})
    wider = grant_of(building.grant("g", paths=["root:s0", "root:s1"], selector={}))
    [found] = what_if(index, [Put(wider)])
    assert destination_names(found.added) == ["l0", "l1"]
    one = frozenset(index.destinations_at([0]))
    [found] = what_if(index, [Put(wider)], lambda _: one)
    assert destination_names(found.added) == ["l1"]
    assert destination_names(found.freed) == ["l0"]


def test_what_deleting_the_last_grant_would_do_depends_on_what_is_remembered() -> None:
    index = fleet(2, 2)
    put(index, "g", paths=["root:s0"], selector={})
    gone = Remove(Grant, location_grant_ref("imw", "g"))
    opened = {each.placement.cluster: each for each in what_if(index, [gone])}
    assert destination_names(opened["s1"].added) == ["l0", "l1"]
    index.put_memory("imw", enforced=True)
    kept = {each.placement.cluster: each for each in what_if(index, [gone])}
    assert kept.keys() == {"s0"}
    assert destination_names(kept["s0"].removed) == ["l0", "l1"]


def test_what_an_edited_placement_would_reach_is_bounded_by_grants() -> None:
    index = fleet(4, 1)
    put(index, "g", paths=["root:s0"], selector=equal(region="r1"))
    narrowed = placement_of(building.placement("p", equal(region="r0"), cluster="s0"))
    [found] = what_if(index, [Put(narrowed)])
    assert (destination_names(found.added), destination_names(found.removed)) == ([], ["l1"])


def governed() -> DestinationTable:
    """Two inventories of which one is enforced and one observed, a third that is open."""
    index = fleet(3, 2, inventory="imw1")
    add_locations(index, 2, "imw2")
    add_locations(index, 1, "imw3")
    for inventory in ("imw1", "imw2", "imw3"):
        index.put_workspace(inventory, {}, workspace_ref("root", inventory))
    put(index, "b", "imw1", paths=["root:s0"], selector=equal(region="r1"))
    put(index, "a", "imw1", paths=["root:s1"], names=["l2"])
    put(index, "draft", "imw2", mode="Observe", paths=["root:s0"], selector={})
    return index


def numbers(index: DestinationTable, *where: tuple[str, str]) -> BitMap:
    found = (index.inventory.location_number(location_ref(*each)) for each in where)
    return BitMap(number for number in found if number is not None)


def test_a_workspace_is_enforced_observed_or_open() -> None:
    consent = governed().consent
    assert [consent.mode(f"imw{n}") for n in (1, 2, 3)] == ["Enforce", "Observe", None]
    assert consent.inventories() == {"imw1", "imw2"}
    assert consent.governs
    assert consent.is_used


def test_grants_are_listed_by_name_and_known_by_what_they_are_about() -> None:
    index = governed()
    consent = index.consent
    assert [each.ref.name for each in consent.grants_in("imw1")] == ["a", "b"]
    assert consent.grants_in("imw3") == []
    a, b = (location_grant_ref("imw1", name) for name in ("a", "b"))
    assert consent.selected(a) == numbers(index, ("imw1", "l2"))
    assert consent.selected(b) == numbers(index, ("imw1", "l1"))
    assert consent.sources(a) == {"s1"}
    assert consent.sources(b) == {"s0"}
    nobody = location_grant_ref("imw1", "nobody")
    assert consent.grant(nobody) is None
    assert not consent.selected(nobody)
    assert not consent.sources(nobody)


def test_a_refusal_names_the_grants_about_a_location_or_the_workspace_that_has_none() -> None:
    index = governed()
    consent = index.consent
    assert consent.refusing_names(numbers(index, ("imw1", "l2"))) == ("root:imw1/a",)
    both = numbers(index, ("imw1", "l1"), ("imw1", "l2"))
    assert consent.refusing_names(both) == ("root:imw1/a", "root:imw1/b")
    assert consent.refusing_names(both, limit=1) == ("root:imw1/a",)
    bare = numbers(index, ("imw1", "l0"))
    assert consent.refusing_names(bare) == ("any grant of root:imw1",)


def test_a_workspace_whose_path_is_not_known_is_named_all_the_same() -> None:
    index = fleet(1, 1)
    put(index, "g", paths=["root:other"], selector={})
    (named,) = index.consent.refusing_names(numbers(index, ("imw", "l0")))
    assert named == f"{index.consent.path('imw')}/g"
    assert index.consent.path("imw")


@pytest.mark.parametrize("few", [True, False], ids=["few Locations", "few workspaces"])
def test_locations_are_listed_by_their_workspace(few: bool) -> None:
    index = governed()
    inventories = ("imw1", "imw2") if few else ("imw1",)
    where = [(each, "l1") for each in inventories]
    if not few:
        where += [("imw1", "l0"), ("imw1", "l2")]
    asked = numbers(index, *where)
    found = index.consent.by_workspace(asked)
    assert list(found) == list(inventories)
    assert BitMap.union(*found.values()) == asked


def test_changed_inventories_are_taken_once() -> None:
    index = governed()
    assert index.consent.take_changed() == {"imw1", "imw2"}
    assert index.consent.take_changed() == set()
    put(index, "draft", "imw2", mode="Observe", paths=["root:s0"], selector={})
    assert index.consent.take_changed() == set(), "it is the same grant"
    index.remove_grant(location_grant_ref("imw1", "a"))
    index.remove_grant(location_grant_ref("imw1", "nobody"))
    assert index.consent.take_changed() == {"imw1"}


def test_a_placement_is_asked_about_consent_only_where_grants_are() -> None:
    index = governed()
    ref = edge_placement_ref("s0", "p")
    assert index.is_governed(ref)
    assert index.refuses(ref)
    assert index.remembers(ref)
    for name in ("a", "b"):
        index.remove_grant(location_grant_ref("imw1", name))
    assert index.is_governed(ref), "some Locations are observed"
    assert not index.refuses(ref)
    index.remove_grant(location_grant_ref("imw2", "draft"))
    assert not index.is_governed(ref)
    assert not index.remembers(ref)
    assert not index.refuses(ref)
