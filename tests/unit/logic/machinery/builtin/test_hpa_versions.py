"""An autoscaler read and written back at v1 loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.builtin.hpa_versions import CPU_UTILIZATION, convert, cpu_metric

ALPHA = "autoscaling.alpha.kubernetes.io/"
SELECTOR = {"matchLabels": {"a": "b"}}
METRICS: list[dict[str, Any]] = [
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 5},
        },
    },
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "m", "selector": SELECTOR},
            "target": {"type": "AverageValue", "averageValue": "1"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "metric": {"name": "m"},
            "target": {"type": "Value", "value": "2"},
        },
    },
    {
        "type": "External",
        "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "2"}},
    },
]


def autoscaler(*metrics: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "x", "annotations": {"mine": "yes"}},
        "spec": {"maxReplicas": 3, "metrics": list(metrics)},
        **({"status": status} if status else {}),
    }


@given(st.lists(st.sampled_from(METRICS), unique_by=lambda each: each["type"]), st.booleans())
def test_there_and_back_is_the_same(others: list[dict[str, Any]], cpu: bool) -> None:
    found = autoscaler(*others, *([cpu_metric(50)] if cpu or not others else []))
    found["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 1}}
    found["status"] = {"currentReplicas": 2, "conditions": [{"type": "AbleToScale"}]}
    assert convert(convert(found, "v1"), "v2") == found


def test_the_cpu_target_is_a_field_of_v1_and_the_rest_annotations() -> None:
    old = convert(autoscaler(cpu_metric(50), METRICS[0]), "v1")
    assert old["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    assert set(old["metadata"]["annotations"]) == {"mine", f"{ALPHA}metrics"}
    assert "averageValue" not in old["metadata"]["annotations"][f"{ALPHA}metrics"]


def test_what_pods_use_now_is_a_field_of_v1() -> None:
    used = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}
    old = convert(autoscaler(cpu_metric(50), currentMetrics=[used]), "v1")
    assert old["status"]["currentCPUUtilizationPercentage"] == 7
    assert convert(old, "v2")["status"] == {"currentMetrics": [used]}
    del old["metadata"]["annotations"]
    assert convert(old, "v2")["status"] == {"currentMetrics": [used]}, "from the field alone"


def test_without_any_metric_the_cpu_is_what_counts() -> None:
    old = {"apiVersion": "autoscaling/v1", "metadata": {"name": "x"}, "spec": {"maxReplicas": 1}}
    assert convert(old, "v2")["spec"]["metrics"] == [cpu_metric(CPU_UTILIZATION)]
    assert "status" not in convert(old, "v2")


@pytest.mark.parametrize("garbled", ["{", "7", '[1, {"type": "Pods", "pods": "x"}]'])
def test_an_annotation_that_somebody_garbled_carries_nothing(garbled: str) -> None:
    notes = {f"{ALPHA}{name}": garbled for name in ("metrics", "behavior", "conditions")}
    old = {"apiVersion": "autoscaling/v1", "metadata": {"annotations": notes}, "spec": {}}
    found = convert(old, "v2")
    assert found["spec"] == {"metrics": [cpu_metric(CPU_UTILIZATION)]}
    assert "annotations" not in found["metadata"]


def test_the_version_it_has_already_is_the_very_same() -> None:
    found = autoscaler(cpu_metric(50))
    assert convert(found, "v2") is found
