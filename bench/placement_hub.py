"""Placement over the wire: how soon slices are complete after a change.

Everything is driven by a kubeconfig with administrator's rights, so another hub with other
controllers is measured by the same code: ``python -m bench.placement_hub KUBECONFIG`` expects a
provider workspace ``root:espw`` with the export ``edge.kcp.io`` and a running scheduler.
Without argument a hub and an edge scheduler are started for the purpose.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.edge_hub import (
    EDGE,
    PATIENCE_SECONDS,
    Shares,
    bind,
    body,
    connected,
    controlling,
    for_each,
    location,
    make_workspace,
    sync_target,
)
from bench.report import Row, table
from bench.servers import ours
from skerry.api.edge import EDGE_PLACEMENTS, SINGLE_PLACEMENT_SLICES, placement_of_slice
from skerry.api.errors import NotFound
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.objects import Object
from skerry.kit.ids import SystemIds
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory

_AT_ONCE = 32
_FEW_SITES = 100
_SETTLING_SECONDS = 5.0


@dataclass
class Bench:
    """Two workspaces of a hub, and what is known of the slices in one of them."""

    client: Client
    inventory: str
    workload: str
    shares: Shares
    # Destinations in each slice, by placement and slice.
    _sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    _awaited: dict[str, tuple[int, asyncio.Future[float]]] = field(default_factory=dict)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def prepare(self) -> None:
        """Make the workspaces and bind the edge API in one of them."""
        for path in (self.inventory, self.workload):
            parent, _, name = path.rpartition(":")
            await make_workspace(self.client, parent, name)
        await bind(self.client, self.workload, "edge.kcp.io")

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Watch the slices while inside."""
        factory = InformerFactory(self.client.at("", self.workload), ids=SystemIds())
        informer = factory.informer(SINGLE_PLACEMENT_SLICES)
        informer.add_handler(self._slice_changed)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(factory.run())
            await informer.wait_synced()
            yield
            task.cancel()

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old or {}
        name = placement_of_slice(obj)
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
        labels = {"id": name, "group": group, "env": "prod"}
        client = self.client.at("", self.inventory)
        await client.create(SYNC_TARGETS, sync_target(name, labels))
        began = time.perf_counter()
        await client.create(LOCATIONS, location(name, labels, {"id": name}))
        return began

    async def place(self, name: str, labels: dict[str, str], destinations: int) -> float:
        """Create an EdgePlacement; returns the seconds until its slices are complete."""
        done = self.complete(name, destinations)
        spec = {
            "locationSelectors": [{"matchLabels": labels}],
            "namespaceSelector": {"matchLabels": {"no": "such"}},
        }
        placement = body(EDGE, "EdgePlacement", name, spec=spec)
        async with self._room:
            began = time.perf_counter()
            await self.client.at("", self.workload).create(EDGE_PLACEMENTS, placement)
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await done - began

    async def unplace(self, name: str) -> None:
        client = self.client.at("", self.workload)
        await client.delete(EDGE_PLACEMENTS, name)
        for piece in list(self._sizes.get(name, {})):
            with contextlib.suppress(NotFound):
                await client.delete(SINGLE_PLACEMENT_SLICES, piece)


async def measure(
    kubeconfig: Path, shares: Shares, *, sites: int, samples: int, placements: int
) -> list[Row]:
    """Measure one hub. Of the sites a hundred are in the group that many placements select."""
    async with connected(kubeconfig) as client:
        bench = Bench(client, f"root:inventory-{sites}", f"root:workload-{sites}", shares)
        await bench.prepare()
        group = f"near-{sites}"

        async def site(number: int) -> None:
            await bench.site(number, group if number < 100 else "far")

        await for_each(sites, site, _AT_ONCE)
        with contextlib.suppress(NotFound):
            await client.at("", bench.inventory).delete(LOCATIONS, "default")
        async with bench.following():
            return await _rows(bench, group, sites, samples, placements)


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
    bench.shares.begin()
    for number in range(samples):
        name = f"p-{value}-{number}"
        times.append(await bench.place(name, {key: value}, destinations))
        await bench.unplace(name)
    summary = bench.shares.summary()
    times.sort()
    limit = 0.05 if sites <= 100 else 0.25
    p99 = times[min(int(len(times) * 0.99), len(times) - 1)]
    return Row(
        "placement",
        f"placement created, {destinations} of {sites} locations, p99",
        p99 * 1e3,
        "ms",
        f"< {limit * 1e3:g} ms",
        p99 < limit,
        f"median {times[len(times) // 2] * 1e3:.1f} ms; all {samples}: {summary}",
    )


