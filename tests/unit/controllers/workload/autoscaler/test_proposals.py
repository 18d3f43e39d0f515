"""Sentences about metrics, as kube-controller-manager 1.32 wrote them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.controllers.workload.autoscaler.observe import Observed
from skerry.controllers.workload.autoscaler.proposals import Proposal, Refusal, proposed, shown
from skerry.logic.workloads.scaling.usage import Unusable

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AVERAGE = {"type": "AverageValue", "averageValue": "10"}
VALUE = {"type": "Value", "value": "10"}
HALF = {"type": "Utilization", "averageUtilization": 50}
OBSERVED = Observed(
    {"metadata": {"name": "h", "namespace": "default"}, "spec": {}},
    scale={"spec": {"replicas": 2}, "status": {"replicas": 2}},
)
SERVICE = {"apiVersion": "v1", "kind": "Service", "name": "s"}
CPU = "failed to get cpu utilization: unable to get metrics for resource cpu: "
GONE = "unable to fetch metrics from"


def hits(target: Any) -> Any:
    source = {"metric": {"name": "hits"}, "describedObject": SERVICE, "target": target}
    return {"type": "Object", "object": source}


@pytest.mark.parametrize(
    ("metric", "why", "reason", "message", "whole"),
    [
        (
            {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": AVERAGE}},
            f"{GONE} custom metrics API: X",
            "FailedGetPodsMetric",
            f"unable to get metric rps: {GONE} custom metrics API: X",
            "failed to get pods metric value: ",
        ),
        (
            hits(VALUE),
            f"{GONE} custom metrics API: X",
            "FailedGetObjectMetric",
            f"unable to get metric hits: Service on default s/{GONE} custom metrics API: X",
            "failed to get object metric value: ",
        ),
        (
            {"type": "External", "external": {"metric": {"name": "q"}, "target": AVERAGE}},
            f"{GONE} external metrics API: X",
            "FailedGetExternalMetric",
            f"unable to get external metric default/q/nil: {GONE} external metrics API: X",
            "failed to get q external metric value: failed to get q external metric: ",
        ),
        (
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "c", "target": HALF},
            },
            f"{GONE} resource metrics API: X",
            "FailedGetContainerResourceMetric",
            f"{CPU}{GONE} resource metrics API: X",
            "failed to get c container metric value: ",
        ),
    ],
)
def test_what_cannot_be_measured_is_said(
    metric: Any, why: str, reason: str, message: str, whole: str
) -> None:
    found = proposed(metric, Unusable(why), OBSERVED, NOW)
    assert found == Refusal(reason, message, whole + message)


def test_one_amount_is_shared_or_compared() -> None:
    assert proposed(hits(AVERAGE), 60000, OBSERVED, NOW) == Proposal(
        6,
        "external metric hits(nil)",
        {
            "type": "Object",
            "object": {
                "describedObject": SERVICE,
                "metric": {"name": "hits"},
                "current": {"averageValue": "30"},
            },
        },
    )
    zero = Observed(OBSERVED.autoscaler, scale={"spec": {}, "status": {"replicas": 0}})
    found = proposed(hits(VALUE), 25000, zero, NOW)
    assert isinstance(found, Proposal)
    assert (found.replicas, found.name) == (3, "Service metric hits")


def test_a_selector_is_shown_as_go_prints_it() -> None:
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": []}
    assert shown({"selector": selector}) == (
        "&LabelSelector{MatchLabels:map[string]string{a: b,},"
        "MatchExpressions:[]LabelSelectorRequirement{},}"
    )
