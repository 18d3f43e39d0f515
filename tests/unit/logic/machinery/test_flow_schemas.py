"""Requests fall to the FlowSchemas they fall to in Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.flow_bootstrap import flow_control_objects
from skerry.logic.machinery.flow_schemas import (
    Asked,
    LevelLimits,
    dangling,
    in_order,
    level_limits,
    matching,
    names_namespaces,
    nominal_seats,
)

_BORN = flow_control_objects()
_LEVELS = {o["metadata"]["name"]: o for o in _BORN if o["kind"] == "PriorityLevelConfiguration"}
_SCHEMAS = in_order([o for o in _BORN if o["kind"] == "FlowSchema"], _LEVELS)
_KNOWN = ("system:authenticated",)
_ACCOUNTS = ("system:serviceaccounts", *_KNOWN)


def _name(asked: Asked, schemas: list[Object] = _SCHEMAS) -> str:
    found = matching(schemas, asked)
    return "" if found is None else found["metadata"]["name"]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (Asked("admin", ("system:masters", *_KNOWN), "get", "", "pods"), "exempt"),
        (Asked("system:anonymous", ("system:unauthenticated",), "get", path="/livez"), "probes"),
        (Asked("ann", _KNOWN, "get", path="/readyz/ping"), "probes"),
        (Asked("ann", _KNOWN, "get", path="/livezoo"), "global-default"),
        (Asked("ann", _KNOWN, "list", "apps", "deployments", "", "default"), "global-default"),
        (Asked("ann", ("strangers",), "get", path="/api"), ""),
        (
            Asked("system:node:n", ("system:nodes", *_KNOWN), "patch", "", "nodes", "status"),
            "system-node-high",
        ),
        (Asked("system:node:n", ("system:nodes", *_KNOWN), "list", "", "pods"), "system-nodes"),
        (
            Asked("system:kube-scheduler", _KNOWN, "update", "coordination.k8s.io", "leases", "",
                  "kube-system"),
            "system-leader-election",
        ),
        (Asked("system:kube-scheduler", _KNOWN, "create", "", "bindings"), "kube-scheduler"),
        (
            Asked("system:serviceaccount:kube-system:dns", _ACCOUNTS, "list", "", "services"),
            "kube-system-service-accounts",
        ),
        (
            Asked("system:serviceaccount:kube-systems:dns", _ACCOUNTS, "list", "", "services"),
            "service-accounts",
        ),
    ],
)  # fmt: skip
def test_a_request_falls_to_the_first_schema_that_has_a_rule_for_it(
    asked: Asked, name: str
) -> None:
    assert _name(asked) == name


def _schema(name: str, precedence: int, **rule: Any) -> Object:
    subjects = [{"kind": "User", "user": {"name": "*"}}]
    return {
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": rule.pop("level", "system")},
            "rules": [{"subjects": rule.pop("subjects", subjects), **rule}],
        },
    }


_PODS = {"verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["a"]}


def test_a_schema_of_a_level_that_is_not_there_is_passed_over() -> None:
    schemas = [_schema("lost", 3, level="gone", resourceRules=[_PODS])]
    assert in_order(schemas, _LEVELS) == []
    assert dangling(schemas[0], _LEVELS)["status"] == "True"
    assert dangling(_schema("found", 3), _LEVELS)["message"].endswith('"system" and it exists')


def test_of_two_with_one_precedence_the_name_decides() -> None:
    schemas = [_schema(name, 7, resourceRules=[_PODS]) for name in ("b", "a")]
    assert _name(Asked("ann", _KNOWN, "get", "", "pods", "", "a"), in_order(schemas, _LEVELS)) == (
        "a"
    )


def test_a_rule_without_cluster_scope_is_for_its_namespaces_alone() -> None:
    schemas = [_schema("pods", 7, resourceRules=[_PODS])]
    assert _name(Asked("ann", _KNOWN, "get", "", "pods", "", "a"), schemas) == "pods"
    assert _name(Asked("ann", _KNOWN, "get", "", "pods", "", "b"), schemas) == ""
    assert _name(Asked("ann", _KNOWN, "list", "", "pods"), schemas) == ""
    assert _name(Asked("ann", _KNOWN, "get", "", "pods", "log", "a"), schemas) == ""
    assert names_namespaces(schemas)
    assert not names_namespaces(_SCHEMAS)


def test_a_named_service_account_is_a_subject() -> None:
    account = {"namespace": "a", "name": "builder"}
    subjects = [{"kind": "ServiceAccount", "serviceAccount": account}, {"kind": "Other"}]
    schemas = [_schema("builds", 7, subjects=subjects, resourceRules=[_PODS])]
    name = "system:serviceaccount:a:builder"
    assert _name(Asked(name, _ACCOUNTS, "get", "", "pods", "", "a"), schemas) == "builds"
    assert _name(Asked(name + "s", _ACCOUNTS, "get", "", "pods", "", "a"), schemas) == ""


def test_a_path_rule_covers_what_is_below_it() -> None:
    rule = {"verbs": ["get"], "nonResourceURLs": ["/debug/*"]}
    schemas = [_schema("debug", 7, nonResourceRules=[rule])]
    assert _name(Asked("ann", _KNOWN, "get", path="/debug/pprof"), schemas) == "debug"
    assert _name(Asked("ann", _KNOWN, "get", path="/debugger"), schemas) == ""
    assert _name(Asked("ann", _KNOWN, "post", path="/debug/pprof"), schemas) == ""


def test_shares_are_those_of_either_type_of_level() -> None:
    assert nominal_seats(_LEVELS, 245) == {
        "exempt": 0, "catch-all": 5, "global-default": 20, "leader-election": 10,
        "node-high": 40, "system": 30, "workload-high": 40, "workload-low": 100,
    }  # fmt: skip


def test_limits_are_those_of_the_spec() -> None:
    assert level_limits(_LEVELS["exempt"]) is None
    assert level_limits(_LEVELS["catch-all"]) == LevelLimits()
    assert level_limits(_LEVELS["workload-low"]) == LevelLimits(90, None, 300, 6400)
    limited = {"borrowingLimitPercent": 25, "limitResponse": {"type": "Reject"}}
    found = level_limits({"spec": {"type": "Limited", "limited": limited}})
    assert found == LevelLimits(0, 25, 0, 0)


def test_lent_and_borrowed_seats_are_parts_of_the_nominal_ones() -> None:
    assert LevelLimits(lendable_percent=50).lendable(6) == 3
    assert LevelLimits(borrowing_percent=50).borrowed(6, 100) == 3
    assert LevelLimits().borrowed(6, 100) == 100
