"""Quotas, limit ranges and disruption budgets."""

from __future__ import annotations

import pytest

from skerry.api.objects import Object
from tests.kit.machinery.objects import (
    created,
    errors_of,
    named,
    resource,
    update_errors,
)

QUOTAS = resource("resourcequotas")
RANGES = resource("limitranges")
BUDGETS = resource("poddisruptionbudgets", "policy")


def test_quotas_are_canonical() -> None:
    new = created(QUOTAS, named(QUOTAS, spec={"hard": {"cpu": "0.5", "pods": 3}}))
    assert new["spec"]["hard"] == {"cpu": "500m", "pods": "3"}
    assert new["status"] == {}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {"hard": {"disk": "1"}},
            'spec.hard[disk]: Invalid value: "disk": must be a standard reso',
        ),
        ({"hard": {"pods": "1.5"}}, 'spec.hard[pods]: Invalid value: "1500m": must be an integer'),
        ({"hard": {"cpu": "-1"}}, 'spec.hard[cpu]: Invalid value: "-1": must be greater than or'),
        ({"scopes": ["Odd"]}, 'spec.scopes: Invalid value: ["Odd"]: unsupported scope'),
        (
            {"scopes": ["Terminating", "NotTerminating"]},
            'spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes',
        ),
        (
            {"scopes": ["BestEffort"], "hard": {"cpu": "1"}},
            'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
        ),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]
                }
            },
            "spec.scopeSelector.matchExpressions.values: Required value: must be at least one",
        ),
    ],
)
def test_bad_quotas_are_refused(spec: Object, error: str) -> None:
    errors = errors_of(QUOTAS, named(QUOTAS, spec=spec))
    assert any(found.startswith(error) for found in errors), errors


def test_quotas_may_count_objects_of_any_type() -> None:
    hard = {"count/deployments.apps": "3", "requests.example.com/gpu": "1"}
    assert errors_of(QUOTAS, named(QUOTAS, spec={"hard": hard})) == []


def test_a_quotas_scopes_do_not_change() -> None:
    old = named(QUOTAS, spec={"scopes": ["BestEffort"], "hard": {"pods": "1"}})
    assert update_errors(QUOTAS, old, {"spec": {"hard": {"pods": "2"}}}) == []
    assert update_errors(QUOTAS, old, {"spec": {"scopes": []}}) == [
        "spec.scopes: Invalid value: []: field is immutable"
    ]


def test_container_defaults_follow_the_bounds() -> None:
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}}
    (new,) = created(RANGES, named(RANGES, spec={"limits": [item]}))["spec"]["limits"]
    assert new["default"] == {"cpu": "2"}
    assert new["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"type": "Odd"}, 'type: Invalid value: "Odd": must be a standard limit type or fully'),
        (
            {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            'min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
        ),
        (
            {"type": "Pod", "default": {"cpu": "2"}},
            "default: Forbidden: may not be specified when `type` is 'Pod'",
        ),
        (
            {"type": "PersistentVolumeClaim"},
            "limits: Required value: either minimum or maximum storage value is required",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}},
            'maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1',
        ),
        (
            {
                "type": "Pod",
                "min": {"cpu": "1"},
                "max": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "3"},
            },
            'maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.0',
        ),
    ],
)
def test_bad_limit_ranges_are_refused(item: Object, error: str) -> None:
    errors = errors_of(RANGES, named(RANGES, spec={"limits": [item]}))
    assert any(found.startswith(f"spec.limits[0].{error}") for found in errors), errors


def test_budgets_say_one_thing() -> None:
    spec = {"minAvailable": 1, "maxUnavailable": "110%"}
    errors = errors_of(BUDGETS, named(BUDGETS, spec=spec))
    assert errors[0].endswith("minAvailable and maxUnavailable cannot be both set")
    assert errors[1].endswith("must not be greater than 100%")
    new = created(BUDGETS, named(BUDGETS, spec={"minAvailable": 1}))
    assert new["status"]["disruptionsAllowed"] == 0
    assert BUDGETS.validate_status({"status": {"expectedPods": -1}}, {})
