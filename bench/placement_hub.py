"""Placement over the wire: how soon slices are complete after a change.

Everything is driven by a kubeconfig with administrator's rights, so another hub with other
controllers is measured by the same code: ``python -m bench.placement_hub KUBECONFIG`` expects a
provider workspace ``root:espw`` with the export ``edge.kcp.io`` and a running scheduler.
Without argument a hub and an edge scheduler are started for the purpose.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.report import Row, table
from bench.servers import Measured, ours
from skerry.api.errors import AlreadyExists, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.app.edge_environment import ClientFlags, endpoint
from skerry.kit.ids import SystemIds
from skerry.logic.placement.slices import EDGE_PLACEMENTS, SLICES, placement_name
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from skerry.runtime.kubeconfig import connect

Object = dict[str, Any]
PROVIDER = "root:espw"
WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
BINDINGS = GroupVersionResource("apis.kcp.io", "v1alpha1", "apibindings")
LOCATIONS = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "locations")
SYNC_TARGETS = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")
_RESOURCE = {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}
_AT_ONCE = 32
_PATIENCE_SECONDS = 300.0
_SETTLING_SECONDS = 5.0


@dataclass
class Bench:
    """Two workspaces of a hub, and what is known of the slices in one of them."""

    client: Client
    inventory: str
    workload: str
    cpu_seconds: Callable[[], float]
    # Destinations in each slice, by placement and slice.
    _sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    _awaited: dict[str, tuple[int, asyncio.Future[float]]] = field(default_factory=dict)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def prepare(self) -> None:
        """Make the workspaces and bind the edge API in one of them."""
        for path in (self.inventory, self.workload):
            parent, _, name = path.rpartition(":")
            body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
            with contextlib.suppress(AlreadyExists):
                await self.client.at("", parent).create(
                    WORKSPACES, {**body, "metadata": {"name": name}, "spec": {}}
                )
        reference = {"export": {"path": PROVIDER, "name": "edge.kcp.io"}}
        body = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIBinding"}
        with contextlib.suppress(AlreadyExists):
            await self.client.at("", self.workload).create(
                BINDINGS,
                {**body, "metadata": {"name": "bind-espw"}, "spec": {"reference": reference}},
            )

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Watch the slices while inside."""
        factory = InformerFactory(self.client.at("", self.workload), ids=SystemIds())
        informer = factory.informer(SLICES)
        informer.add_handler(self._slice_changed)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(factory.run())
            await informer.wait_synced()
            yield
            task.cancel()

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old or {}
        name = placement_name(obj)
        sizes = self._sizes.setdefault(name, {})
        if new is None:
            sizes.pop(obj["metadata"]["name"], None)
        else:
            sizes[obj["metadata"]["name"]] = len(new.get("destinations") or ())
        wanted, done = self._awaited.get(name, (-1, None))
        if done is not None and not done.done() and sum(sizes.values()) == wanted:
            done.set_result(time.perf_counter())

    def complete(self, name: str, destinations: int) -> asyncio.Future[float]:
        """Return what will be the time at which a placement's slices are complete."""
        done: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited[name] = (destinations, done)
        return done

    async def site(self, number: int, group: str) -> float:
        """Make a SyncTarget and its Location; returns when the Location was asked for."""
        name = f"site-{number}"
        metadata = {"name": name, "labels": {"id": name, "group": group, "env": "prod"}}
        client = self.client.at("", self.inventory)
        async with self._room:
            body = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "spec": {}}
            await client.create(SYNC_TARGETS, {**body, "metadata": metadata})
            spec = {"resource": _RESOURCE, "instanceSelector": {"matchLabels": {"id": name}}}
            body = {"apiVersion": "scheduling.kcp.io/v1alpha1", "kind": "Location", "spec": spec}
            began = time.perf_counter()
            await client.create(LOCATIONS, {**body, "metadata": metadata})
        return began

    async def place(self, name: str, labels: dict[str, str], destinations: int) -> float:
        """Create an EdgePlacement; returns the seconds until its slices are complete."""
        done = self.complete(name, destinations)
        spec = {
            "locationSelectors": [{"matchLabels": labels}],
            "namespaceSelector": {"matchLabels": {"no": "such"}},
        }
        body = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "EdgePlacement", "spec": spec}
        async with self._room:
            began = time.perf_counter()
            await self.client.at("", self.workload).create(
                EDGE_PLACEMENTS, {**body, "metadata": {"name": name}}
            )
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await done - began

    async def unplace(self, name: str) -> None:
        client = self.client.at("", self.workload)
        await client.delete(EDGE_PLACEMENTS, name)
        for piece in list(self._sizes.get(name, {})):
            with contextlib.suppress(NotFound):
                await client.delete(SLICES, piece)


