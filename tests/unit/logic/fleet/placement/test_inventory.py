"""Which SyncTargets a Location has, and which Locations a change gives others."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import location_ref, sync_target_ref
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import location_of, sync_target_of
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
