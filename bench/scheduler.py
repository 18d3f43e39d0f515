"""How fast the pod scheduler decides, without any server: the scheduler_perf workloads, in process.

Queue, decision, assumption, reservation and the binding cycle are the real ones; only the write of
the binding goes nowhere. Every node is scored. ``python -m bench.scheduler`` prints a table and,
with ``--json FILE``, writes the rows; ``run`` returns them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.report import Row, save, table
from skerry.kit.ids import SeededIds
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.config.load import default_configuration
from skerry.scheduler.framework.events import ASSIGNED_POD_DELETE
from skerry.scheduler.handle import NoWriter
from skerry.scheduler.outcome import Placed
from skerry.scheduler.queue import QueuedPod
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.scheduler import Parts, PodScheduler

Object = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured workload."""

    workload: str
    nodes: int
    existing: int
    pods: int
    scheduled: int
    unschedulable: int
    pods_per_second: float
    cpu_microseconds_per_pod: float
    p50_microseconds: float
    p99_microseconds: float
    # What kube-scheduler 1.32 must reach on the same workload at 5,000 nodes (500 for preemption),
    # end to end with a server; printed for orientation, not comparable one to one.
    threshold: int


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods placed beforehand, then pods measured."""

    name: str
    existing: Callable[[int], Iterator[Object]]
    measured: Callable[[int], Iterator[Object]]
    pods: int
    before: int
    threshold: int
    # Nodes at which it is run.
    sizes: tuple[int, ...] = (500, 5000)
    # Called every thousand pods: things happening meanwhile.
    churn: Callable[[PodScheduler, int], None] | None = None


def node(index: int) -> Object:
    """Return a node as scheduler_perf makes them."""
    return {
        "metadata": {
            "name": f"node-{index}",
            "labels": {HOST: f"node-{index}", ZONE: f"zone-{index % 3}"},
        },
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
    }


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
        "metadata": {"name": name, "uid": name, "namespace": "bench", "labels": labels or {}},
        "spec": {"containers": [container], **spec},
        "status": {},
    }


def plain(prefix: str) -> Callable[[int], Iterator[Object]]:
    """Return a maker of ordinary pods."""
    return lambda count: (pod(f"{prefix}-{index}") for index in range(count))


def copies(prefix: str, labels: Object, **spec: Any) -> Callable[[int], Iterator[Object]]:
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


def hopeless_among(count: int) -> Iterator[Object]:
    """Yield ordinary pods, every fiftieth too large for any node."""
    for index in range(count):
        yield pod(f"some-{index}", cpu="9" if index % 50 == 0 else "100m")


def low_priority(count: int) -> Iterator[Object]:
    """Yield pods that fill nodes and may be evicted."""
    for index in range(count):
        yield pod(f"low-{index}", cpu="900m")


def high_priority(count: int) -> Iterator[Object]:
    """Yield pods that fit only where others make room."""
    for index in range(count):
        yield pod(f"high-{index}", cpu="3000m", priority=10)


def churn(scheduler: PodScheduler, step: int) -> None:
    """A node appears, another goes, a pod is deleted."""
    cluster = scheduler.cluster
    cluster.set_node(node(100_000 + step))
    if step:
        cluster.remove_node(f"node-{100_000 + step - 1}")
    gone = cluster.remove_pod(f"churned-{step}")
    if gone is not None:
        scheduler.queue.move(ASSIGNED_POD_DELETE, gone, None)


WORKLOADS = (
    Workload("SchedulingBasic", plain("old"), plain("new"), 10_000, 1_000, 270),
    Workload(
        "SchedulingNodeAffinity",
        plain("old"),
        copies("new", {}, affinity=NODE_AFFINITY),
        10_000,
        5_000,
        220,
    ),
    Workload(
        "SchedulingPodAntiAffinity",
        copies("old", _COLOR, affinity=ANTI_AFFINITY),
        copies("new", _COLOR, affinity=ANTI_AFFINITY),
        2_000,
        1_000,
        70,
    ),
    Workload(
        "TopologySpreading",
        plain("old"),
        copies("new", {"color": "blue"}, topologySpreadConstraints=spreading("DoNotSchedule")),
        5_000,
        5_000,
        85,
    ),
    Workload(
        "PreferredTopologySpreading",
        plain("old"),
        copies("new", {"color": "blue"}, topologySpreadConstraints=spreading("ScheduleAnyway")),
        5_000,
        5_000,
        125,
    ),
    Workload("MixedSchedulingBasePod", mixed, plain("new"), 5_000, 10_000, 140),
    Workload("MixedKinds", mixed, mixed_again, 2_000, 2_000, 140),
    Workload("Unschedulable", plain("old"), hopeless_among, 10_000, 1_000, 200),
    Workload("PreemptionBasic", low_priority, high_priority, 500, 2_000, 18, (500,)),
    Workload(
        "SchedulingWithMixedChurn", plain("churned"), plain("new"), 10_000, 1_000, 265, churn=churn
    ),
)


class BenchClock:
    """Real time, plus whatever waiting for back-offs would have taken."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.perf_counter() + self.skipped

    async def sleep(self, seconds: float) -> None:
        self.skipped += seconds


class LocalWriter(NoWriter):
    """A server that agrees at once: a deleted pod is gone from the cluster."""

    scheduler: PodScheduler

    async def delete_pod(self, pod: PodInfo) -> None:
        gone = self.scheduler.cluster.remove_pod(pod.uid)
        if gone is not None:
            self.scheduler.queue.move(ASSIGNED_POD_DELETE, gone, None)


