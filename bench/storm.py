"""Ten thousand edges: what connected syncers cost, and what happens when the hub comes back.

Hub and controllers are processes of their own, and so are the syncers: some hundreds to a process,
each with its own connection, the watches of the real one in the way it holds them, and a Lease that
it renews every thirty seconds. They apply nothing anywhere. When all follow their mailboxes the hub
is left alone for a while, to see what heartbeats cost. Then it is killed and started again on the
same port, and it is measured how long it takes until it has as many watches open as before, how
many heartbeats were refused, and how long others wait for a GET meanwhile.

``SKERRY_BENCH_EDGES`` says how many; ``SKERRY_BENCH_OBJECTS`` how many objects each has. To make
10,000 edges takes longer than to measure them, so what was made in ``SKERRY_BENCH_FOLDER`` stays
there, and the next run with that folder begins with it; it may connect fewer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.edge_hub import (
    COMPUTE,
    CONFIG_MAPS,
    EDGE,
    NAMESPACES,
    bind,
    body,
    connected,
    controlling,
    for_each,
    mailbox_clusters,
    make_edges,
    make_workspace,
)
from bench.load import ask
from bench.report import Row, table
from bench.servers import Measured, from_kubeconfig
from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.runtime.client import Client

_SUITE = "storm"
EDGES = int(os.environ.get("SKERRY_BENCH_EDGES", "1000"))
OBJECTS = int(os.environ.get("SKERRY_BENCH_OBJECTS", "20"))
_FOLDER = os.environ.get("SKERRY_BENCH_FOLDER", "")
_WANTED_EDGES = 10_000
_PER_PROCESS = 500
HEARTBEAT_SECONDS = float(os.environ.get("SKERRY_BENCH_HEARTBEAT_SECONDS", "30"))
_IDLE_SECONDS = float(os.environ.get("SKERRY_BENCH_IDLE_SECONDS", "60"))
_PATIENCE_SECONDS = 1800.0
_WATCHES = "apiserver_registered_watchers "
_DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
_INVENTORY, _WORKLOAD = "root:storm-inventory", "root:storm-workload"


# -- the syncers ---------------------------------------------------------------------------------


class SyncerProcess:
    """A process of syncers, and what it said last."""

    def __init__(self, kubeconfig: Path, clusters: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.storm_syncers", str(kubeconfig), f"{HEARTBEAT_SECONDS}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(clusters) + "\n")
        self._process.stdin.close()
        self._lines = self._process.stdout
        self.following, self.refused = 0, 0

    async def listen(self) -> None:
        """Take note of what it says until it ends."""
        while line := await asyncio.to_thread(self._lines.readline):
            self.following, self.refused = json.loads(line)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._lines.close()


# -- the hub, killed and started again ---------------------------------------------------------


class Hub:
    """A hub on one port and one folder."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "data"
        self.is_new = not self._data.exists()
        self._port = "0"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Measured:
        """Start it; returns when it is ready."""
        began = time.perf_counter()
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", "skerry.cli", "hub", "--init", "-v", "0",
             "--data-dir", str(self._data), "--port", self._port],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()
        if " ready at " not in line:
            raise RuntimeError(f"skerry hub did not start: {line!r}")
        kubeconfig = self._data / "admin.kubeconfig"
        server = from_kubeconfig(kubeconfig)
        self._port = str(server.port)
        return Measured(server, kubeconfig, process, time.perf_counter() - began)

    def end(self, how: signal.Signals) -> None:
        """End it, politely or not."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)


async def _furnish(client: Client) -> None:
    for path in (_INVENTORY, _WORKLOAD):
        await make_workspace(client, "root", path.rpartition(":")[2])
    await bind(client, _WORKLOAD, "edge.kcp.io")
    await bind(client, _WORKLOAD, "kubernetes", COMPUTE)
    inventory, workload = client.at("", _INVENTORY), client.at("", _WORKLOAD)

    await make_edges(inventory, EDGES)
    metadata = {"labels": {"go": "yes"}}
    await workload.create(NAMESPACES, body("v1", "Namespace", "shop", metadata=metadata))
    for number in range(OBJECTS - 1):
        made = body("v1", "ConfigMap", f"map-{number}", data={"text": "x" * 1000})
        await workload.create(CONFIG_MAPS, made, "shop")
    await workload.create(_DEPLOYMENTS, _deployment(), "shop")
    spec = {
        "locationSelectors": [{"matchLabels": {"env": "prod"}}],
        "namespaceSelector": {"matchLabels": {"go": "yes"}},
    }
    await workload.create(EDGE_PLACEMENTS, body(EDGE, "EdgePlacement", "all", spec=spec))


def _deployment() -> Object:
    labels = {"app": "web"}
    container = {"name": "c", "image": "registry.example/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return body("apps/v1", "Deployment", "web", spec=spec)


async def _mailboxes(client: Client) -> list[str]:
    """Return as many mailboxes as there are syncers, once each has its objects."""
    clusters = (await mailbox_clusters(client, EDGES))[:EDGES]

    async def filled(number: int) -> None:
        mailbox = client.at("", clusters[number])
        # The workspace has one ConfigMap of its own in each of its two namespaces.
        while len((await mailbox.list(CONFIG_MAPS)).items) < OBJECTS:
            await asyncio.sleep(0.5)

    await for_each(len(clusters), filled)
    return clusters


async def _all_follow(processes: list[SyncerProcess]) -> float:
    """Wait until every syncer follows its mailbox; return how many seconds that took."""
    began = time.perf_counter()
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while sum(each.following for each in processes) < EDGES:
            await asyncio.sleep(0.1)
    return time.perf_counter() - began


async def _watches(hub: Measured) -> int:
    """Return how many watches the hub has open."""
    whole = replace(hub.server, prefix="")
    _, text = await asyncio.to_thread(ask, whole, "GET", "/metrics")
    (line,) = (row for row in text.decode().splitlines() if row.startswith(_WATCHES))
    return int(float(line.rpartition(" ")[2]))


async def _all_watch(hub: Measured, wanted: int) -> float:
    """Wait until so many watches are open again; return how many seconds that took."""
    began = time.perf_counter()
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while await _watches(hub) < wanted:
            await asyncio.sleep(0.2)
    return time.perf_counter() - began


async def _probe(server: Measured, latencies: list[float]) -> None:
    """Ask for an object over and over, each time over a connection of its own."""
    while True:
        began = time.perf_counter()
        with contextlib.suppress(OSError):
            await asyncio.to_thread(ask, server.server, "GET", "/api/v1/namespaces/default")
            latencies.append(time.perf_counter() - began)
        await asyncio.sleep(0.05)


async def _measured(hub: Hub, measured: Measured, controllers: Measured) -> list[Row]:
    async with connected(measured.kubeconfig) as client:
        if hub.is_new:
            await _furnish(client)
        clusters = await _mailboxes(client)
    alone = measured.resident_mb(), controllers.resident_mb()
    parts = [clusters[at : at + _PER_PROCESS] for at in range(0, len(clusters), _PER_PROCESS)]
    processes = [SyncerProcess(measured.kubeconfig, part) for part in parts]
    listening = [asyncio.create_task(each.listen()) for each in processes]
    try:
        first = await _all_follow(processes)
        began = measured.cpu_seconds(), controllers.cpu_seconds()
        await asyncio.sleep(_IDLE_SECONDS)
        idle = [
            (now - then) / _IDLE_SECONDS
            for now, then in zip(
                (measured.cpu_seconds(), controllers.cpu_seconds()), began, strict=True
            )
        ]
        held = measured.resident_mb(), controllers.resident_mb()
        watches = await _watches(measured)
        refused = sum(each.refused for each in processes)
        hub.end(signal.SIGKILL)
        again = hub.start()
        latencies: list[float] = []
        probing = asyncio.create_task(_probe(again, latencies))
        used = again.cpu_seconds()
        back = await _all_watch(again, watches)
        used = again.cpu_seconds() - used
        probing.cancel()
        refused = sum(each.refused for each in processes) - refused
        return _rows(first, alone, held, idle, (back, used), refused, latencies)
    finally:
        for task in listening:
            task.cancel()
        for each in processes:
            each.stop()


def _rows(
    first: float,
    alone: tuple[float, float],
    held: tuple[float, float],
    idle: list[float],
    back: tuple[float, float],
    refused: int,
    latencies: list[float],
) -> list[Row]:
    name = f"{EDGES:,} edges x {OBJECTS} objects"
    ordered = sorted(latencies)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))] if ordered else 0.0
    shares = f"hub {held[0]:.0f}, controllers {held[1]:.0f}; without syncers {sum(alone):.0f}"
    return [
        Row(_SUITE, f"{name}: all syncers connected", first, "s"),
        Row(
            _SUITE,
            f"{name}: hub + controllers",
            sum(held),
            "MB",
            "< 2.5 GB at 10,000",
            _judged(sum(held) < 2560),
            shares,
        ),
        Row(
            _SUITE,
            f"{name}: idle, heartbeats every {HEARTBEAT_SECONDS:g} s",
            100 * sum(idle),
            "% of a core",
            "< 60 % at 10,000",
            _judged(100 * sum(idle) < 60),
            f"hub {100 * idle[0]:.1f}, controllers {100 * idle[1]:.1f}",
        ),
        Row(
            _SUITE,
            f"{name}: hub killed; all back after it is ready",
            back[0],
            "s",
            "< 60 s at 10,000",
            _judged(back[0] < 60),
            f"hub {back[1]:.1f} s of processor; {refused} heartbeats had to be sent again",
        ),
        Row(
            _SUITE,
            f"{name}: others' GET meanwhile, p99 of {len(ordered)}",
            1000 * p99,
            "ms",
            "< 200 ms at 10,000",
            _judged(p99 < 0.2),
        ),
    ]


def _judged(met: bool) -> bool | None:
    """Return the verdict; fewer edges than were asked for prove nothing."""
    return met if EDGES >= _WANTED_EDGES else None


@contextlib.contextmanager
def _hub() -> Iterator[tuple[Hub, Measured]]:
    with contextlib.ExitStack() as stack:
        folder = _FOLDER or stack.enter_context(tempfile.TemporaryDirectory(prefix="skerry-bench-"))
        hub = Hub(Path(folder))
        try:
            yield hub, hub.start()
        finally:
            hub.end(signal.SIGTERM)


def run() -> list[Row]:
    """Measure a hub and controllers of our own."""
    with _hub() as (hub, measured), controlling(measured) as controllers:
        return asyncio.run(_measured(hub, measured, controllers))


if __name__ == "__main__":
    print(table(run()))
