"""Memory: a hub and all edge controllers with a thousand connected edges of twenty objects each.

Nothing is made by hand that controllers make: a placement goes to a thousand Locations, the mailbox
controller gives each SyncTarget its mailbox and the translator fills it. The syncers are light:
they apply nothing anywhere. But each has connections of its own, holds the watches the real one
holds in the way the real one does, renews its Lease and reports the status of every Deployment.
They live in the process that measures, which does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.edge_hub import (
    COMPUTE,
    CONFIG_MAPS,
    EDGE,
    NAMESPACES,
    PROVIDER,
    bind,
    body,
    connected,
    controlling,
    for_each,
    make_edges,
    make_workspace,
)
from bench.report import Row, table
from bench.servers import Measured, ours
from skerry.api.edge import (
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE,
    HEARTBEAT_NAMESPACE,
    PROJECTED,
    PROJECTED_VALUE,
    STATUS_SUMMARIES,
    SYNCER_CONFIGS,
    mailbox_named,
)
from skerry.api.errors import NotFound
from skerry.api.kcp.resources import API_BINDINGS, LOCATIONS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.edge.syncer.tables.mailbox import slim
from skerry.edge.syncer.tables.served_types import DEFINITIONS
from skerry.kit.ids import IdSource, SystemIds
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.placement.heartbeat import LEASES
from skerry.runtime.client import EVERYWHERE, Client, Selection
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.multiplex import MultiplexedWatches

_SUITE = "memory"
EDGES = int(os.environ.get("SKERRY_BENCH_EDGES", "1000"))
CONFIG_MAP_COUNT, DEPLOYMENT_COUNT = 18, 2
MAX_MB = 600.0
_DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
_INVENTORY, _WORKLOAD = "root:memory-inventory", "root:memory-workload"
_COPIES = Selection(labels=f"{PROJECTED}={PROJECTED_VALUE}", metadata_only=True)
_METADATA = Selection(metadata_only=True)
_PATIENCE_SECONDS = 600.0
# Statuses and summaries of the last reports are written within this time.
_SETTLING_SECONDS = 10.0


async def _furnish(client: Client, edges: int) -> None:
    """Make the inventory, and a placement of twenty objects that goes everywhere."""
    for path in (_INVENTORY, _WORKLOAD):
        await make_workspace(client, "root", path.rpartition(":")[2])
    await bind(client, _WORKLOAD, "edge.kcp.io")
    await bind(client, _WORKLOAD, "kubernetes", COMPUTE)
    inventory, workload = client.at("", _INVENTORY), client.at("", _WORKLOAD)

    await make_edges(inventory, edges)
    with contextlib.suppress(NotFound):
        await inventory.delete(LOCATIONS, "default")
    metadata = {"labels": {"go": "yes"}}
    await workload.create(NAMESPACES, body("v1", "Namespace", "shop", metadata=metadata))
    for number in range(CONFIG_MAP_COUNT):
        made = body("v1", "ConfigMap", f"map-{number}", data={"text": "x" * 1000})
        await workload.create(CONFIG_MAPS, made, "shop")
    for number in range(DEPLOYMENT_COUNT):
        await workload.create(_DEPLOYMENTS, _deployment(f"web-{number}"), "shop")
    spec = {
        "locationSelectors": [{"matchLabels": {"env": "prod"}}],
        "namespaceSelector": {"matchLabels": {"go": "yes"}},
    }
    await workload.create(EDGE_PLACEMENTS, body(EDGE, "EdgePlacement", "all", spec=spec))


def _deployment(name: str) -> Object:
    labels = {"app": name}
    container = {"name": "c", "image": "registry.example/app:1", "env": [{"name": "A"}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return body("apps/v1", "Deployment", name, spec=spec)


async def _delivered(client: Client, edges: int) -> None:
    """Wait until every mailbox has all twenty."""
    factory = InformerFactory(client.at("", EVERYWHERE), ids=SystemIds())
    maps = factory.informer(CONFIG_MAPS, _COPIES, transform=_no_more_than_named)
    wanted = edges * CONFIG_MAP_COUNT
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(factory.run())
        await _until(maps, lambda: len(maps.index) >= wanted)
        following.cancel()
    mailboxes = [each["spec"]["cluster"] for each in await _mailboxes(client)]

    async def has_deployments(number: int) -> None:
        cluster = client.at("", mailboxes[number])
        while True:
            with contextlib.suppress(NotFound):
                if len((await cluster.list(_DEPLOYMENTS)).items) == DEPLOYMENT_COUNT:
                    return
            await asyncio.sleep(0.2)

    await for_each(len(mailboxes), has_deployments)


async def _until(informer: Informer, reached: Callable[[], bool]) -> None:
    done = asyncio.Event()

    def look(old: Object | None, new: Object | None) -> None:
        if reached():
            done.set()

    informer.add_handler(look)
    async with asyncio.timeout(_PATIENCE_SECONDS):
        await done.wait()


def _no_more_than_named(obj: Object) -> Object:
    kept = ("name", "namespace", "uid", "resourceVersion", "annotations")
    return {"metadata": {name: obj["metadata"][name] for name in kept if name in obj["metadata"]}}


async def _mailboxes(client: Client) -> list[Object]:
    found = (await client.at("", PROVIDER).list(WORKSPACES)).items
    return [each for each in found if mailbox_named(each["metadata"]["name"])]


# -- light syncers -----------------------------------------------------------------------------


@dataclass
class LightSyncer:
    """One edge's connections to its mailbox: the watches, the Lease, the reports."""

    client: Client
    ids: IdSource = field(default_factory=SystemIds)
    metrics: RuntimeMetrics | None = None
    informers: list[Informer] = field(default_factory=list)
    watches: MultiplexedWatches | None = None
    # What makes types come and go: an edge with a certificate may not watch that.
    follows_types: bool = True

    @property
    def follows(self) -> bool:
        """Whether it has read its mailbox, and hears of changes."""
        connected = self.watches is not None and bool(self.watches.position)
        return connected and all(each.synced.is_set() for each in self.informers)

    async def run(self) -> None:
        """Hold the watches a syncer holds, until cancelled."""
        watches = self.watches = MultiplexedWatches(self.client, self.ids)
        factory = InformerFactory(self.client, ids=self.ids, source=watches, metrics=self.metrics)
        for gvr in (DEFINITIONS, API_BINDINGS) if self.follows_types else ():
            informer = factory.informer(gvr, _METADATA, transform=_no_more_than_named)
            self.informers.append(informer)
        for gvr in (SYNCER_CONFIGS, NAMESPACES, CONFIG_MAPS, _DEPLOYMENTS):
            informer = factory.informer(gvr, transform=slim, packed=True, compact=True)
            self.informers.append(informer)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watches.run())
            tasks.create_task(factory.run())

    async def report(self) -> None:
        """Say that it lives, and how each Deployment fares."""
        spec = {
            "holderIdentity": "light",
            "leaseDurationSeconds": 600,
            "renewTime": rfc3339_micro(self.client.clock.now()),
        }
        metadata = {"namespace": HEARTBEAT_NAMESPACE}
        lease = body(
            "coordination.k8s.io/v1", "Lease", HEARTBEAT_LEASE, metadata=metadata, spec=spec
        )
        await self.client.create(LEASES, lease, HEARTBEAT_NAMESPACE)
        status = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
        for number in range(DEPLOYMENT_COUNT):
            patch = {"status": {**status, "observedGeneration": 1}}
            await self.client.patch(
                _DEPLOYMENTS, f"web-{number}", patch, "shop", subresource="status"
            )


