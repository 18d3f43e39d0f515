"""What EdgePlacements are refused or warned for beyond their schema."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import REPORTED_STATES
from skerry.api.kcp import edge
from skerry.api.objects import Object
from skerry.logic.fleet.type_rules import grant_errors, grant_warnings, with_type_rules
from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.work import limited
from skerry.server.offload.offload import OffloadSettings

_KIND = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "EdgePlacement")
[_SERVED] = map(with_type_rules, crd.resources_of(_KIND))
_CONTRADICTION = {"reportedState": "Aggregate", "wantSingletonReportedState": True}


def placement(**spec: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "p"},
        "spec": {"locationSelectors": [{}], **spec},
    }


def test_a_placement_whose_fields_contradict_each_other_is_refused() -> None:
    [error] = _SERVED.validate_create(placement(**_CONTRADICTION))
    assert error.field == "spec.reportedState"
    assert "spec.wantSingletonReportedState" in error.message
    assert not _SERVED.validate_create(placement(reportedState="Aggregate"))


def test_only_a_change_of_the_spec_is_judged() -> None:
    stored = placement(**_CONTRADICTION)
    relabelled = {**stored, "metadata": {"name": "p", "labels": {"a": "b"}}}
    assert not _SERVED.validate_update(relabelled, stored)
    assert _SERVED.validate_update(stored, placement(reportedState="Aggregate"))


@pytest.mark.parametrize("said", REPORTED_STATES)
def test_the_schema_accepts_what_the_code_knows(said: str) -> None:
    assert not _SERVED.validate_create(placement(reportedState=said))


@pytest.mark.parametrize("said", ["", "aggregate", "All", 1])
def test_the_schema_refuses_any_other_state(said: object) -> None:
    errors = _SERVED.validate_create(placement(reportedState=said))
    assert [error.field for error in errors] == ["spec.reportedState"]


def test_a_selector_that_nothing_satisfies_is_accepted_with_a_warning() -> None:
    both = [{"key": "a", "operator": op} for op in ("Exists", "DoesNotExist")]
    obj = placement(locationSelectors=[{"matchExpressions": both}])
    assert not _SERVED.validate_create(obj)
    assert _SERVED.warnings(obj)


def served(kind: str) -> Resource:
    definition = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == kind)
    [found] = map(with_type_rules, crd.resources_of(definition))
    return found


def of_kind(kind: str, **spec: Any) -> Object:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": spec,
    }


GRANT: dict[str, Any] = {
    "mode": "Enforce",
    "workspaces": {"paths": ["root:shop"]},
    "locations": {"names": ["oslo"]},
    "rules": [{"apiGroups": [""], "resources": ["configmaps"]}],
}
COLUMN = {"name": "where", "value": "location.name"}
QUERY: dict[str, Any] = {
    "from": {"resources": ["configmaps"]},
    "aggregates": [{"name": "edges", "function": "Count"}],
}
UNREADABLE = {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("LocationGrant", {**GRANT, "locations": {"selector": UNREADABLE}}, "spec.locations.sel"),
        (
            "LocationGrant",
            {**GRANT, "workspaces": {"childrenOf": [{"path": "root", "selector": UNREADABLE}]}},
            "spec.workspaces.childrenOf[0].selector",
        ),
        ("PlacementGuard", {"budgets": [{"of": "DestinationsRemoved"}]}, "spec.budgets[0]"),
        ("Rollout", {"judge": {"minReady": "-1s"}}, "spec.judge.minReady"),
        ("StatusQuery", {**QUERY, "filter": "1 +"}, "spec.filter"),
        ("StatusQuery", {**QUERY, "select": [COLUMN]}, "spec.select"),
    ],
)
def test_each_kind_is_refused_for_what_its_schema_cannot_find(
    kind: str, spec: dict[str, Any], field: str
) -> None:
    errors = served(kind).validate_create(of_kind(kind, **spec))
    assert [error.field for error in errors if error.field.startswith(field)]


def test_a_kind_without_rules_of_its_own_is_served_as_it_is() -> None:
    definition = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "Customizer")
    [plain] = crd.resources_of(definition)
    assert with_type_rules(plain) is plain


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        ({"rules": [{"apiGroups": ["*"], "resources": ["nodes"], "scope": "Cluster"}]}, ""),
        ({"mode": "Observe"}, "spec.mode: Observe refuses nothing"),
        ({"workspaces": {}}, "spec.workspaces: names no workspace"),
        ({"locations": {}}, "spec.locations: selects no Location"),
        (
            {"rules": [{"apiGroups": ["*"], "resources": ["clusterroles", "configmaps"]}]},
            "spec.rules[0].scope: Namespaced does not admit clusterroles",
        ),
        (
            {"rules": [{"apiGroups": ["*"], "resources": ["*"], "scope": "Cluster"}]},
            "spec.rules[0]: admits every cluster-scoped object",
        ),
    ],
)
def test_a_grant_that_may_not_mean_what_it_says_is_warned_of(
    changed: dict[str, Any], words: str
) -> None:
    warnings = grant_warnings(of_kind("LocationGrant", **{**GRANT, **changed}))
    assert len(warnings) == bool(words)
    assert all(each.startswith(words) for each in warnings)


def test_a_record_is_created_within_what_a_loop_has_for_one_request() -> None:
    """Sent to a worker process, each record costs several times as much, and every decision has
    one."""
    kind = next(d for d in edge.definitions() if d["spec"]["names"]["kind"] == "DecisionRecord")
    [served] = map(with_type_rules, crd.resources_of(kind))
    record = {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "DecisionRecord",
        "metadata": {"name": "web-000000000001-00"},
        "time": "2026-09-01T14:05:03.120Z",
        "placement": {"name": "web", "uid": "1"},
        "change": "Joined",
        "by": {"controller": "edge-scheduler"},
    }
    units = OffloadSettings().units
    assert limited(units, lambda: served.validate_create(record)) == []


BAD = {"matchExpressions": [{"key": "env", "operator": "Near", "values": ["x"]}]}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({}, []),
        ({"locations": {"selector": {"matchLabels": {"a": "b"}}}}, []),
        ({"locations": {"selector": BAD}}, ["spec.locations.selector"]),
        (
            {"workspaces": {"childrenOf": [{"path": "root"}, {"path": "root:a", "selector": BAD}]}},
            ["spec.workspaces.childrenOf[1].selector"],
        ),
        (
            {
                "locations": {"selector": BAD},
                "workspaces": {"childrenOf": [{"path": "root", "selector": BAD}]},
            },
            ["spec.locations.selector", "spec.workspaces.childrenOf[0].selector"],
        ),
    ],
)
def test_every_selector_of_a_grant_that_makes_no_sense_is_named(
    spec: Object, fields: list[str]
) -> None:
    found = [error.field for error in grant_errors({"spec": spec})]
    assert len(found) == len(fields)
    assert all(error.startswith(field) for error, field in zip(found, fields, strict=True))
