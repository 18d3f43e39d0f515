"""How fast pods are scheduled end to end: a real API server, a real scheduler, pods created by us.

Three processes share the machine: server, scheduler, and this one, which creates the pods and
watches them being bound. The figure is scheduler_perf's: the mean of one-second samples of bound
pods, from the first bound pod on. Processor time per pod is told beside it, for on a busy machine
only that is stable. ``python -m bench.scheduler_wire --kubeconfig F`` measures another server.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench import load
from bench.load import Server
from bench.report import Row, table
from bench.scheduler import HOST, WORKLOADS, ZONE, Workload
from bench.servers import Measured, from_kubeconfig, ours

_SUITE = "scheduler-wire"
_NAMESPACE = "bench"
_PODS = f"/api/v1/namespaces/{_NAMESPACE}/pods"
# Every pod must be bound within this time, or the run has failed.
_PATIENCE_SECONDS = 300.0
_BOUND = b'"nodeName":"'
_NAMES = (
    "SchedulingBasic",
    "SchedulingNodeAffinity",
    "SchedulingPodAntiAffinity",
    "TopologySpreading",
    "MixedSchedulingBasePod",
)
# Pods per second to reach: five times kube-scheduler's on two cores, or the newest published
# threshold where that is more.
_TARGETS = {
    ("SchedulingBasic", 500): 1610,
    ("SchedulingBasic", 5000): 1200,
    ("SchedulingNodeAffinity", 5000): 1220,
    ("SchedulingPodAntiAffinity", 5000): 420,
    ("TopologySpreading", 5000): 460,
    ("MixedSchedulingBasePod", 5000): 540,
}
_TICKS = os.sysconf("SC_CLK_TCK")


class Progress:
    """How many of the measured pods are bound, and when; *before* others come first."""

    def __init__(self, before: int, wanted: int) -> None:
        self._wanted = wanted
        self.bound = -before
        self.samples: list[float] = []
        self.caught_up, self.done = asyncio.Event(), asyncio.Event()
        self.add(0)

    def add(self, count: int) -> None:
        self.bound += count
        if self.bound >= 0:
            self.caught_up.set()
        if self.bound >= self._wanted:
            self.done.set()

    async def sample(self) -> None:
        """Take a sample every second once something is bound."""
        while not self.bound:
            await asyncio.sleep(0.01)
        last, moment = self.bound, time.perf_counter()
        while True:
            await asyncio.sleep(1.0)
            now = time.perf_counter()
            self.samples.append((self.bound - last) / (now - moment))
            last, moment = self.bound, now


@dataclass(frozen=True, slots=True)
class Outcome:
    """One measured workload."""

    per_second: float
    seconds: float
    pods: int
    server_cpu: float
    scheduler_cpu: float

    def note(self) -> str:
        each = 1e6 / self.pods
        return (
            f"{self.pods} pods in {self.seconds:.1f} s; CPU µs/pod: "
            f"scheduler {self.scheduler_cpu * each:.0f}, server {self.server_cpu * each:.0f}"
        )


def _node(index: int) -> bytes:
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return orjson.dumps(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{index}",
                "labels": {HOST: f"node-{index}", ZONE: f"zone-{index % 3}"},
            },
            "status": {
                "capacity": capacity,
                "allocatable": capacity,
                "conditions": [{"type": "Ready", "status": "True"}],
                "phase": "Running",
            },
        }
    )


def _created(pod: dict[str, Any], node: str = "") -> bytes:
    """Return a workload's pod as a client would create it."""
    metadata = {name: value for name, value in pod["metadata"].items() if name != "uid"}
    spec = {**pod["spec"], "nodeName": node} if node else pod["spec"]
    return orjson.dumps({**pod, "metadata": metadata, "spec": spec, "status": {}})


async def _post(server: Server, path: str, bodies: Sequence[bytes], connections: int = 8) -> None:
    def make(index: int) -> bytes:
        return server.request("POST", path, bodies[index])

    outcome = await load.run(server, make, connections=connections, count=len(bodies))
    if outcome.failures:
        raise RuntimeError(f"{outcome.failures} of {len(bodies)} creations at {path} failed")


