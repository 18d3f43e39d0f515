"""Who may place what at which Locations, as grants say it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import location_grant_ref
from skerry.api.kinds import GroupResource
from skerry.logic.fleet.placement.grants import Grant, Rule, grant_of, lean_grant
from skerry.logic.fleet.placement.records import location_of
from tests.kit.chain import building
from tests.kit.chain.building import equal

DEPLOYMENTS = GroupResource("apps", "deployments")


@pytest.mark.parametrize(
    ("rule", "namespaced", "covered"),
    [
        (Rule(None, None), True, True),
        (Rule(None, None), False, False),
        (Rule(None, None, cluster_scoped=True), False, True),
        (Rule(None, None, namespaced=False, cluster_scoped=True), True, False),
        (Rule(frozenset({"apps"}), frozenset({"deployments"})), True, True),
        (Rule(frozenset({""}), None), True, False),
        (Rule(None, frozenset({"pods"})), True, False),
    ],
)
def test_a_rule_covers_group_resource_and_scope(
    rule: Rule, namespaced: bool, covered: bool
) -> None:
    assert rule.covers(DEPLOYMENTS, namespaced=namespaced) is covered
    grant = Grant(location_grant_ref("imw", "g"), rules=(Rule(frozenset(), None), rule))
    assert grant.covers(DEPLOYMENTS, namespaced=namespaced) is covered, "any rule is enough"


@pytest.mark.parametrize(
    ("spec", "cluster", "selected"),
    [
        ({"names": ["l"]}, "imw", True),
        ({"names": ["other"]}, "imw", False),
        ({"selector": equal(env="dev")}, "imw", True),
        ({"selector": equal(env="prod")}, "imw", False),
        ({"selector": {}}, "imw", True),
        ({}, "imw", False),
        ({"names": ["l"], "selector": {}}, "elsewhere", False),
    ],
)
def test_a_grant_is_about_locations_of_its_own_workspace(
    spec: dict[str, Any], cluster: str, selected: bool
) -> None:
    location = location_of(building.location("l", {"env": "dev"}, {}, cluster))
    assert grant_of(building.grant("g", **spec)).selects(location) is selected


def test_a_grant_with_errors_selects_nothing_and_still_enforces() -> None:
    found = grant_of(building.grant("g", selector={"matchLabels": {"x" * 70: "y"}}, names=["l"]))
    assert "spec.locations.selector" in found.errors[0]
    assert found.enforces
    assert not found.selects(location_of(building.location("l", {}, {})))


@pytest.mark.parametrize("spec", ["text", {"mode": "Enforce", "rules": [{}]}, {"workspaces": 3}])
def test_what_a_server_without_our_schema_lets_through_is_an_error(spec: Any) -> None:
    obj = {**building.grant("g"), "spec": spec}
    found = grant_of(obj)
    assert found.errors[0].startswith("spec: not a LocationGrant")
    assert found.enforces is (isinstance(spec, dict) and spec.get("mode") == "Enforce")


def test_children_are_those_of_a_named_parent() -> None:
    found = grant_of(building.grant("g", children=[("root:org", {}), ("root:org", {})]))
    assert [each.path for each in found.children] == ["root:org"], "each once"


def test_what_is_cached_of_a_grant_reads_as_the_whole() -> None:
    obj = building.grant("g", paths=["root:a"], names=["l"])
    obj["metadata"]["managedFields"] = [{}]
    kept = lean_grant(obj)
    assert grant_of(kept) == grant_of(obj)
    assert "managedFields" not in kept["metadata"]
