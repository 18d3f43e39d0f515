"""Who is requeued by what: each plugin's judgement of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import Action, ClusterEvent, Hint, Registration
from tests.kit.scheduler.fixtures import Bench, node, pod

ZONE = "topology.kubernetes.io/zone"
BENCH = Bench()


def info(item: Object, on: str = "") -> PodInfo:
    if on:
        item = {**item, "spec": {**item["spec"], "nodeName": on}}
    return BENCH.cluster.reader.read(item)


def requeues(plugin: str, resource: str, action: Action, item: Object, old: Any, new: Any) -> bool:
    """Tell whether an event requeues a pod the plugin rejected."""
    made: Any = BENCH.framework.made[plugin]
    registrations: Sequence[Registration] = made.events_to_register()
    event = ClusterEvent(resource, action)
    judges = [found.hint for found in registrations if found.event.matches(event)]
    return any(hint is None or hint(info(item), old, new) is Hint.QUEUE for hint in judges)


def affine(kind: str, key: str = ZONE) -> Object:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SPREAD = {
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "maxSkew": 1,
    "labelSelector": {"matchLabels": {"app": "x"}},
}
LARGE = NodeInfo(node("n"))
SMALL = NodeInfo(node("n", allocatable={"cpu": "10m"}))
TAINTED = NodeInfo(node("n", taints=[{"key": "k", "effect": "NoSchedule"}]))
CORDONED = NodeInfo(node("n", unschedulable=True))
ZONED = NodeInfo(node("n", {ZONE: "a"}))
PLAIN = pod("p")
SSD = pod("p", nodeSelector={"disk": "ssd"})
PORT = pod("p")
PORT["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]


@pytest.mark.parametrize(
    ("plugin", "resource", "action", "item", "old", "new", "requeued"),
    [
        ("NodeResourcesFit", "AssignedPod", Action.DELETE, PLAIN, info(PLAIN, "n"), None, True),
        ("NodeResourcesFit", "UnscheduledPod", Action.DELETE, PLAIN, info(PLAIN), None, False),
        ("NodeResourcesFit", "AssignedPod", Action.ADD, PLAIN, None, info(PLAIN, "n"), False),
        ("NodeResourcesFit", "Node", Action.ADD, PLAIN, None, LARGE, True),
        ("NodeResourcesFit", "Node", Action.ADD, PLAIN, None, SMALL, False),
        (
            "NodeResourcesFit",
            "Node",
            Action.UPDATE_NODE_ALLOCATABLE,
            PLAIN,
            SMALL,
            LARGE,
            True,
        ),
        (
            "NodeResourcesFit",
            "Node",
            Action.UPDATE_NODE_ALLOCATABLE,
            PLAIN,
            LARGE,
            LARGE,
            False,
        ),
        ("NodeResourcesFit", "Node", Action.UPDATE_NODE_LABEL, PLAIN, SMALL, LARGE, False),
        ("NodeAffinity", "Node", Action.ADD, SSD, None, LARGE, False),
        (
            "NodeAffinity",
            "Node",
            Action.UPDATE_NODE_LABEL,
            SSD,
            LARGE,
            NodeInfo(node("n", {"disk": "ssd"})),
            True,
        ),
        ("TaintToleration", "Node", Action.UPDATE_NODE_TAINT, PLAIN, TAINTED, LARGE, True),
        ("TaintToleration", "Node", Action.UPDATE_NODE_TAINT, PLAIN, TAINTED, TAINTED, False),
        ("NodeUnschedulable", "Node", Action.UPDATE_NODE_TAINT, PLAIN, CORDONED, LARGE, True),
        ("NodeUnschedulable", "Node", Action.UPDATE_NODE_TAINT, PLAIN, LARGE, LARGE, False),
        ("NodePorts", "AssignedPod", Action.DELETE, PORT, info(PORT, "n"), None, True),
        ("NodePorts", "AssignedPod", Action.DELETE, PORT, info(PLAIN, "n"), None, False),
        (
            "PodTopologySpread",
            "AssignedPod",
            Action.ADD,
            pod("p", topologySpreadConstraints=[SPREAD]),
            None,
            info(pod("q", {"app": "x"}), "n"),
            True,
        ),
        (
            "PodTopologySpread",
            "AssignedPod",
            Action.ADD,
            pod("p", topologySpreadConstraints=[SPREAD]),
            None,
            info(pod("q", {"app": "y"}), "n"),
            False,
        ),
        (
            "PodTopologySpread",
            "Node",
            Action.ADD,
            pod("p", topologySpreadConstraints=[SPREAD]),
            None,
            ZONED,
            True,
        ),
        (
            "PodTopologySpread",
            "Node",
            Action.ADD,
            pod("p", topologySpreadConstraints=[SPREAD]),
            None,
            LARGE,
            False,
        ),
        (
            "InterPodAffinity",
            "AssignedPod",
            Action.ADD,
            pod("p", affinity=affine("podAffinity")),
            None,
            info(pod("q", {"app": "x"}), "n"),
            True,
        ),
        (
            "InterPodAffinity",
            "AssignedPod",
            Action.DELETE,
            pod("p", affinity=affine("podAntiAffinity")),
            info(pod("q", {"app": "x"}), "n"),
            None,
            True,
        ),
        (
            "InterPodAffinity",
            "AssignedPod",
            Action.DELETE,
            pod("p", affinity=affine("podAffinity")),
            info(pod("q", {"app": "x"}), "n"),
            None,
            False,
        ),
        (
            "InterPodAffinity",
            "Node",
            Action.ADD,
            pod("p", affinity=affine("podAffinity")),
            None,
            ZONED,
            True,
        ),
        (
            "SchedulingGates",
            "UnscheduledPod",
            Action.UPDATE_POD_GATES_ELIMINATED,
            PLAIN,
            info(PLAIN),
            info(PLAIN),
            True,
        ),
        (
            "VolumeBinding",
            "PersistentVolumeClaim",
            Action.ADD,
            pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            None,
            {"metadata": {"name": "c", "namespace": "default"}},
            True,
        ),
        (
            "VolumeBinding",
            "PersistentVolumeClaim",
            Action.ADD,
            PLAIN,
            None,
            {"metadata": {"name": "c", "namespace": "default"}},
            False,
        ),
    ],
)
def test_an_event_requeues_a_pod_only_when_it_may_help(
    plugin: str, resource: str, action: Action, item: Object, old: Any, new: Any, requeued: bool
) -> None:
    assert requeues(plugin, resource, action, item, old, new) is requeued


def test_pods_of_a_service_spread_over_zones_by_default() -> None:
    bench = Bench().nodes(node("a", {ZONE: "za"}), node("b", {ZONE: "zb"}), node("c"))
    bench.cluster.objects.services.set(
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"app": "x"}},
        }
    )
    bench.place(pod("old", {"app": "x"}), "a")
    _, found = bench.decider.decide(
        bench.profile, bench.cluster.reader.read(pod("new", {"app": "x"}))
    )
    scores = bench.decider.scores(
        bench.profile, bench.cluster.reader.read(pod("new", {"app": "x"})), found
    )["PodTopologySpread"]
    crowded, other, unzoned = scores.tolist()
    assert crowded < other
    # Without a zone label a node still spreads by host.
    assert unzoned > crowded
    _, alone = bench.decider.decide(bench.profile, bench.cluster.reader.read(pod("lone")))
    lone = bench.cluster.reader.read(pod("lone"))
    assert "PodTopologySpread" not in bench.decider.scores(bench.profile, lone, alone)


@pytest.mark.parametrize(
    ("strategy", "chosen"),
    [
        ({"type": "LeastAllocated"}, "empty"),
        ({"type": "MostAllocated"}, "full"),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {
                    "shape": [
                        {"utilization": 0, "score": 0},
                        {"utilization": 100, "score": 10},
                    ]
                },
            },
            "full",
        ),
    ],
)
def test_strategies_prefer_empty_or_full_nodes(strategy: Object, chosen: str) -> None:
    from skerry.scheduler.config.load import complete

    resources = [{"name": "cpu", "weight": 1}]
    args = {"scoringStrategy": {**strategy, "resources": resources}}
    profile = {
        "plugins": {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 100}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }
    bench = Bench(complete({"profiles": [profile]}))
    bench.nodes(node("empty"), node("full"))
    bench.place(pod("old", requests={"cpu": "2"}), "full")
    assert bench.decide(pod("new")) == chosen
