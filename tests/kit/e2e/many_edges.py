"""Many light edges in one process: each an API server in memory, a real syncer, a played node.

    python -m tests.kit.e2e.many_edges KUBECONFIG FOLDER NAME...

Prints ``ready`` when every syncer is in its mailbox. Reads lines: ``offline NAME...`` cuts the
syncers off, ``online NAME...`` brings them back. ``FOLDER/ran`` gets a line ``NAME IMAGE`` for each
image that an edge begins to run. Images that are called ``no-such-image`` never become available.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import uvloop

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.core_controllers import embedded_transport
from skerry.app.edge_identity import HubAccess, edge_of, open_hub
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import PLAIN_SERVER, serving
from skerry.app.syncer import hub_client
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.session import Session
from skerry.edge.syncer.state import SyncerSettings
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.kit import log
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.kit.timestamps import rfc3339
from skerry.runtime.client import Client, Selection
from skerry.runtime.kubeconfig import connect

INVENTORY, PROVIDER = "root:imw", "root:espw"
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
BROKEN = "no-such-image"
_HEARTBEAT_SECONDS = 1.0


class LightEdge:
    """One edge: its server's client, its syncer, and the node that runs what arrives."""

    def __init__(self, name: str, folder: Path, hub: HubAccess, cluster: Client) -> None:
        self.name = name
        self._folder = folder
        self._hub = hub
        self._cluster = cluster
        self._mailbox = ""
        self._syncer: asyncio.Task[None] | None = None
        self._images: dict[str, str] = {}

    async def find(self) -> None:
        """Wait for the mailbox."""
        self._mailbox = (
            await edge_of(self._hub, self.name, INVENTORY, PROVIDER, wait_seconds=120)
        ).mailbox

    async def online(self) -> None:
        """Have a syncer, with what an earlier one remembered."""
        clock = SystemClock()
        self._syncer = asyncio.create_task(
            Session(
                SyncerSettings(
                    name=self.name, identity=self.name, heartbeat_seconds=_HEARTBEAT_SECONDS
                ),
                hub_client(connect(self._hub.config, clock=clock), clock, self._mailbox),
                self._cluster,
                SyncRecords(Journal(self._folder / f"{self.name}.journal")),
                SystemIds(),
                SyncerMetrics(),
            ).run()
        )

    async def offline(self) -> None:
        """Cut the edge off as a cable would; what it runs goes on."""
        if self._syncer is not None:
            self._syncer.cancel()
            await asyncio.gather(self._syncer, return_exceptions=True)
            self._syncer = None

    async def run_pods(self) -> None:
        """Report every Deployment as available, but for those of a broken image."""
        found = await self._cluster.list(DEPLOYMENTS)
        for each in found.items:
            await self._run(each)
        version = found.resource_version
        async with self._cluster.watch(
            DEPLOYMENTS, Selection(), resource_version=version
        ) as events:
            async for event in events:
                if event.kind in ("ADDED", "MODIFIED"):
                    await self._run(event.object)

    async def _run(self, deployment: Object) -> None:
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        name, image = deployment["metadata"]["name"], container["image"]
        if self._images.get(name) != image:
            self._images[name] = image
            with (self._folder / "ran").open("a") as ran:
                ran.write(f"{self.name} {image}\n")
        number = deployment["spec"].get("replicas", 1)
        ready = number if image != BROKEN else 0
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": number,
            "updatedReplicas": number,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": number - ready,
            "conditions": [
                {
                    "type": "Available",
                    "status": "True" if ready else "False",
                    "reason": "MinimumReplicasAvailable" if ready else "ImagePullBackOff",
                    "lastTransitionTime": rfc3339(SystemClock().now()),
                }
            ],
        }
        known = deployment.get("status") or {}
        if any(known.get(key) != status[key] for key in ("observedGeneration", "readyReplicas")):
            await self._cluster.patch(
                DEPLOYMENTS,
                name,
                {"status": status},
                deployment["metadata"]["namespace"],
                subresource="status",
            )


@contextlib.asynccontextmanager
async def edges(
    kubeconfig: Path, folder: Path, names: list[str]
) -> AsyncIterator[dict[str, LightEdge]]:
    """Have the edges run while inside."""
    hub = open_hub([kubeconfig])
    found: dict[str, LightEdge] = {}
    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as nodes:
        for name in names:
            settings = ServerSettings(
                data_dir=folder / name,
                port=0,
                store=StoreSettings(kind="memory"),
                controllers="none",
            )
            running = await stack.enter_async_context(serving(settings, PLAIN_SERVER))
            client = Client(embedded_transport(running.api))
            found[name] = LightEdge(name, folder, hub, client)
        playing = [nodes.create_task(each.run_pods()) for each in found.values()]
        await asyncio.gather(*(each.find() for each in found.values()))
        for each in found.values():
            await each.online()
        yield found
        for each in found.values():
            await each.offline()
        for task in playing:
            task.cancel()


async def main(kubeconfig: Path, folder: Path, names: list[str]) -> None:
    """Run until the input ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async with edges(kubeconfig, folder, names) as found:
        print("ready", flush=True)
        while line := (await reader.readline()).decode():
            verb, *named = line.split()
            for name in named:
                await (found[name].offline() if verb == "offline" else found[name].online())
            print(line.strip(), flush=True)


if __name__ == "__main__":
    log.configure(verbosity=0)
    uvloop.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
