"""The Targets column of autoscalers, of both versions, and of annotations nobody checks."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.printing.autoscaling import HORIZONTAL_POD_AUTOSCALER_COLUMNS

NOW = datetime(2024, 1, 1, tzinfo=UTC)
SPECS = "autoscaling.alpha.kubernetes.io/metrics"
STATUSES = "autoscaling.alpha.kubernetes.io/current-metrics"


def cells(obj: Object) -> dict[str, Any]:
    return {column.name: column.cell(obj, NOW) for column in HORIZONTAL_POD_AUTOSCALER_COLUMNS}


def v2(specs: list[Object], statuses: list[Object]) -> str:
    obj = {
        "apiVersion": "autoscaling/v2",
        "spec": {"metrics": specs},
        "status": {"currentMetrics": statuses},
    }
    return str(cells(obj)["Targets"])


def v1(
    annotations: dict[str, str], spec: Object | None = None, status: Object | None = None
) -> str:
    obj = {
        "apiVersion": "autoscaling/v1",
        "metadata": {"annotations": annotations},
        "spec": spec or {},
        "status": status or {},
    }
    return str(cells(obj)["Targets"])


def resource(word: str, **amounts: Any) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", word: amounts}}


def external(word: str, **amounts: Any) -> Object:
    return {"type": "External", "external": {word: amounts}}


@pytest.mark.parametrize(
    ("spec", "status", "text"),
    [
        (resource("target", averageUtilization=80), resource("current", averageUtilization=50),
         "cpu: 50%/80%"),
        (resource("target", averageUtilization=80), None, "cpu: <unknown>/80%"),
        (resource("target"), None, "cpu: <unknown>/<auto>"),
        (resource("target", averageValue="500m"), resource("current", averageValue="100m"),
         "cpu: 100m/500m"),
        (external("target", value="10"), external("current", value="5"), "5/10"),
        (external("target", averageValue="10"), external("current", averageValue="5"),
         "5/10 (avg)"),
        ({"type": "Pods", "pods": {"target": {"averageValue": "3"}}}, None, "<unknown>/3"),
        ({"type": "Magic"}, None, "<unknown type>"),
    ],
)  # fmt: skip
def test_each_sort_of_metric(spec: Object, status: Object | None, text: str) -> None:
    assert v2([spec], [status] if status else []) == text


def test_of_many_metrics_two_are_shown() -> None:
    metric = external("target", value="1")
    assert v2([], []) == "<none>"
    assert v2([metric] * 4, []) == "<unknown>/1, <unknown>/1 + 2 more..."


def test_version_one_knows_the_cpu() -> None:
    assert v1({}) == "cpu: <unknown>/80%"
    assert v1(
        {}, {"targetCPUUtilizationPercentage": 60}, {"currentCPUUtilizationPercentage": 30}
    ) == "cpu: 30%/60%"  # fmt: skip


def test_version_one_keeps_the_rest_in_annotations() -> None:
    specs = [{"type": "External", "external": {"targetValue": "10"}}]
    statuses = [{"type": "External", "external": {"currentValue": "5"}}]
    assert v1({SPECS: json.dumps(specs), STATUSES: json.dumps(statuses)}) == "5/10"


@pytest.mark.parametrize(
    "written",
    [
        "no json",
        "{}",
        "[1, null]",
        '[{"type": "Resource", "resource": {"target": 5}}]',
        '[{"type": "Resource", "resource": {"target": "text"}}]',
        '[{"type": "Resource", "resource": [1]}]',
        '[{"type": ["a"]}]',
    ],
)
def test_an_annotation_anybody_wrote_breaks_no_table(written: str) -> None:
    assert v1({SPECS: written, STATUSES: written})
    current = written.replace("target", "current")
    assert v1({SPECS: current, STATUSES: current})


def test_the_other_columns() -> None:
    obj = {
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "web", "creationTimestamp": "2023-12-31T23:00:00Z"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 9},
        "status": {"currentReplicas": 4},
    }
    found = cells(obj)
    assert found["Reference"] == "Deployment/web"
    assert (found["MinPods"], found["MaxPods"], found["Replicas"]) == ("<unset>", 9, 4)
    assert found["Age"] == "60m"