async def _prepare(server: Server, workload: Workload, nodes: int) -> int:
    """Create the nodes and the pods that are there before; returns how many pods."""
    await _post(server, "/api/v1/namespaces", [_named(_NAMESPACE)], 1)
    accounts = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts"
    with contextlib.suppress(RuntimeError):  # somebody else's controllers make it too
        await _post(server, accounts, [_named("default")], 1)
    await _post(server, "/api/v1/nodes", [_node(index) for index in range(nodes)])
    before = workload.before if nodes >= 5000 else min(workload.before, nodes * 4)
    if workload.name == "SchedulingPodAntiAffinity":
        before = nodes // 5
    pods = [
        _created(pod, f"node-{index % nodes}")
        for index, pod in enumerate(workload.existing(before))
    ]
    await _post(server, _PODS, pods)
    return before


def _named(name: str) -> bytes:
    return orjson.dumps({"metadata": {"name": name}})


@contextlib.contextmanager
def _scheduler(kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    arguments = ["scheduler", "--kubeconfig", str(kubeconfig), "--leader-elect=false"]
    process = subprocess.Popen(
        [sys.executable, "-m", "skerry.cli", *arguments, "--secure-port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if " ready for " not in line:
            raise RuntimeError(f"skerry scheduler did not start: {line!r}")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@contextlib.asynccontextmanager
async def _watching(server: Server, progress: Progress) -> AsyncIterator[None]:
    """Count bound pods, those that are there first and then as they come."""
    reader, writer = await asyncio.open_connection(
        server.host, server.port, ssl=server.tls, limit=1 << 22
    )
    writer.write(server.request("GET", f"{_PODS}?watch=1&fieldSelector=spec.nodeName%21%3D"))
    await reader.readuntil(b"\r\n\r\n")

    async def follow() -> None:
        tail = b""
        while data := await reader.read(1 << 18):
            data = tail + data
            progress.add(data.count(_BOUND))
            # A mark cut in two is seen with the next piece, a whole one only once.
            tail = data[1 - len(_BOUND) :]

    following = asyncio.get_running_loop().create_task(follow())
    try:
        yield
    finally:
        following.cancel()
        writer.close()


async def _measured(target: Measured, workload: Workload, nodes: int) -> Outcome:
    server = target.server
    before = await _prepare(server, workload, nodes)
    count = workload.pods if nodes >= 5000 else workload.pods // 2
    if workload.name == "SchedulingPodAntiAffinity":
        count = min(count, nodes // 2)
    bodies = [_created(pod) for pod in workload.measured(count)]
    with _scheduler(target.kubeconfig) as scheduler:
        progress = Progress(before, count)
        async with _watching(server, progress):
            await progress.caught_up.wait()
            begun = target.cpu_seconds(), _cpu_seconds(scheduler)
            began = time.perf_counter()
            sampling = asyncio.get_running_loop().create_task(progress.sample())
            await _post(server, _PODS, bodies, connections=16)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await progress.done.wait()
            seconds = time.perf_counter() - began
            sampling.cancel()
        used = target.cpu_seconds() - begun[0], _cpu_seconds(scheduler) - begun[1]
    samples = progress.samples
    mean = statistics.fmean(samples) if len(samples) > 1 else count / seconds
    return Outcome(mean, seconds, count, *used)


def _row(workload: Workload, nodes: int, outcome: Outcome) -> Row:
    target = _TARGETS.get((workload.name, nodes), 0)
    return Row(
        _SUITE,
        f"{workload.name}, {nodes} nodes",
        round(outcome.per_second, 1),
        "pods/s",
        f"≥ {target}" if target else "",
        outcome.per_second >= target if target else None,
        outcome.note(),
    )


def run(
    only: str = "", sizes: Sequence[int] = (500, 5000), kubeconfig: Path | None = None
) -> list[Row]:
    """Run the workloads whose name contains *only*, each on a server of its own."""
    rows: list[Row] = []
    for workload in WORKLOADS:
        if workload.name not in _NAMES or only.lower() not in workload.name.lower():
            continue
        for nodes in sizes:
            with _server(kubeconfig) as target:
                rows.append(_row(workload, nodes, asyncio.run(_measured(target, workload, nodes))))
    return rows


@contextlib.contextmanager
def _server(kubeconfig: Path | None) -> Iterator[Measured]:
    if kubeconfig is not None:
        yield Measured(from_kubeconfig(kubeconfig), kubeconfig)
        return
    with ours("serve", ["--no-controllers"]) as measured:
        yield measured


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a workload's name")
    parser.add_argument("--nodes", type=int, nargs="*", default=[500, 5000])
    parser.add_argument("--kubeconfig", type=Path, help="another server, with nothing in it")
    options = parser.parse_args()
    print(table(run(options.only, options.nodes, options.kubeconfig)))


if __name__ == "__main__":
    main()
