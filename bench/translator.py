"""Translation over the wire: how soon an object is in every mailbox it goes to.

A hub and a placement translator run as processes of their own; the mailboxes and the slice that
sends a namespace to all of them are made here, so nothing else has a part in the figures.
``python -m bench.translator KUBECONFIG`` measures another hub, with its own translator running.
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
    CONFIG_MAPS,
    EDGE,
    NAMESPACES,
    PATIENCE_SECONDS,
    PROVIDER,
    Shares,
    bind,
    body,
    connected,
    controlling,
    for_each,
    make_workspace,
    slice_of,
)
from bench.report import Row, table
from bench.servers import ours
from skerry.api.edge import EDGE_PLACEMENTS, SINGLE_PLACEMENT_SLICES, Mailbox
from skerry.api.objects import Object
from skerry.kit.ids import SystemIds
from skerry.runtime.client import EVERYWHERE, Client, Selection, cluster_of
from skerry.runtime.informer import InformerFactory

COPIES = Selection(labels="edge.kcp.io/projected=yes")

MAILBOXES = 1000
OBJECTS = 20


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


@dataclass
class Bench:
    """A workload workspace, many mailboxes, and what is seen of the copies in them."""

    client: Client
    shares: Shares
    workload: str = "root:bench-workload"
    _seen: dict[str, dict[str, str]] = field(default_factory=dict)
    _awaited: dict[str, tuple[str, asyncio.Future[float]]] = field(default_factory=dict)
    _wanted: int = MAILBOXES

    def at(self, workspace: str) -> Client:
        return self.client.at("", workspace)

    async def prepare(self, mailboxes: int) -> None:
        """Make the workspaces, and a placement of one namespace that goes to all mailboxes."""
        self._wanted = mailboxes
        await make_workspace(self.client, "root", "bench-workload")
        await bind(self.client, self.workload, "edge.kcp.io")
        await for_each(mailboxes, self._mailbox)
        workload = self.at(self.workload)
        metadata = {"labels": {"go": "yes"}}
        await workload.create(NAMESPACES, body("v1", "Namespace", "shop", metadata=metadata))
        spec = {"locationSelectors": [], "namespaceSelector": {"matchLabels": {"go": "yes"}}}
        placement = body(EDGE, "EdgePlacement", "all", spec=spec)
        made = await workload.create(EDGE_PLACEMENTS, placement)
        destinations = [
            {
                "cluster": "bench",
                "locationName": f"l{number:05}",
                "syncTargetName": f"l{number:05}",
                "syncTargetUID": _uid(number),
            }
            for number in range(mailboxes)
        ]
        await workload.create(SINGLE_PLACEMENT_SLICES, slice_of(made, destinations))

    async def _mailbox(self, number: int) -> None:
        workspace = Mailbox("bench", _uid(number)).workspace
        mailbox = await make_workspace(self.client, PROVIDER, workspace)
        await bind(self.client, mailbox, "edge.kcp.io")

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Watch the copies in all mailboxes while inside."""
        factory = InformerFactory(self.at(EVERYWHERE), ids=SystemIds())
        informer = factory.informer(CONFIG_MAPS, COPIES)
        informer.add_handler(self._copy_changed)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(factory.run())
            await informer.wait_synced()
            yield
            task.cancel()

    def _copy_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old or {}
        name = obj["metadata"]["name"]
        seen = self._seen.setdefault(name, {})
        if new is None:
            seen.pop(cluster_of(obj), None)
        else:
            seen[cluster_of(obj)] = (new.get("data") or {}).get("k", "")
        value, done = self._awaited.get(name, ("", None))
        if done is not None and not done.done() and self._arrived(name, value):
            done.set_result(time.perf_counter())

    def _arrived(self, name: str, value: str) -> bool:
        seen = self._seen.get(name, {})
        if value == "gone":
            return not seen
        return len(seen) == self._wanted and all(each == value for each in seen.values())

    async def _everywhere(self, name: str, value: str) -> float:
        """Return when every mailbox has *name* with *value* ("gone": has it no more)."""
        done: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited[name] = (value, done)
        if self._arrived(name, value):
            done.set_result(time.perf_counter())
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await done

    async def created(self, name: str, value: str = "1") -> float:
        """Create an object; returns the seconds until it is everywhere."""
        began = time.perf_counter()
        obj = body("v1", "ConfigMap", name, data={"k": value, "text": "x" * 1000})
        await self.at(self.workload).create(CONFIG_MAPS, obj, "shop")
        return await self._everywhere(name, value) - began

    async def changed(self, name: str, value: str) -> float:
        began = time.perf_counter()
        patch = {"data": {"k": value}}
        await self.at(self.workload).patch(CONFIG_MAPS, name, patch, "shop")
        return await self._everywhere(name, value) - began

    async def deleted(self, name: str) -> float:
        began = time.perf_counter()
        await self.at(self.workload).delete(CONFIG_MAPS, name, "shop")
        return await self._everywhere(name, "gone") - began


async def _first(bench: Bench) -> list[Row]:
    """Measure with a translator that has been running for a while."""
    warm = await bench.created("warm")
    bench.shares.begin()
    created = [await bench.created(f"one-{number}") for number in range(5)]
    summary = bench.shares.summary()
    changed = await bench.changed("one-0", "2")
    deleted = await bench.deleted("one-0")
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(5, OBJECTS):
            tasks.create_task(bench.created(f"one-{number}"))
    many = time.perf_counter() - began
    worst = max(created)
    where = f"{MAILBOXES} mailboxes"
    return [
        Row("translator", f"first object in {where}, namespace included", warm, "s"),
        Row(
            "translator",
            f"object created, in {where}",
            worst,
            "s",
            "< 3 s",
            worst < 3,
            f"worst of {len(created)}; all: {summary}",
        ),
        Row("translator", f"object changed, in {where}", changed, "s"),
        Row("translator", f"object deleted, from {where}", deleted, "s"),
        Row("translator", f"{OBJECTS - 5} objects created, in {where}", many, "s"),
    ]


async def measure(kubeconfig: Path, shares: Shares) -> list[Row]:
    """Measure a hub with a running translator."""
    async with connected(kubeconfig) as client:
        bench = Bench(client, shares)
        await bench.prepare(MAILBOXES)
        async with bench.following():
            return await _first(bench)


async def settled(kubeconfig: Path) -> list[Row]:
    """Measure how soon a translator that has just been started acts on news."""
    async with connected(kubeconfig) as client:
        bench = Bench(client, Shares())
        async with bench.following():
            spent = await bench.created("after-restart")
            return [
                Row(
                    "translator",
                    f"restart with {MAILBOXES} x {OBJECTS} copies, object created, in all",
                    spent,
                    "s",
                    "< 15 s",
                    spent < 15,
                )
            ]


def run(peer: Path | None = None) -> list[Row]:
    """Measure *peer*, or a hub and a translator of our own."""
    if peer is not None:
        return asyncio.run(measure(peer, Shares()))
    with ours("hub", ["--init"]) as hub:
        with controlling(hub, "placement-translator") as translator:
            rows = asyncio.run(measure(hub.kubeconfig, Shares(hub, translator)))
            rows.append(Row("translator", "translator, resident", translator.resident_mb(), "MB"))
            rows.append(Row("translator", "hub, resident", hub.resident_mb(), "MB"))
        with controlling(hub, "placement-translator"):
            rows += asyncio.run(settled(hub.kubeconfig))
    return rows


if __name__ == "__main__":
    print(table(run(Path(sys.argv[1]) if len(sys.argv) > 1 else None)))