async def _measured(kubeconfig: Path, hub: Measured, controllers: Measured) -> list[Row]:
    began = time.perf_counter()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(connected(kubeconfig))
        await _furnish(client, EDGES)
        await _delivered(client, EDGES)
        delivered = time.perf_counter() - began
        before = hub.resident_mb(), controllers.resident_mb()
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        syncers: list[LightSyncer] = []
        for mailbox in await _mailboxes(client):
            own = await stack.enter_async_context(connected(kubeconfig))
            syncers.append(LightSyncer(own.at("", mailbox["spec"]["cluster"])))
        running = [tasks.create_task(syncer.run()) for syncer in syncers]
        await _synced(syncers)

        async def report(number: int) -> None:
            await syncers[number].report()

        await for_each(len(syncers), report)
        await _summarized(client)
        await asyncio.sleep(_SETTLING_SECONDS)
        rows = _rows(delivered, before, hub, controllers)
        for task in running:
            task.cancel()
        return rows


async def _synced(syncers: list[LightSyncer]) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        for syncer in syncers:
            while not syncer.informers:
                await asyncio.sleep(0)
            for informer in syncer.informers:
                await informer.wait_synced()


async def _summarized(client: Client) -> None:
    """Wait until every report has reached the summaries."""
    factory = InformerFactory(client.at("", _WORKLOAD), ids=SystemIds())
    summaries = factory.informer(STATUS_SUMMARIES)

    def complete() -> bool:
        found = [each.get("healthy") for each in summaries.index.objects()]
        return found.count(EDGES) == DEPLOYMENT_COUNT

    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(factory.run())
        await _until(summaries, complete)
        following.cancel()


def _rows(
    delivered: float, before: tuple[float, float], hub: Measured, controllers: Measured
) -> list[Row]:
    now = hub.resident_mb(), controllers.resident_mb()
    maxima = hub.max_resident_mb(), controllers.max_resident_mb()
    name = f"hub + controllers, {EDGES:,} edges x {CONFIG_MAP_COUNT + DEPLOYMENT_COUNT} objects"
    total = sum(now)
    return [
        Row(_SUITE, "everything made and delivered", delivered, "s"),
        Row(_SUITE, f"{name}, no syncer connected", sum(before), "MB", note=_shares(before)),
        Row(
            _SUITE,
            f"{name}, {EDGES:,} syncers connected",
            total,
            "MB",
            f"< {MAX_MB:g} MB",
            total < MAX_MB,
            _shares(now),
        ),
        Row(_SUITE, "the most there ever was of each", sum(maxima), "MB", note=_shares(maxima)),
    ]


def _shares(megabytes: tuple[float, float]) -> str:
    return f"hub {megabytes[0]:.0f}, controllers {megabytes[1]:.0f}"


def run() -> list[Row]:
    """Measure a hub and controllers of our own."""
    with ours("hub", ["--init"]) as hub, controlling(hub) as controllers:
        return asyncio.run(_measured(hub.kubeconfig, hub, controllers))


if __name__ == "__main__":
    print(table(run()))
