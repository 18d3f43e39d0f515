"""A malformed LocationGrant is refused, and the refusal names the field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from skerry.api.kcp import edge
from skerry.api.objects import Object
from skerry.logic.fleet.type_rules import with_type_rules
from skerry.logic.machinery import crd
from skerry.logic.machinery.schema.defaulting import apply_defaults
from tests.kit.chain import building
from tests.kit.chain.building import equal, expression

_KIND = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "LocationGrant")
[_SERVED] = map(with_type_rules, crd.resources_of(_KIND))


def grant(**spec: Any) -> Object:
    made = building.grant("g", paths=["root:shop"], selector={})
    return {**made, "spec": {**made["spec"], **spec}}


def errors(obj: Object) -> str:
    return "; ".join(str(error) for error in _SERVED.validate_create(copy.deepcopy(obj)))


def children(**member: Any) -> Object:
    return {"workspaces": {"childrenOf": [member]}}


def rules(groups: list[str], resources: list[str], **more: str) -> Object:
    return {"rules": [{"apiGroups": groups, "resources": resources, **more}]}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"mode": "Enforced"}, "spec.mode"),
        ({"mode": ""}, "spec.mode"),
        ({"workspaces": {"paths": ["shop"]}}, "spec.workspaces.paths[0]"),
        ({"workspaces": {"paths": ["root:Shop"]}}, "spec.workspaces.paths[0]"),
        ({"workspaces": {"paths": ["root:a", "root:"]}}, "spec.workspaces.paths[1]"),
        ({"workspaces": {"paths": ["root:*"]}}, "spec.workspaces.paths[0]"),
        ({"workspaces": {"paths": "root"}}, "spec.workspaces.paths"),
        ({"workspaces": {"paths": ["2f8bqz3m1k9x"]}}, "spec.workspaces.paths[0]"),
        (children(selector={}), "childrenOf[0].path"),
        (children(path="root"), "childrenOf[0].selector"),
        (children(path="root", selector=expression("a", "In")), "childrenOf[0].selector"),
        (
            children(path="root", selector=equal(**{"a b": "c"})),
            "spec.workspaces.childrenOf[0].selector.matchLabels",
        ),
        ({"locations": {"selector": equal(**{"-": "c"})}}, "spec.locations.selector"),
        ({"locations": {"selector": equal(a="not a value")}}, "spec.locations.selector"),
        ({"locations": {"selector": []}}, "spec.locations.selector"),
        ({"locations": {"names": ["Oslo"]}}, "spec.locations.names[0]"),
        ({"rules": []}, "spec.rules"),
        ({"rules": [{"apiGroups": ["apps"]}]}, "spec.rules[0].resources"),
        (rules([], ["*"]), "spec.rules[0].apiGroups"),
        (rules(["apps"], ["Deployment"]), "spec.rules[0].resources[0]"),
        (rules(["apps"], ["deployments/status"]), "spec.rules[0].resources[0]"),
        (rules(["apps/v1"], ["*"]), "spec.rules[0].apiGroups[0]"),
        (rules(["*"], ["*"], scope="All"), "spec.rules[0].scope"),
        ({"rules": [{"apiGroups": ["*"], "resources": ["*"]}] * 101}, "spec.rules"),
    ],
)
def test_a_malformed_grant_is_refused_by_field(spec: Object, field: str) -> None:
    assert field in errors(grant(**spec))


@pytest.mark.parametrize("member", ["workspaces", "locations", "rules"])
def test_who_what_and_where_must_be_said(member: str) -> None:
    obj = grant()
    del obj["spec"][member]
    assert f"spec.{member}: Required value" in errors(obj)
    assert "spec: Required value" in errors({"metadata": {"name": "g"}})


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"workspaces": {"paths": ["root", "root:a-1:b", "user:alice", "user:bob@example.org:lab"]}},
        children(path="root:teams", selector={}),
        {"locations": {"names": ["oslo", "store-17.north"]}},
        rules(["", "apps"], ["pods", "*"], scope="*"),
    ],
)
def test_a_grant_that_makes_sense_is_taken(spec: Object) -> None:
    assert errors(grant(**spec)) == ""


def test_a_grant_observes_and_admits_namespaced_objects_unless_it_says_otherwise() -> None:
    obj = grant()
    del obj["spec"]["mode"]
    apply_defaults(_SERVED.schema, obj)
    assert obj["spec"]["mode"] == "Observe"
    assert obj["spec"]["rules"][0]["scope"] == "Namespaced"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"mode": "Observe"}, "spec.mode: Observe"),
        ({"workspaces": {}}, "spec.workspaces"),
        ({"locations": {}}, "spec.locations"),
        (rules(["*"], ["clusterroles"]), "spec.rules[0].scope"),
        (rules(["*"], ["*"], scope="*"), "spec.rules[0]: admits"),
    ],
)
def test_a_grant_that_may_not_mean_what_it_says_is_taken_with_a_warning(
    spec: Object, expected: str
) -> None:
    [line] = _SERVED.warnings(grant(**spec))
    assert expected in line


def test_a_grant_without_doubts_comes_without_warnings() -> None:
    assert not _SERVED.warnings(grant())


def test_a_fault_from_before_may_stay_while_something_else_changes() -> None:
    old = grant(locations={"selector": equal(**{"a b": "c"})})
    new = {**old, "metadata": {**old["metadata"], "labels": {"x": "y"}}}
    assert _SERVED.validate_update(new, old) == []
    changed = {**old, "spec": {**old["spec"], "mode": "Observe"}}
    assert _SERVED.validate_update(changed, old)
