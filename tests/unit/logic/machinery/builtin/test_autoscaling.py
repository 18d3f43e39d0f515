"""Horizontal pod autoscalers at two versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.hpa_versions import convert
from tests.kit.machinery.objects import (
    created,
    errors_of,
    merged,
    named,
    resource,
    update_errors,
)

NAME = "horizontalpodautoscalers"
V1, V2 = resource(NAME, "autoscaling", "v1"), resource(NAME, "autoscaling", "v2")
TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}


def autoscaler(spec: Object | None = None) -> Object:
    return named(V2, spec=merged({"scaleTargetRef": TARGET, "maxReplicas": 3}, spec))


def metric(kind: str, target: Object) -> Object:
    field = kind[0].lower() + kind[1:]
    source: Object = {"target": target}
    if kind in ("Resource", "ContainerResource"):
        source["name"] = "memory"
    else:
        source["metric"] = {"name": "m"}
    if kind == "ContainerResource":
        source["container"] = "c"
    if kind == "Object":
        source["describedObject"] = {"kind": "Service", "name": "s"}
    return {"type": kind, field: source}


AVERAGE = {"type": "AverageValue", "averageValue": "10"}
METRICS = st.lists(
    st.one_of(
        st.sampled_from(["Resource", "ContainerResource", "Pods", "External"]).map(
            lambda kind: metric(kind, AVERAGE)
        ),
        st.just(metric("Object", {"type": "Value", "value": "5"})),
        st.just(metric("Resource", {"type": "Utilization", "averageUtilization": 50})),
    ),
    min_size=1,
    max_size=3,
)


def test_an_autoscaler_watches_the_cpu_by_default() -> None:
    new = created(V2, autoscaler({"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}))
    assert new["spec"]["minReplicas"] == 1
    assert new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    assert new["spec"]["behavior"]["scaleUp"]["policies"][0]["value"] == 4
    assert new["spec"]["behavior"]["scaleDown"]["selectPolicy"] == "Disabled"


def test_targets_are_canonical() -> None:
    target = {"type": "AverageValue", "averageValue": "0.5"}
    new = created(V2, autoscaler({"metrics": [metric("Pods", target)]}))
    assert new["spec"]["metrics"][0]["pods"]["target"]["averageValue"] == "500m"


def test_the_old_version_shows_the_cpu_target_and_carries_the_rest() -> None:
    new = created(V2, autoscaler())
    shown = convert(new, "v1")
    assert shown["apiVersion"] == "autoscaling/v1"
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 80
    assert "annotations" not in shown["metadata"]
    assert convert(shown, "v2") == new


@given(METRICS, st.booleans())
def test_conversion_there_and_back_loses_nothing(metrics: list[Object], behaves: bool) -> None:
    spec: Object = {"metrics": metrics}
    if behaves:
        spec["behavior"] = {"scaleUp": {"selectPolicy": "Max"}}
    stored = created(V2, autoscaler(spec))
    stored["status"] = {
        "currentReplicas": 1,
        "conditions": [{"type": "AbleToScale", "status": "True"}],
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 9}}}
        ],
    }
    shown = convert(stored, "v1")
    assert shown["status"] == {"currentReplicas": 1, "currentCPUUtilizationPercentage": 9}
    assert convert(shown, "v2") == stored


def test_an_old_object_without_a_target_gets_the_default() -> None:
    old = named(V1, spec={"scaleTargetRef": TARGET, "maxReplicas": 3})
    V1.default(old)
    assert V1.validate_create(old) == []
    assert (
        convert(old, "v2")["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    )


def test_garbled_annotations_carry_nothing() -> None:
    old = named(V1, spec={"maxReplicas": 1})
    old["metadata"]["annotations"] = {"autoscaling.alpha.kubernetes.io/metrics": "{"}
    assert convert(old, "v2")["spec"]["metrics"][0]["type"] == "Resource"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"maxReplicas": 0}, "spec.maxReplicas: Invalid value: 0: must be greater than 0"),
        ({"minReplicas": 0}, "spec.minReplicas: Invalid value: 0: must be greater than or equal"),
        (
            {"minReplicas": 5},
            "spec.maxReplicas: Invalid value: 3: must be greater than or equal to",
        ),
        ({"scaleTargetRef": {"name": ""}}, "spec.scaleTargetRef.name: Required value"),
        ({"metrics": [{"type": "Odd"}]}, 'spec.metrics[0].type: Unsupported value: "Odd"'),
        ({"metrics": [{"type": "Pods"}]}, "spec.metrics[0].pods: Required value: must populate"),
        (
            {"metrics": [metric("Resource", {"type": "Utilization"})]},
            "spec.metrics[0].resource.target.averageUtilization: Required value: must set either",
        ),
        (
            {"metrics": [metric("Pods", {"type": "AverageValue", "averageValue": "0"})]},
            'spec.metrics[0].pods.target.averageValue: Invalid value: "0": must be positive',
        ),
        (
            {"behavior": {"scaleUp": {"policies": []}}},
            "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
        ),
        (
            {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 9999}}},
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 9999: must be less",
        ),
    ],
)
def test_bad_autoscalers_are_refused(spec: Object, error: str) -> None:
    errors = errors_of(V2, autoscaler(spec))
    assert any(found.startswith(error) for found in errors), errors


def test_updates_and_status_are_judged_too() -> None:
    assert update_errors(V2, autoscaler(), {"spec": {"maxReplicas": 9}}) == []
    assert V2.validate_status({"status": {"currentReplicas": -1}}, {})


def test_a_new_autoscaler_has_scaled_nothing() -> None:
    assert created(V2, autoscaler())["status"] == {"desiredReplicas": 0}
    old = named(V1, spec={"scaleTargetRef": TARGET, "maxReplicas": 3})
    assert created(V1, old)["status"] == {"currentReplicas": 0, "desiredReplicas": 0}
