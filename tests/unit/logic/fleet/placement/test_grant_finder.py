"""Grants are found by what is known of a workspace or a Location, as a scan would find them."""

from __future__ import annotations

from skerry.logic.fleet.placement.grant_finder import GrantFinder
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import location_of
from skerry.logic.fleet.placement.workspace_tree import NOWHERE, Position
from tests.kit.chain import building
from tests.kit.chain.building import equal

GRANTS = [
    grant_of(building.grant("by-path", paths=["root:bank"], names=["l"])),
    grant_of(building.grant("children", children=[("root", equal(tier="gold"))], selector={})),
    grant_of(building.grant("labels", paths=["root:shop"], selector=equal(env="dev"))),
    grant_of(building.grant("elsewhere", "other", paths=["root:bank"], names=["l"])),
    grant_of(
        building.grant("broken", paths=["root:bank"], selector={"matchLabels": {"x" * 70: ""}})
    ),
]


def finder() -> GrantFinder:
    found = GrantFinder()
    for number, grant in enumerate(GRANTS):
        found.add(number, grant)
    return found


def test_a_workspace_is_named_by_its_path_or_selected_among_children() -> None:
    found = finder()
    assert set(found.naming(Position("root:bank", "root", {}))) == {0, 3}, "never one with errors"
    assert set(found.naming(Position("root:bank", "root", {"tier": "gold"}))) == {0, 1, 3}
    assert set(found.naming(Position("root:a:b", "root:a", {"tier": "gold"}))) == set()
    assert not found.naming(NOWHERE)


def test_a_location_is_found_by_name_and_labels_in_its_own_workspace() -> None:
    found = finder()
    assert set(found.about(location_of(building.location("l", {"env": "dev"}, {})))) == {0, 1, 2}
    assert set(found.about(location_of(building.location("m", {}, {})))) == {1}
    assert set(found.about(location_of(building.location("l", {}, {}, "other")))) == {3}


def test_a_grant_that_was_removed_is_not_found_any_more() -> None:
    found = finder()
    for number, grant in enumerate(GRANTS):
        found.remove(number, grant)
    assert not found.about(location_of(building.location("l", {"env": "dev"}, {})))
    assert not found.naming(Position("root:bank", "root", {"tier": "gold"}))