def prepared(workload: Workload, nodes: int) -> PodScheduler:
    """Return a scheduler over a cluster with the workload's existing pods spread out."""
    writer = LocalWriter()
    parts = Parts(writer=writer, ids=SeededIds(1), clock=BenchClock())
    scheduler = PodScheduler(default_configuration(), in_tree_registry(), parts)
    writer.scheduler = scheduler
    cluster = scheduler.cluster
    cluster.set_namespace("bench", {})
    for index in range(nodes):
        cluster.set_node(node(index))
    limit = min(workload.before, nodes * 4) if nodes < 5000 else workload.before
    if workload.name == "SchedulingPodAntiAffinity":
        limit = nodes // 5
    for index, item in enumerate(workload.existing(limit)):
        item["spec"]["nodeName"] = f"node-{index % nodes}"
        cluster.set_pod(cluster.reader.read(item))
    return scheduler


def next_pod(scheduler: PodScheduler, times: list[float]) -> QueuedPod | None:
    """Pop a pod, skipping back-offs of pods that were promised room; None when all is done."""
    queued = scheduler.queue.pop()
    expiry = scheduler.queue.next_expiry()
    if queued is None and expiry is not None and len(times) < _MOST_ATTEMPTS:
        clock: Any = scheduler.clock
        clock.skipped += max(expiry - clock.monotonic(), 0.0) + 1e-6
        scheduler.queue.flush()
        queued = scheduler.queue.pop()
    return queued


# A workload that retries for ever must still end.
_MOST_ATTEMPTS = 50_000


async def measured(workload: Workload, nodes: int) -> Measured:
    """Run one workload at one size."""
    scheduler = prepared(workload, nodes)
    count = workload.pods if nodes >= 5000 or workload.sizes == (500,) else workload.pods // 5
    if workload.name == "SchedulingPodAntiAffinity":
        count = min(count, nodes // 2)
    for item in workload.measured(count):
        scheduler.queue.add(scheduler.cluster.reader.read(item))
    existing = len(scheduler.cluster.pods())
    scheduled = refused = 0
    times: list[float] = []
    gc.collect()
    gc.freeze()
    began, cpu = time.perf_counter(), time.process_time()
    while (queued := next_pod(scheduler, times)) is not None:
        if workload.churn is not None and len(times) % 1000 == 0:
            workload.churn(scheduler, len(times) // 1000)
        start = time.perf_counter()
        outcome = scheduler.attempt(queued)
        if isinstance(outcome, Placed):
            await scheduler.bind(outcome)
            scheduled += 1
        elif outcome is not None:
            await scheduler.refuse(outcome)
            refused += 1
        times.append(time.perf_counter() - start)
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    gc.unfreeze()
    times.sort()
    attempts = len(times)
    return Measured(
        workload.name,
        nodes,
        existing,
        attempts,
        scheduled,
        refused,
        # Placements where there are any: retries are work, not throughput.
        round((scheduled or attempts) / wall, 1),
        round(used / attempts * 1e6, 1),
        round(times[attempts // 2] * 1e6, 1),
        round(times[attempts * 99 // 100] * 1e6, 1),
        workload.threshold,
    )


def memory(nodes: int = 5000, pods: int = 30_000) -> float:
    """Return the mebibytes a cluster of this size costs."""
    tracemalloc.start()
    scheduler = prepared(Workload("Memory", plain("old"), plain("new"), 0, pods, 0), nodes)
    for item in plain("new")(100):
        scheduler.queue.add(scheduler.cluster.reader.read(item))
    while (queued := scheduler.queue.pop()) is not None:
        scheduler.attempt(queued)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / 2**20


# Decisions per second to reach with 5,000 nodes, all of them scored.
_TARGETS = {
    "SchedulingBasic": 10_000,
    "SchedulingPodAntiAffinity": 5_000,
    "TopologySpreading": 5_000,
}
# Mebibytes at 5,000 nodes and 30,000 pods.
_MEMORY_TARGET = 300


def run(only: str = "", sizes: tuple[int, ...] = (500, 5000)) -> list[Row]:
    """Run the workloads whose name contains *only*; memory too when all are run."""
    rows = [
        _row(asyncio.run(measured(workload, nodes)))
        for workload in WORKLOADS
        if only.lower() in workload.name.lower()
        for nodes in workload.sizes
        if nodes in sizes
    ]
    return rows if only else [*rows, _memory_row()]


def _row(found: Measured) -> Row:
    target = _TARGETS.get(found.workload, 0) if found.nodes == 5000 else 0
    return Row(
        "scheduler",
        f"{found.workload}, {found.nodes} nodes",
        found.pods_per_second,
        "pods/s",
        f"≥ {target:,}" if target else "",
        found.pods_per_second >= target if target else None,
        f"{found.scheduled} of {found.pods} placed beside {found.existing}; CPU "
        f"{found.cpu_microseconds_per_pod:.0f} µs/pod, p50 {found.p50_microseconds:.0f}, "
        f"p99 {found.p99_microseconds:.0f}; kube-scheduler with server {found.threshold}",
    )


def _memory_row() -> Row:
    used = memory()
    return Row(
        "scheduler",
        "memory, 5000 nodes, 30000 pods",
        round(used, 1),
        "MiB",
        f"< {_MEMORY_TARGET}",
        used < _MEMORY_TARGET,
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a workload's name")
    parser.add_argument("--nodes", type=int, nargs="*", default=[500, 5000])
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--memory", action="store_true", help="measure memory instead")
    options = parser.parse_args()
    if options.memory:
        print(f"5000 nodes, 30000 pods: {memory():.0f} MiB")
        return
    rows = run(options.only, tuple(options.nodes))
    print(table(rows))
    if options.json:
        save(rows, options.json)


if __name__ == "__main__":
    main()