async def measure(
    kubeconfig: Path,
    *,
    sites: int,
    samples: int,
    placements: int,
    cpu_seconds: Callable[[], float] = lambda: 0.0,
) -> list[Row]:
    """Measure one hub. Of the sites a hundred are in the group that many placements select.

    *cpu_seconds* tells what hub and scheduler have used, where they are ours.
    """
    found = endpoint("admin", [kubeconfig], ClientFlags())
    transport = connect(found.config)
    try:
        bench = Bench(
            Client(transport), f"root:inventory-{sites}", f"root:workload-{sites}", cpu_seconds
        )
        await bench.prepare()
        group = f"near-{sites}"
        async with asyncio.TaskGroup() as tasks:
            for number in range(sites):
                tasks.create_task(bench.site(number, group if number < 100 else "far"))
        with contextlib.suppress(NotFound):
            await bench.client.at("", bench.inventory).delete(LOCATIONS, "default")
        async with bench.following():
            return await _rows(bench, group, sites, samples, placements)
    finally:
        await transport.close()


async def _rows(bench: Bench, group: str, sites: int, samples: int, placements: int) -> list[Row]:
    await bench.place("warm", {"group": group}, 100)
    rows = [await _placing(bench, "group", group, 100, sites, samples)]
    if placements:
        rows += await _fanning_out(bench, group, sites, placements)
    if sites > 100:
        # Last: inventories of other measurements on the same hub have other labels.
        rows.append(await _placing(bench, "group", "far", sites - 100, sites, samples))
    return rows


async def _placing(
    bench: Bench, key: str, value: str, destinations: int, sites: int, samples: int
) -> Row:
    times = []
    for number in range(samples):
        name = f"p-{value}-{number}"
        times.append(await bench.place(name, {key: value}, destinations))
        await bench.unplace(name)
    times.sort()
    most = 0.05 if sites <= 100 else 0.25
    p99 = times[min(int(len(times) * 0.99), len(times) - 1)]
    return Row(
        "placement",
        f"placement created, {destinations} of {sites} locations, p99",
        p99 * 1e3,
        "ms",
        f"< {most * 1e3:g} ms",
        p99 < most,
        f"median {times[len(times) // 2] * 1e3:.1f} ms",
    )


async def _fanning_out(bench: Bench, group: str, sites: int, placements: int) -> list[Row]:
    names = [f"many-{number}" for number in range(placements)]
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(bench.place(name, {"group": group}, 100))
    made = time.perf_counter() - began
    # Statuses and the garbage collector's look at the new slices are not what is measured.
    await asyncio.sleep(_SETTLING_SECONDS)
    waiting = [bench.complete(name, 101) for name in names]
    used = bench.cpu_seconds()
    asked = await bench.site(sites, group)
    async with asyncio.timeout(_PATIENCE_SECONDS):
        spent = max([await done for done in waiting]) - asked
    used = bench.cpu_seconds() - used
    return [
        Row("placement", f"{placements} placements of 100 destinations made", made, "s"),
        Row(
            "placement",
            f"new Location in {placements} slices of 100 destinations",
            spent,
            "s",
            "< 2 s",
            spent < 2,
            f"{used:.2f} s of processor time in hub and scheduler" if used else "",
        ),
    ]


@contextlib.contextmanager
def scheduling(hub: Measured) -> Iterator[Measured]:
    """Run an edge scheduler of ours against *hub*."""
    flags = ["--only", "edge-scheduler", "--espw-path", PROVIDER, "-v", "1"]
    command = [sys.executable, "-m", "skerry.cli", "controllers", *flags]
    process = subprocess.Popen([*command, "--kubeconfig", str(hub.kubeconfig)], text=True)
    try:
        yield Measured(hub.server, hub.kubeconfig, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def run(peer: Path | None = None) -> list[Row]:
    """Measure *peer*, or a hub and a scheduler of our own."""
    if peer is not None:
        return _measured(peer, lambda: 0.0)
    with ours("hub", ["--init"]) as hub, scheduling(hub) as scheduler:
        rows = _measured(hub.kubeconfig, lambda: hub.cpu_seconds() + scheduler.cpu_seconds())
        rows.append(Row("placement", "hub, resident", hub.resident_mb(), "MB"))
        rows.append(Row("placement", "scheduler, resident", scheduler.resident_mb(), "MB"))
        return rows


def _measured(kubeconfig: Path, cpu_seconds: Callable[[], float]) -> list[Row]:
    few = measure(kubeconfig, sites=100, samples=60, placements=1000, cpu_seconds=cpu_seconds)
    many = measure(kubeconfig, sites=10_000, samples=20, placements=0)
    return [*asyncio.run(few), *asyncio.run(many)]


if __name__ == "__main__":
    print(table(run(Path(sys.argv[1]) if len(sys.argv) > 1 else None)))
