"""The scheduler_perf workloads: nodes, pods there before, pods measured, what happens meanwhile.

Shapes and counts are scheduler_perf's (nodes of 4 cores, 32 GiB and 110 pods; pods of 100m and
500 MiB; no grace on deletion, for there is no kubelet). Both suites take them from here: the one
that only decides, and the one that goes through a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from skerry.api.objects import Object

Maker = Callable[[int], Iterator[Object]]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
NAMESPACE = "bench"
LARGE = 5000

# What goes on while pods are measured: nothing, a hopeless pod now and then, or a node, a hopeless
# important pod and a Service that come and go.
Meanwhile = Literal["", "hopeless", "churn"]


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods placed beforehand, then pods measured."""

    name: str
    existing: Maker
    measured: Maker
    pods: int
    before: int
    # Pods per second kube-scheduler must reach end to end at the largest size: 1.32, and newest.
    threshold: int
    newest: int = 0
    sizes: tuple[int, ...] = (500, LARGE)
    meanwhile: Meanwhile = ""

    def counts(self, nodes: int) -> tuple[int, int]:
        """Return how many pods are there before and how many are measured with *nodes* nodes."""
        if self.name == "PreemptionBasic":
            # Nodes must be full, or there is nothing to preempt.
            return 4 * nodes, 500 if nodes < LARGE else 1000
        if self.name == "SchedulingPodAntiAffinity":
            # One pod fits on each node, and some must stay free.
            return nodes // 5, min(self.pods, nodes // 2)
        if nodes < LARGE:
            return min(self.before, 4 * nodes), self.pods // 2
        return self.before, self.pods


def node(name: str, zone: int = 0) -> Object:
    """Return a node as scheduler_perf makes them."""
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, ZONE: f"zone-{zone}"}},
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True"}],
            "phase": "Running",
        },
    }


def nodes(count: int) -> Iterator[Object]:
    """Yield nodes over three zones."""
    return (node(f"node-{index}", index % 3) for index in range(count))


def pod(name: str, labels: Object | None = None, cpu: str = "100m", **spec: Any) -> Object:
    """Return a pod as scheduler_perf makes them."""
    requests = {"cpu": cpu, "memory": "500Mi"}
    container = {
        "name": "pause",
        "image": "registry.example/pause:3.10",
        "resources": {"requests": requests},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, "namespace": NAMESPACE, "labels": labels or {}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
        "status": {},
    }


def plain(prefix: str) -> Maker:
    """Return a maker of ordinary pods."""
    return lambda count: (pod(f"{prefix}-{index}") for index in range(count))


def copies(prefix: str, labels: Object, **spec: Any) -> Maker:
    """Return a maker of pods that are all alike."""
    return lambda count: (pod(f"{prefix}-{i}", labels, **spec) for i in range(count))


_COLOR = {"color": "green"}
NODE_AFFINITY: Object = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": ZONE, "operator": "In", "values": ["zone-0", "zone-1"]}
                    ]
                }
            ]
        }
    }
}
ANTI_AFFINITY: Object = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": _COLOR}, "topologyKey": HOST}
        ]
    }
}


def spreading(action: str) -> list[Object]:
    """Return a zone constraint."""
    return [
        {
            "maxSkew": 5,
            "topologyKey": ZONE,
            "whenUnsatisfiable": action,
            "labelSelector": {"matchLabels": {"color": "blue"}},
        }
    ]


def mixed(count: int) -> Iterator[Object]:
    """Yield pods of five kinds in turn, as MixedSchedulingBasePod leaves them behind."""
    for index in range(count):
        name = f"mixed-{index}"
        kind = index % 5
        if kind == 0:
            yield pod(name)
        elif kind == 1:
            term: Object = {"labelSelector": {"matchLabels": {"color": "red"}}, "topologyKey": ZONE}
            rule = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            yield pod(name, {"color": "red"}, affinity=rule)
        elif kind == 2:
            yield pod(name, _COLOR, affinity=ANTI_AFFINITY)
        else:
            side = "podAffinity" if kind == 3 else "podAntiAffinity"
            color = {"color": "yellow" if kind == 3 else "purple"}
            term = {"labelSelector": {"matchLabels": color}, "topologyKey": HOST}
            rule = {
                side: {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": term}
                    ]
                }
            }
            yield pod(name, color, affinity=rule)


def mixed_again(count: int) -> Iterator[Object]:
    """Yield the same kinds once more, under other names."""
    for index, item in enumerate(mixed(count)):
        name = f"again-{index}"
        yield {**item, "metadata": {**item["metadata"], "name": name, "uid": name}}


def low_priority(count: int) -> Iterator[Object]:
    """Yield pods that fill nodes and may be evicted."""
    for index in range(count):
        yield pod(f"low-{index}", cpu="900m")


# An API server gives a pod the priority of its class, and refuses any other.
PRIORITY_CLASS = "bench-important"
PRIORITY = 10


def high_priority(count: int) -> Iterator[Object]:
    """Yield pods that fit only where others make room."""
    for index in range(count):
        yield important(f"high-{index}", cpu="3000m")


def important(name: str, cpu: str) -> Object:
    """Return a pod that may make room for itself."""
    return pod(name, cpu=cpu, priorityClassName=PRIORITY_CLASS, priority=PRIORITY)


def hopeless(name: str) -> Object:
    """Return a pod too large for any node."""
    return pod(name, cpu="9")


WORKLOADS = (
    Workload("SchedulingBasic", plain("old"), plain("new"), 10_000, 1_000, 270, 680),
    Workload(
        "SchedulingNodeAffinity",
        plain("old"),
        copies("new", {}, affinity=NODE_AFFINITY),
        10_000,
        5_000,
        220,
        540,
    ),
    Workload(
        "SchedulingPodAntiAffinity",
        copies("old", _COLOR, affinity=ANTI_AFFINITY),
        copies("new", _COLOR, affinity=ANTI_AFFINITY),
        2_000,
        1_000,
        70,
        180,
    ),
    Workload(
        "TopologySpreading",
        plain("old"),
        copies("new", {"color": "blue"}, topologySpreadConstraints=spreading("DoNotSchedule")),
        5_000,
        5_000,
        85,
        460,
    ),
    Workload(
        "PreferredTopologySpreading",
        plain("old"),
        copies("new", {"color": "blue"}, topologySpreadConstraints=spreading("ScheduleAnyway")),
        5_000,
        5_000,
        125,
        340,
    ),
    Workload("MixedSchedulingBasePod", mixed, plain("new"), 5_000, 10_000, 140, 540),
    Workload("MixedKinds", mixed, mixed_again, 2_000, 2_000, 140),
    Workload(
        "Unschedulable", plain("old"), plain("new"), 10_000, 0, 200, 590, meanwhile="hopeless"
    ),
    Workload("PreemptionBasic", low_priority, high_priority, 500, 2_000, 18),
    Workload(
        "SchedulingWithMixedChurn",
        plain("old"),
        plain("new"),
        10_000,
        0,
        265,
        710,
        meanwhile="churn",
    ),
)
# Those the suite through a server runs: what the targets name.
THROUGH_A_SERVER = tuple(
    workload
    for workload in WORKLOADS
    if workload.name not in ("PreferredTopologySpreading", "MixedKinds")
)


def chosen(workloads: tuple[Workload, ...], only: str) -> list[Workload]:
    """Return the workloads whose name contains *only*."""
    return [workload for workload in workloads if only.lower() in workload.name.lower()]