async def _fanning_out(bench: Bench, group: str, sites: int, placements: int) -> list[Row]:
    names = [f"many-{number}" for number in range(placements)]
    began = time.perf_counter()
    bench.shares.begin()
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(bench.place(name, {"group": group}, 100))
    made, making = time.perf_counter() - began, bench.shares.summary()
    # Statuses and the garbage collector's look at the new slices are not what is measured.
    await asyncio.sleep(_SETTLING_SECONDS)
    waiting = [bench.complete(name, 101) for name in names]
    bench.shares.begin()
    asked = await bench.site(sites, group)
    async with asyncio.timeout(PATIENCE_SECONDS):
        spent = max([await done for done in waiting]) - asked
    summary = bench.shares.summary()
    return [
        Row(
            "placement",
            f"{placements} placements of 100 destinations made",
            made,
            "s",
            note=making,
        ),
        Row(
            "placement",
            f"new Location in {placements} slices of 100 destinations",
            spent,
            "s",
            "< 2 s",
            spent < 2,
            summary,
        ),
    ]


async def _versions(kubeconfig: Path) -> dict[str, str]:
    """Return which state each slice is in."""
    async with connected(kubeconfig) as client:
        found = await client.at("", f"root:workload-{_FEW_SITES}").list(SINGLE_PLACEMENT_SLICES)
        return {
            each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in found.items
        }


async def _restarted(kubeconfig: Path, began: float, before: dict[str, str]) -> list[Row]:
    """Measure how soon a scheduler that has just been started acts on news, and what it writes."""
    async with connected(kubeconfig) as client:
        workload = f"root:workload-{_FEW_SITES}"
        bench = Bench(client, f"root:inventory-{_FEW_SITES}", workload, Shares())
        async with bench.following():
            await bench.place("after-restart", {"group": f"near-{_FEW_SITES}"}, 101)
        spent = time.perf_counter() - began
    # Whatever it found to correct, it would have begun to by now.
    await asyncio.sleep(_SETTLING_SECONDS)
    after = await _versions(kubeconfig)
    written = sum(after.get(name) != version for name, version in before.items())
    what = f"restart with {len(before)} slices of 100 destinations"
    return [
        Row("placement", f"{what}, new placement served", spent, "s", "< 15 s", spent < 15),
        Row("placement", f"{what}, needless writes", written, "", "0", written == 0),
    ]


def run(peer: Path | None = None) -> list[Row]:
    """Measure *peer*, or a hub and a scheduler of our own."""
    if peer is not None:
        return _measured(peer, Shares())
    with ours("hub", ["--init"]) as hub:
        with controlling(hub, "edge-scheduler") as scheduler:
            rows = _measured(hub.kubeconfig, Shares(hub, scheduler))
            rows.append(Row("placement", "hub, resident", hub.resident_mb(), "MB"))
            rows.append(Row("placement", "scheduler, resident", scheduler.resident_mb(), "MB"))
        before, began = asyncio.run(_versions(hub.kubeconfig)), time.perf_counter()
        with controlling(hub, "edge-scheduler"):
            rows += asyncio.run(_restarted(hub.kubeconfig, began, before))
        return rows


def _measured(kubeconfig: Path, shares: Shares) -> list[Row]:
    few = measure(kubeconfig, shares, sites=_FEW_SITES, samples=60, placements=1000)
    many = measure(kubeconfig, shares, sites=10_000, samples=20, placements=0)
    return [*asyncio.run(few), *asyncio.run(many)]


if __name__ == "__main__":
    print(table(run(Path(sys.argv[1]) if len(sys.argv) > 1 else None)))
