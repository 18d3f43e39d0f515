"""Translation over the wire: how soon an object is in every mailbox it goes to.

A hub and a placement translator run as processes of their own; the mailboxes and the slice that
sends a namespace to all of them are made here, so nothing else has a part in the figures.
``python -m bench.translator KUBECONFIG`` measures another hub, with its own translator running.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.report import Row, table
from bench.servers import Measured, ours
from skerry.api.errors import AlreadyExists
from skerry.api.kinds import GroupVersionResource
from skerry.app.edge_environment import ClientFlags, endpoint
from skerry.kit.ids import SystemIds
from skerry.logic.placement.slices import EDGE_PLACEMENTS, SLICES
from skerry.runtime.client import EVERYWHERE, Client, Selection, cluster_of
from skerry.runtime.informer import InformerFactory
from skerry.runtime.kubeconfig import connect

Object = dict[str, Any]
PROVIDER = "root:espw"
WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")
BINDINGS = GroupVersionResource("apis.kcp.io", "v1alpha1", "apibindings")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
EDGE = "edge.kcp.io/v1alpha1"
COPIES = Selection(labels="edge.kcp.io/projected=yes")

MAILBOXES = 1000
OBJECTS = 20
_AT_ONCE = 32
_PATIENCE_SECONDS = 300.0


@dataclass
class Bench:
    """A workload workspace, many mailboxes, and what is seen of the copies in them."""

    client: Client
    workload: str = "root:bench-workload"
    _seen: dict[str, dict[str, str]] = field(default_factory=dict)
    _awaited: dict[str, tuple[str, asyncio.Future[float]]] = field(default_factory=dict)
    _wanted: int = MAILBOXES
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def at(self, workspace: str) -> Client:
        return self.client.at("", workspace)

    async def prepare(self, mailboxes: int) -> None:
        """Make the workspaces, and a placement of one namespace that goes to all mailboxes."""
        self._wanted = mailboxes
        await self._workspace("root", "bench-workload")
        await self._bind(self.workload)
        names = [f"bench-mb-{number:05}" for number in range(mailboxes)]
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(self._mailbox(name))
        metadata: Object = {"name": "shop", "labels": {"go": "yes"}}
        await self.at(self.workload).create(NAMESPACES, _body("v1", "Namespace", metadata))
        spec = {"locationSelectors": [], "namespaceSelector": {"matchLabels": {"go": "yes"}}}
        metadata = {"name": "all"}
        placement = _body(EDGE, "EdgePlacement", metadata, spec=spec)
        made = await self.at(self.workload).create(EDGE_PLACEMENTS, placement)
        owner = {"apiVersion": EDGE, "kind": "EdgePlacement", "name": "all"}
        metadata = {"name": "all", "ownerReferences": [{**owner, "uid": made["metadata"]["uid"]}]}
        destinations = [
            {
                "cluster": "bench",
                "locationName": f"l{number:05}",
                "syncTargetName": f"l{number:05}",
                "syncTargetUID": f"{number:05}",
            }
            for number in range(mailboxes)
        ]
        piece = _body(EDGE, "SinglePlacementSlice", metadata, destinations=destinations)
        await self.at(self.workload).create(SLICES, piece)

    async def _mailbox(self, name: str) -> None:
        async with self._room:
            await self._workspace(PROVIDER, name)
            await self._bind(f"{PROVIDER}:{name}")

    async def _workspace(self, parent: str, name: str) -> None:
        body = _body("tenancy.kcp.io/v1alpha1", "Workspace", {"name": name}, spec={})
        with contextlib.suppress(AlreadyExists):
            await self.at(parent).create(WORKSPACES, body)

    async def _bind(self, workspace: str) -> None:
        spec = {"reference": {"export": {"path": PROVIDER, "name": "edge.kcp.io"}}}
        body = _body("apis.kcp.io/v1alpha1", "APIBinding", {"name": "bind-edge"}, spec=spec)
        with contextlib.suppress(AlreadyExists):
            await self.at(workspace).create(BINDINGS, body)

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
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await done

    async def created(self, name: str, value: str = "1") -> float:
        """Create an object; returns the seconds until it is everywhere."""
        began = time.perf_counter()
        obj = _body("v1", "ConfigMap", {"name": name}, data={"k": value, "text": "x" * 1000})
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


def _body(version: str, kind: str, metadata: Object, **more: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


@contextlib.contextmanager
def translating(hub: Measured) -> Iterator[Measured]:
    """Run a placement translator of ours against *hub*."""
    flags = ["--only", "placement-translator", "--espw-path", PROVIDER, "-v", "1"]
    command = [sys.executable, "-m", "skerry.cli", "controllers", *flags]
    process = subprocess.Popen([*command, "--kubeconfig", str(hub.kubeconfig)], text=True)
    try:
        yield Measured(hub.server, hub.kubeconfig, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


async def _first(bench: Bench) -> list[Row]:
    """Measure with a translator that has been running for a while."""
    warm = await bench.created("warm")
    created = [await bench.created(f"one-{number}") for number in range(5)]
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
            f"worst of {len(created)}",
        ),
        Row("translator", f"object changed, in {where}", changed, "s"),
        Row("translator", f"object deleted, from {where}", deleted, "s"),
        Row("translator", f"{OBJECTS - 5} objects created, in {where}", many, "s"),
    ]


async def _with(kubeconfig: Path, mailboxes: int, *, prepare: bool) -> tuple[Bench, Any]:
    found = endpoint("admin", [kubeconfig], ClientFlags())
    transport = connect(found.config)
    bench = Bench(Client(transport))
    if prepare:
        await bench.prepare(mailboxes)
    return bench, transport


async def measure(kubeconfig: Path) -> list[Row]:
    """Measure a hub with a running translator."""
    bench, transport = await _with(kubeconfig, MAILBOXES, prepare=True)
    try:
        async with bench.following():
            return await _first(bench)
    finally:
        await transport.close()


async def settled(kubeconfig: Path) -> list[Row]:
    """Measure how soon a translator that has just been started acts on news."""
    bench, transport = await _with(kubeconfig, MAILBOXES, prepare=False)
    try:
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
    finally:
        await transport.close()


def run(peer: Path | None = None) -> list[Row]:
    """Measure *peer*, or a hub and a translator of our own."""
    if peer is not None:
        return asyncio.run(measure(peer))
    with ours("hub", ["--init"]) as hub:
        with translating(hub) as translator:
            rows = asyncio.run(measure(hub.kubeconfig))
            rows.append(Row("translator", "translator, resident", translator.resident_mb(), "MB"))
            rows.append(Row("translator", "hub, resident", hub.resident_mb(), "MB"))
        with translating(hub):
            rows += asyncio.run(settled(hub.kubeconfig))
    return rows


if __name__ == "__main__":
    print(table(run(Path(sys.argv[1]) if len(sys.argv) > 1 else None)))
