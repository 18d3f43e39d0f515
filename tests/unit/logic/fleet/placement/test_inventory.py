"""Which SyncTargets a Location has, and which Locations a change gives others."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.api.edge import location_ref, sync_target_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import location_of, placement_of, sync_target_of
from tests.kit.chain import building
from tests.kit.chain.building import equal


def inventory(**locations: Any) -> Inventory:
    found = Inventory()
    for name, instances in locations.items():
        found.put_location(location_of(building.location(name, {}, instances)))
    return found


def names(found: Inventory, numbers: Any) -> list[str]:
    return sorted(found.location_at(number).ref.name for number in numbers)


def instances(found: Inventory, name: str) -> list[str]:
    number = found.location_number(location_ref("imw", name))
    assert number is not None
    return [each.sync_target for each in found.destinations(number)]


def put(found: Inventory, name: str, **more: Any) -> list[str]:
    labels = more.pop("labels", {})
    return names(
        found, found.put_sync_target(sync_target_of(building.sync_target(name, labels, **more)))
    )


def test_a_sync_target_joins_the_locations_it_is_an_instance_of() -> None:
    found = inventory(all={}, gold=equal(tier="gold"), none=None)
    assert put(found, "a") == ["all"]
    assert put(found, "b", labels={"tier": "gold"}) == ["all", "gold"]
    assert instances(found, "all") == ["a", "b"]
    assert instances(found, "gold") == ["b"]
    assert instances(found, "none") == []


def test_only_locations_that_change_are_named() -> None:
    found = inventory(all={}, gold=equal(tier="gold"))
    put(found, "a", uid="1")
    assert put(found, "a", uid="1") == []
    assert put(found, "a", uid="1", labels={"tier": "gold"}) == ["gold"]
    assert put(found, "a", uid="2", labels={"tier": "gold"}) == ["all", "gold"], "another object"
    assert put(found, "a", uid="2", labels={"tier": "gold"}, ready=True) == []
    assert names(found, found.remove_sync_target(sync_target_ref("imw", "a"))) == ["all", "gold"]
    assert instances(found, "all") == []
    assert not found.remove_sync_target(sync_target_ref("imw", "a"))


def test_a_sync_target_of_another_workspace_is_no_instance() -> None:
    found = inventory(all={})
    assert put(found, "a", cluster="elsewhere") == []
    assert instances(found, "all") == []
    assert found.sync_targets_in("elsewhere")[0].ref == sync_target_ref("elsewhere", "a")
    assert found.sync_targets_in("nowhere") == []


def test_another_instance_selector_gives_a_location_other_instances() -> None:
    found = inventory(all={})
    put(found, "a")
    assert instances(found, "all") == ["a"]
    found.put_location(location_of(building.location("all", {}, equal(tier="gold"))))
    assert instances(found, "all") == []


def test_a_candidate_is_available_if_any_of_its_instances_is() -> None:
    found = inventory(all={})
    number = found.location_number(location_ref("imw", "all"))
    assert number is not None
    put(found, "a", ready=True)
    put(found, "b", ready=True, unschedulable=True)
    assert found.available(number) == 1
    candidate = found.candidate(number)
    assert candidate is not None
    assert candidate.available
    put(found, "a")
    assert found.available(number) == 0
    found.remove_location(location_ref("imw", "all"))
    assert found.candidate(number) is None


def test_a_location_with_a_broken_selector_is_known_as_such_until_it_is_mended() -> None:
    found = inventory(l={"matchLabels": {"x" * 70: "y"}})
    assert len(found.broken) == 1
    found.put_location(location_of(building.location("l", {}, {})))
    assert not found.broken


def test_everything_there_is_can_be_listed_and_is_gone_when_it_is_removed() -> None:
    found = inventory(a={}, b=None)
    put(found, "t")
    assert sorted(each.ref.name for each in found.locations()) == ["a", "b"]
    assert [each.ref.name for each in found.sync_targets()] == ["t"]
    assert found.clusters() == ["imw"]
    assert found.sync_target(sync_target_ref("imw", "t")) is not None
    for name in "ab":
        found.remove_location(location_ref("imw", name))
    found.remove_sync_target(sync_target_ref("imw", "t"))
    assert (found.clusters(), [*found.locations()], [*found.sync_targets()]) == ([], [], [])
    assert found.location(location_ref("imw", "a")) is None
    assert found.sync_target(sync_target_ref("imw", "t")) is None
    assert not found.locations_in("imw")
    assert not found.broken


def test_a_location_keeps_its_number_for_as_long_as_it_is_there() -> None:
    found = inventory(a={})
    number = found.location_number(location_ref("imw", "a"))
    relabelled = location_of(building.location("a", {"x": "y"}, {}))
    assert found.put_location(relabelled) == number
    assert found.location_labels.select(placement_terms(equal(x="y"))) == BitMap([number or 0])
    assert found.remove_location(location_ref("imw", "a")) == number
    assert found.location_number(location_ref("imw", "a")) is None


def placement_terms(selector: Any) -> Any:
    [terms] = placement_of(building.placement("p", selector)).selectors
    return terms


def test_a_label_of_a_location_changes_none_of_its_instances() -> None:
    found = inventory(all={})
    put(found, "a")
    before = instances(found, "all")
    found.put_location(location_of(building.location("all", {"new": "label"}, {})))
    assert instances(found, "all") == before == ["a"]


def test_sync_targets_of_a_workspace_come_by_name() -> None:
    found = inventory()
    for name in "cab":
        put(found, name)
    assert [each.ref.name for each in found.sync_targets_in("imw")] == ["a", "b", "c"]


def test_an_edge_made_anew_under_its_name_is_another_destination() -> None:
    found = inventory(all={})
    put(found, "a", uid="1")
    assert instances(found, "all") == ["a"]
    number = found.location_number(location_ref("imw", "all"))
    assert number is not None
    put(found, "a", uid="2")
    assert [each.uid for each in found.destinations(number)] == ["2"]


moves = st.lists(
    st.tuples(
        st.sampled_from(["location", "unlocate", "target", "untarget"]),
        st.sampled_from("abc"),
        building.labels,
        st.sampled_from(["c1", "c2"]),
    ),
    max_size=20,
)


@given(moves)
def test_instances_are_those_that_a_scan_finds_and_changes_are_reported(
    history: list[tuple[str, str, dict[str, str], str]],
) -> None:
    found = Inventory()
    selectors: dict[ObjectRef, dict[str, str]] = {}
    targets: dict[ObjectRef, dict[str, str]] = {}
    known: dict[ObjectRef, list[str]] = {}
    for kind, name, labels, cluster in history:
        where, what = location_ref(cluster, name), sync_target_ref(cluster, name)
        reported = set[ObjectRef]()
        if kind == "location":
            found.put_location(location_of(building.location(name, {}, equal(**labels), cluster)))
            selectors[where] = labels
            reported.add(where)
        elif kind == "unlocate" and where in selectors:
            found.remove_location(where)
            del selectors[where]
        elif kind == "target":
            made = sync_target_of(building.sync_target(name, labels, cluster))
            reported = {found.location_at(number).ref for number in found.put_sync_target(made)}
            targets[what] = labels
        elif kind == "untarget":
            reported = {found.location_at(number).ref for number in found.remove_sync_target(what)}
            targets.pop(what, None)
        now = {
            ref: sorted(
                each.name
                for each, its in targets.items()
                if each.cluster == ref.cluster and wanted.items() <= its.items()
            )
            for ref, wanted in selectors.items()
        }
        for ref, names_ in now.items():
            number = found.location_number(ref)
            assert number is not None
            assert [each.sync_target for each in found.destinations(number)] == names_
        changed = {ref for ref in now.keys() & known.keys() if now[ref] != known[ref]}
        assert changed <= reported
        if kind in ("target", "untarget"):
            assert reported <= changed, "and no other is reported"
        known = now
