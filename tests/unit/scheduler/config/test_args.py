"""Arguments of plugins: what kube-scheduler refuses, field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skerry.scheduler.config import args
from skerry.scheduler.config.args import CHECKS

CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
RATIO = {"type": "RequestedToCapacityRatio"}


def shaped(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": used, "score": score} for used, score in points]
    return {"scoringStrategy": {**RATIO, "requestedToCapacityRatio": {"shape": shape}}}


@pytest.mark.parametrize(
    ("check", "given", "fields"),
    [
        (args.default_preemption_errors, {"minCandidateNodesPercentage": 10}, []),
        (args.default_preemption_errors, {"minCandidateNodesAbsolute": 1}, []),
        (args.default_preemption_errors, {"minCandidateNodesPercentage": 101},
         ["minCandidateNodesPercentage"]),
        (args.default_preemption_errors,
         {"minCandidateNodesAbsolute": -1, "minCandidateNodesPercentage": 1},
         ["minCandidateNodesAbsolute"]),
        (args.default_preemption_errors, {},
         ["minCandidateNodesPercentage", "minCandidateNodesAbsolute"]),
        (args.inter_pod_affinity_errors, {}, []),
        (args.inter_pod_affinity_errors, {"hardPodAffinityWeight": 100}, []),
        (args.inter_pod_affinity_errors, {"hardPodAffinityWeight": -1}, ["hardPodAffinityWeight"]),
        (args.balanced_allocation_errors, {"resources": [{"name": "cpu", "weight": 1}]}, []),
        (args.balanced_allocation_errors, {"resources": [{"name": "cpu", "weight": 2}]},
         ["resources[0].weight"]),
        (args.balanced_allocation_errors,
         {"resources": [{"name": "cpu", "weight": 1}, {"name": "cpu", "weight": 1}]},
         ["resources[1].name"]),
        (args.node_resources_fit_errors, {"ignoredResources": ["a.com/b"]}, []),
        (args.node_resources_fit_errors, {"ignoredResources": ["a b"]}, ["ignoredResources[0]"]),
        (args.node_resources_fit_errors, {"ignoredResourceGroups": ["a/b"]},
         ["ignoredResourceGroups[0]"]),
        (args.node_resources_fit_errors, {"scoringStrategy": {"type": "Odd"}},
         ["scoringStrategy.type"]),
        (args.node_resources_fit_errors,
         {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"weight": 101}]}},
         ["scoringStrategy.resources[0].weight"]),
        (args.node_resources_fit_errors, {"scoringStrategy": RATIO}, ["scoringStrategy.shape"]),
        (args.node_resources_fit_errors, shaped((0, 0), (100, 10)), []),
        (args.node_resources_fit_errors, shaped((50, 0), (50, 10)),
         ["scoringStrategy.shape[1].utilization"]),
        (args.node_resources_fit_errors, shaped((0, 11), (101, 0)),
         ["scoringStrategy.shape[0].score", "scoringStrategy.shape[1].utilization"]),
        (args.volume_binding_errors, {}, []),
        (args.volume_binding_errors, {"bindTimeoutSeconds": -1}, ["bindTimeoutSeconds"]),
        (args.volume_binding_errors, {"shape": []}, ["shape"]),
        (args.pod_topology_spread_errors, {"defaultingType": "System"}, []),
        (args.pod_topology_spread_errors, {"defaultingType": "Odd"}, ["defaultingType"]),
        (args.pod_topology_spread_errors,
         {"defaultingType": "System", "defaultConstraints": [CONSTRAINT]}, ["defaultingType"]),
    ],
)  # fmt: skip
def test_each_argument_has_its_range(
    check: Callable[[dict[str, Any], str], list[Any]], given: dict[str, Any], fields: list[str]
) -> None:
    assert [error.field for error in check(given, "a")] == [f"a.{field}" for field in fields]
    assert [error.field for error in check(given, "")] == fields


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, ""),
        ({"maxSkew": 0}, ".maxSkew"),
        ({"topologyKey": ""}, ".topologyKey"),
        ({"topologyKey": "a b"}, ".topologyKey"),
        ({"whenUnsatisfiable": ""}, ".whenUnsatisfiable"),
        ({"whenUnsatisfiable": "Odd"}, ".whenUnsatisfiable"),
        ({"labelSelector": {}}, ".labelSelector"),
    ],
)
def test_default_constraints_are_whole_and_select_nobody(
    change: dict[str, Any], field: str
) -> None:
    given = {"defaultingType": "List", "defaultConstraints": [{**CONSTRAINT, **change}]}
    found = [error.field for error in args.pod_topology_spread_errors(given, "a")]
    assert found == [f"a.defaultConstraints[0]{field}"] * bool(field)


def test_a_constraint_is_given_once() -> None:
    given = {"defaultingType": "List", "defaultConstraints": [CONSTRAINT, CONSTRAINT]}
    (error,) = args.pod_topology_spread_errors(given, "")
    assert str(error) == 'defaultConstraints[1]: Duplicate value: "{zone, ScheduleAnyway}"'


def test_affinity_that_cannot_be_read_is_named() -> None:
    bad = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Odd"}]}]}
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    (error,) = args.node_affinity_errors({"addedAffinity": {field: bad}}, "a")
    assert error.field == f"a.addedAffinity.{field}"
    assert args.node_affinity_errors({}, "a") == []


def test_one_plugin_is_checked_when_it_is_made() -> None:
    assert "NodeResourcesFit" not in CHECKS
    assert CHECKS["VolumeBinding"] is args.volume_binding_errors
