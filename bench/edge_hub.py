"""What the edge suites have in common: a hub with controllers, its set-up, whose time it was.

Everything is driven by a kubeconfig with administrator's rights, so that another hub with other
controllers can be measured by the same code.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.servers import Measured
from skerry.api.edge import mailbox_named
from skerry.api.errors import AlreadyExists
from skerry.api.kcp.resources import API_BINDINGS, LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.edge_environment import ClientFlags, endpoint
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import connect

PROVIDER = "root:espw"
COMPUTE = "root:compute"
EDGE = "edge.kcp.io/v1alpha1"
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
_SYNC_TARGET_TYPE = {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}
_SIDE_BY_SIDE = 16
# Longer than anything measured here takes where it works at all.
PATIENCE_SECONDS = 300.0


def body(version: str, kind: str, name: str, **more: Any) -> Object:
    """Return an object; members of its metadata may be given as ``metadata``."""
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


async def make_workspace(client: Client, parent: str, name: str) -> str:
    """Make a workspace unless it is there; returns its path."""
    obj = body("tenancy.kcp.io/v1alpha1", "Workspace", name, spec={})
    with contextlib.suppress(AlreadyExists):
        await client.at("", parent).create(WORKSPACES, obj)
    return f"{parent}:{name}"


async def bind(client: Client, workspace: str, export: str, path: str = PROVIDER) -> None:
    """Bind an export in a workspace, under the name mailboxes have it."""
    spec = {"reference": {"export": {"path": path, "name": export}}}
    name = "bind-edge" if export == "edge.kcp.io" else f"bind-{export}"
    with contextlib.suppress(AlreadyExists):
        await client.at("", workspace).create(
            API_BINDINGS, body("apis.kcp.io/v1alpha1", "APIBinding", name, spec=spec)
        )


def sync_target(name: str, labels: dict[str, str]) -> Object:
    metadata = {"labels": labels}
    return body("workload.kcp.io/v1alpha1", "SyncTarget", name, metadata=metadata, spec={})


def location(name: str, labels: dict[str, str], instances: dict[str, str]) -> Object:
    spec = {"resource": _SYNC_TARGET_TYPE, "instanceSelector": {"matchLabels": instances}}
    metadata = {"labels": labels}
    return body("scheduling.kcp.io/v1alpha1", "Location", name, metadata=metadata, spec=spec)


def slice_of(placement: Object, destinations: Sequence[Object]) -> Object:
    """Return the slice an edge scheduler would write for *placement*."""
    name, uid = placement["metadata"]["name"], placement["metadata"]["uid"]
    owner = {"apiVersion": EDGE, "kind": "EdgePlacement", "name": name, "uid": uid}
    metadata = {"ownerReferences": [owner]}
    return body(
        EDGE, "SinglePlacementSlice", name, metadata=metadata, destinations=list(destinations)
    )


@contextlib.asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """Give a client of the whole hub while inside."""
    transport = connect(endpoint("admin", [kubeconfig], ClientFlags()).config)
    try:
        yield Client(transport)
    finally:
        await transport.close()


@contextlib.contextmanager
def controlling(hub: Measured, *names: str, flags: Sequence[str] = ()) -> Iterator[Measured]:
    """Run edge controllers of ours, all if none is named, in one process against *hub*."""
    only = [word for name in names for word in ("--only", name)]
    where = ["--espw-path", PROVIDER, "-v", "0", "--server-bind-address", "127.0.0.1:0"]
    command = [sys.executable, "-m", "skerry.cli", "controllers", *only, *where, *flags]
    process = subprocess.Popen([*command, "--kubeconfig", str(hub.kubeconfig)], text=True)
    try:
        yield Measured(hub.server, hub.kubeconfig, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@dataclass
class Shares:
    """Whose processor time it was: the hub's, the controllers', or that of the one who measures.

    Without processes of ours only the last is known.
    """

    hub: Measured | None = None
    controllers: Measured | None = None
    _began: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def begin(self) -> None:
        self._began = self._now()

    def spent(self) -> tuple[float, float, float]:
        """Return the processor seconds of hub, controllers and driver since ``begin``."""
        hub, controllers, driver = (
            now - began for now, began in zip(self._now(), self._began, strict=True)
        )
        return hub, controllers, driver

    def summary(self) -> str:
        hub, controllers, driver = self.spent()
        return f"CPU s: hub {hub:.2f}, controllers {controllers:.2f}, driver {driver:.2f}"

    def _now(self) -> tuple[float, float, float]:
        hub = self.hub.cpu_seconds() if self.hub else 0.0
        controllers = self.controllers.cpu_seconds() if self.controllers else 0.0
        return hub, controllers, time.process_time()


async def for_each(
    count: int, work: Callable[[int], Awaitable[None]], side_by_side: int = _SIDE_BY_SIDE
) -> None:
    """Do the same for every number, some at a time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(side_by_side):
            tasks.create_task(worker())


async def make_edges(inventory: Client, count: int) -> None:
    """Make the SyncTarget and the Location of so many edges, of those that are not there."""

    async def edge(number: int) -> None:
        name = f"edge-{number:05}"
        labels = {"id": name, "env": "prod"}
        with contextlib.suppress(AlreadyExists):
            await inventory.create(SYNC_TARGETS, sync_target(name, labels))
        with contextlib.suppress(AlreadyExists):
            await inventory.create(LOCATIONS, location(name, labels, {"id": name}))

    await for_each(count, edge)


async def mailbox_clusters(client: Client, count: int) -> list[str]:
    """Return the clusters of the mailboxes, once so many are ready."""
    provider = client.at("", PROVIDER)
    while True:
        found = (await provider.list(WORKSPACES)).items
        ready = [each for each in found if (each.get("status") or {}).get("phase") == "Ready"]
        clusters = [
            each["spec"]["cluster"] for each in ready if mailbox_named(each["metadata"]["name"])
        ]
        if len(clusters) >= count:
            return clusters
        await asyncio.sleep(0.5)
