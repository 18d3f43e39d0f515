"""The rule of destinations, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import edge_placement_ref
from skerry.logic.fleet.placement.records import location_of, placement_of, sync_target_of
from skerry.logic.fleet.placement.reference import destinations
from tests.kit.chain import building
from tests.kit.chain.building import equal

INVALID = {"matchLabels": {"x" * 70: "y"}}


@pytest.mark.parametrize(
    ("placement", "location", "found"),
    [
        ({"selectors": [{}]}, {}, True),
        ({"selectors": [equal(env="dev")]}, {"labels": {"env": "dev"}}, True),
        ({"selectors": [equal(env="dev")]}, {"labels": {"env": "prod"}}, False),
        ({"selectors": [equal(env="a"), {}]}, {}, True),
        ({"selectors": []}, {}, False),
        ({"selectors": [{}, INVALID]}, {}, False),
        ({"selectors": [{}], "locationWorkspaceSelector": equal(org="p")}, {}, True),
        ({"selectors": [{}], "locationWorkspaceSelector": equal(org="q")}, {}, False),
        ({"selectors": [{}]}, {"instances": equal(tier="gold")}, False),
        ({"selectors": [{}]}, {"instances": None}, False),
        ({"selectors": [{}]}, {"cluster": "elsewhere"}, False),
    ],
)
def test_a_sync_target_is_a_destination_if_every_clause_holds(
    placement: dict[str, Any], location: dict[str, Any], found: bool
) -> None:
    placement = dict(placement)
    selectors = placement.pop("selectors")
    wanted = placement_of(building.placement("p", *selectors, **placement))
    where = building.location(
        "l",
        location.get("labels", {}),
        location.get("instances", {}),
        location.get("cluster", "imw"),
    )
    target = sync_target_of(building.sync_target("t", {}, "imw"))
    rows = destinations([wanted], [location_of(where)], [target], {"imw": {"org": "p"}})
    names = [each.sync_target for each in rows[edge_placement_ref("wmw", "p")]]
    assert names == (["t"] if found else [])


def test_who_is_not_admitted_has_no_destination() -> None:
    wanted = placement_of(building.placement("p", {}))
    where = location_of(building.location("l", {}, {}, "imw"))
    target = sync_target_of(building.sync_target("t", {}, "imw"))
    rows = destinations([wanted], [where], [target], {}, lambda placement, location: False)
    assert rows == {wanted.ref: []}
