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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.report import Row, save, table
from bench.scheduler_workloads import (
    LARGE,
    NAMESPACE,
    WORKLOADS,
    Workload,
    chosen,
    hopeless,
    important,
    node,
    nodes,
    plain,
)
from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.config.load import default_configuration
from skerry.scheduler.framework.events import ASSIGNED_POD_DELETE, NODE_ADD
from skerry.scheduler.framework.handle import NoWriter
from skerry.scheduler.outcome import Placed
from skerry.scheduler.queue import QueuedPod
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.scheduler import Parts, PodScheduler


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


def arrive(scheduler: PodScheduler, item: Object) -> None:
    """Have a pod without node arrive as the server's event would."""
    pod = scheduler.cluster.reader.read(item)
    scheduler.unscheduled[pod.uid] = pod
    scheduler.queue.add(pod)


def another_hopeless_pod(scheduler: PodScheduler, step: int) -> None:
    """One more pod that fits nowhere."""
    arrive(scheduler, hopeless(f"hopeless-{step}"))


def churn(scheduler: PodScheduler, step: int) -> None:
    """A node comes and an important pod that fits nowhere; those of the last time go."""
    cluster, queue = scheduler.cluster, scheduler.queue
    if step:
        cluster.remove_node(f"churn-{step - 1}")
        queue.delete(f"churn-{step - 1}")
        scheduler.unscheduled.pop(f"churn-{step - 1}", None)
    cluster.set_node(node(f"churn-{step}"))
    queue.move(NODE_ADD, None, cluster.table.get(f"churn-{step}"))
    arrive(scheduler, important(f"churn-{step}", cpu="9"))


# What happens meanwhile, and after how many attempts it happens again. scheduler_perf does it by
# the clock, every 200 ms and every second; here more often than that at any speed it reaches.
_MEANWHILE: dict[str, tuple[int, Callable[[PodScheduler, int], None]]] = {
    "hopeless": (50, another_hopeless_pod),
    "churn": (250, churn),
}


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


def prepared(workload: Workload, size: int) -> PodScheduler:
    """Return a scheduler over a cluster with the workload's existing pods spread out."""
    writer = LocalWriter()
    parts = Parts(writer=writer, ids=SeededIds(1), clock=BenchClock())
    scheduler = PodScheduler(default_configuration(), in_tree_registry(), parts)
    writer.scheduler = scheduler
    cluster = scheduler.cluster
    cluster.set_namespace(NAMESPACE, {})
    for item in nodes(size):
        cluster.set_node(item)
    before, _ = workload.counts(size)
    for index, item in enumerate(workload.existing(before)):
        item["spec"]["nodeName"] = f"node-{index % size}"
        cluster.set_pod(cluster.reader.read(item))
    return scheduler


def next_pod(scheduler: PodScheduler, times: list[float]) -> QueuedPod | None:
    """Pop a pod, skipping back-offs of pods that were promised room; None when all is done."""
    queued = scheduler.queue.pop()
    expiry = scheduler.queue.next_expiry()
    if queued is None and expiry is not None and len(times) < _MAX_ATTEMPTS:
        clock: Any = scheduler.clock
        clock.skipped += max(expiry - clock.monotonic(), 0.0) + 1e-6
        scheduler.queue.flush()
        queued = scheduler.queue.pop()
    return queued


# A workload that retries for ever must still end.
_MAX_ATTEMPTS = 50_000


async def measured(workload: Workload, size: int) -> Measured:
    """Run one workload at one size."""
    scheduler = prepared(workload, size)
    _, count = workload.counts(size)
    every, happen = _MEANWHILE.get(workload.meanwhile, (0, churn))
    for item in workload.measured(count):
        arrive(scheduler, item)
    existing = len(scheduler.cluster.pods())
    scheduled = refused = 0
    times: list[float] = []
    gc.collect()
    gc.freeze()
    began, cpu = time.perf_counter(), time.process_time()
    while (queued := next_pod(scheduler, times)) is not None:
        if every and len(times) % every == 0 and len(times) < count:
            happen(scheduler, len(times) // every)
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
        size,
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


def memory(size: int = LARGE, pods: int = 30_000) -> float:
    """Return the mebibytes a cluster of this size costs."""
    tracemalloc.start()
    scheduler = prepared(Workload("Memory", plain("old"), plain("new"), 0, pods, 0), size)
    for item in plain("new")(100):
        arrive(scheduler, item)
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
# Sizes between which a decision must grow by less than they do.
_GROWTH = (500, 20_000)


def run(only: str = "", sizes: tuple[int, ...] = (500, LARGE)) -> list[Row]:
    """Run the workloads whose name contains *only*; memory and growth too when all are run."""
    rows = [
        _row(asyncio.run(measured(workload, size)))
        for workload in chosen(WORKLOADS, only)
        for size in workload.sizes
        if size in sizes
    ]
    return rows if only else [*rows, growth(), _memory_row()]


def _row(found: Measured) -> Row:
    target = _TARGETS.get(found.workload, 0) if found.nodes == LARGE else 0
    return Row(
        "scheduler",
        f"{found.workload}, {found.nodes} nodes",
        found.pods_per_second,
        "pods/s",
        f"≥ {target:,}" if target else "",
        found.pods_per_second >= target if target else None,
        f"{found.scheduled} placed in {found.pods} attempts beside {found.existing}; CPU "
        f"{found.cpu_microseconds_per_pod:.0f} µs/attempt, p50 {found.p50_microseconds:.0f}, "
        f"p99 {found.p99_microseconds:.0f}; kube-scheduler with server {found.threshold}",
    )


def growth() -> Row:
    """Tell how much more a decision costs with many more nodes, few of which change."""
    workload = Workload("Growth", plain("old"), plain("new"), 4_000, 0, 0)
    small, large = (
        asyncio.run(measured(workload, size)).cpu_microseconds_per_pod for size in _GROWTH
    )
    times = _GROWTH[1] / _GROWTH[0]
    return Row(
        "scheduler",
        f"CPU of a decision, {_GROWTH[1]} nodes over {_GROWTH[0]}",
        round(large / small, 2),
        "times",
        f"< {times:.0f}",
        large / small < times,
        f"{small:.0f} and {large:.0f} µs",
    )


def _memory_row() -> Row:
    used = memory()
    return Row(
        "scheduler",
        "memory of the cache, 5000 nodes, 30000 pods",
        round(used, 1),
        "MiB",
        f"< {_MEMORY_TARGET}",
        used < _MEMORY_TARGET,
        "allocated by Python and NumPy; the whole process is measured by scheduler_wire",
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a workload's name")
    parser.add_argument("--nodes", type=int, nargs="*", default=[500, LARGE])
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
