"""A real hub without sockets, and the hands that scheduler, translator and syncer would have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from skerry.api.edge import (
    APPLIED,
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE,
    HEARTBEAT_NAMESPACE,
    MAX_LEASE_SECONDS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_SUMMARIES,
    Mailbox,
)
from skerry.api.errors import AlreadyExists
from skerry.api.kcp.resources import API_BINDINGS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.api_server import Parts
from skerry.app.hub_content import ensure_compute, ensure_edge_provider
from skerry.app.hub_server import HubFacts, HubServer
from skerry.controllers.summarizer.controller import Summarizer, Views, build
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.placement.heartbeat import LEASES
from skerry.logic.fleet.syncing.delivery import content_mark
from skerry.logic.fleet.type_rules import with_type_rules
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.runtime.client import EVERYWHERE, Client, Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.informer import InformerFactory
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.security.tokens import ServiceAccountTokens, SigningKey
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.state import HubState
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import Everybody
from tests.kit.sim.engine import request, version
from tests.kit.sim.faults import FaultyTransport, Rates

PROVIDER = "root:espw"
DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
NO_FAULTS = Rates(0, 0, 0, 0, 0)
# Tokens play no part here; a hub wants to be able to sign some nevertheless.
_SIGNING_KEY = SigningKey(ec.generate_private_key(ec.SECP256R1()))


async def _nobody(*_: str) -> None:
    return None


def deployment(name: str, **labels: str) -> Object:
    own = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": own},
            "template": {
                "metadata": {"labels": own},
                "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}]},
            },
        },
    }


def running(replicas: int = 1, available: int | None = None) -> Object:
    """The status of a Deployment whose replicas are all there."""
    ready = replicas if available is None else available
    status = {"replicas": replicas, "updatedReplicas": replicas, "observedGeneration": 1}
    return status | ({"availableReplicas": ready, "readyReplicas": ready} if ready else {})


class Hub:
    """One seed's hub, workload workspace ``wmw`` and mailboxes; faults only for controllers."""

    def __init__(self, seed: int = 1, rates: Rates = NO_FAULTS) -> None:
        self.clock, self.ids = LoopClock(), SeededIds(seed)
        everybody, server_ids = Everybody(), SeededIds(seed + 1)
        self.store = MemoryStore(server_ids.uid())
        parts = Parts(
            store=self.store,
            clock=self.clock,
            ids=server_ids,
            authenticator=everybody,
            authorizer=everybody,
            flow=everybody,
            recorder=everybody,
            paths={"/version": version},
        )
        tokens = ServiceAccountTokens(_SIGNING_KEY, _nobody, self.clock, server_ids)
        facts = HubFacts("https://hub.example", lambda: "CA", tokens)
        self.api = HubServer(
            parts,
            RbacAuthorizer(shared=SYSTEM_ADMIN),
            Mailboxes(HubState(extend=with_type_rules)),
            facts,
        )
        embedded = EmbeddedTransport(self.api.engine.handle, request)
        self.faults = FaultyTransport(embedded, self.ids, rates)
        self.client = Client(embedded, clock=self.clock)
        self._faulty = Client(self.faults, clock=self.clock)
        # As whom the summarizer writes.
        self.writer = self._faulty
        self.clusters: dict[str, str] = {}
        self.uids: dict[str, str] = {}

    @asynccontextmanager
    async def running(self, edges: Sequence[str]) -> AsyncIterator[None]:
        """Run the hub with a workload workspace and the mailboxes of *edges*."""
        await self.api.prepare()
        failure: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.api.run())
            await asyncio.sleep(0.001)
            try:
                await ensure_compute(self.api)
                await ensure_edge_provider(self.api)
                await self._furnish(edges)
                yield
            except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
                failure = error
            task.cancel()
        if failure is not None:
            raise failure

    @asynccontextmanager
    async def summarizing(self) -> AsyncIterator[Summarizer]:
        """Run the summarizer while inside."""
        client = self._faulty.for_cluster(EVERYWHERE)
        hub = ControllerContext(
            client, InformerFactory(client, ids=self.ids, mutation_check=True), self.ids
        )
        provider = await self.cluster_of(PROVIDER)
        view = f"/services/apiexport/{provider}/edge.kcp.io"
        edge = InformerFactory(self._faulty.at(view, EVERYWHERE), ids=self.ids, mutation_check=True)
        own = InformerFactory(self._faulty.for_cluster(provider), ids=self.ids, mutation_check=True)
        summarizer = build(Views(hub, edge, own, self.writer))
        failure: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            parts = (hub.factory.run(), edge.run(), own.run(), summarizer.run())
            started = [tasks.create_task(part) for part in parts]
            try:
                yield summarizer
            except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
                failure = error
            for task in started:
                task.cancel()
        if failure is not None:
            raise failure
        for factory in (hub.factory, edge, own):
            factory.check_unchanged()

    async def _furnish(self, edges: Sequence[str]) -> None:
        await self.workspace("root", "wmw")
        await self.bind("root:wmw", "bind-espw", PROVIDER, "edge.kcp.io")
        await self.bind("root:wmw", "bind-kubernetes", "root:compute", "kubernetes")
        for edge in edges:
            await self.add_edge(edge)

    async def add_edge(self, name: str) -> None:
        """Make a mailbox, as the mailbox controller would."""
        self.uids.setdefault(name, f"00000000-0000-4000-8000-{len(self.uids):012}")
        workspace = Mailbox("imw", self.uids[name]).workspace
        await self.workspace(PROVIDER, workspace)
        self.clusters[name] = await self.cluster_of(f"{PROVIDER}:{workspace}")
        await self.bind(self.clusters[name], "bind-edge", PROVIDER, "edge.kcp.io")
        await self.bind(self.clusters[name], "bind-kubernetes", "root:compute", "kubernetes")
        await self.beat(name)

    async def beat(self, edge: str, seconds: int = MAX_LEASE_SECONDS) -> None:
        """Renew the Lease of an edge, as its syncer would."""
        spec = {"leaseDurationSeconds": seconds, "renewTime": rfc3339_micro(self.clock.now())}
        lease = {"metadata": {"name": HEARTBEAT_LEASE}, "spec": spec}
        try:
            await self.mailbox(edge).create(LEASES, lease, HEARTBEAT_NAMESPACE)
        except AlreadyExists:
            await self.mailbox(edge).patch(LEASES, HEARTBEAT_LEASE, lease, HEARTBEAT_NAMESPACE)

    async def workspace(self, parent: str, name: str) -> None:
        await self.at(parent).create(
            WORKSPACES,
            {
                "apiVersion": "tenancy.kcp.io/v1alpha1",
                "kind": "Workspace",
                "metadata": {"name": name},
                "spec": {},
            },
        )

    async def bind(self, cluster: str, name: str, path: str, export: str) -> None:
        reference = {"export": {"path": path, "name": export}}
        await self.at(cluster).create(
            API_BINDINGS,
            {
                "apiVersion": "apis.kcp.io/v1alpha1",
                "kind": "APIBinding",
                "metadata": {"name": name},
                "spec": {"reference": reference},
            },
        )

    async def cluster_of(self, path: str) -> str:
        parent, _, name = path.rpartition(":")
        found = await self.at(parent).get(WORKSPACES, name)
        return str(found["spec"]["cluster"])

    def at(self, cluster: str) -> Client:
        return self.client.for_cluster(cluster)

    @property
    def owner(self) -> Client:
        """The client of the workload's owner."""
        return self.at("root:wmw")

    def mailbox(self, edge: str) -> Client:
        return self.at(self.clusters[edge])

    # -- what others do ----------------------------------------------------------------------

    async def namespace(self, name: str, **labels: str) -> None:
        await self.owner.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})

    async def place(self, name: str, *edges: str, **spec: Any) -> Object:
        """Create an EdgePlacement and its slice."""
        placement = await self.owner.create(
            EDGE_PLACEMENTS,
            {
                "apiVersion": "edge.kcp.io/v1alpha1",
                "kind": "EdgePlacement",
                "metadata": {"name": name},
                "spec": {
                    "locationSelectors": [{}],
                    "namespaceSelector": {"matchLabels": {"go": "yes"}},
                    **spec,
                },
            },
        )
        owner = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "EdgePlacement", "name": name}
        await self.owner.create(
            SINGLE_PLACEMENT_SLICES,
            {
                "apiVersion": "edge.kcp.io/v1alpha1",
                "kind": "SinglePlacementSlice",
                "metadata": {
                    "name": name,
                    "ownerReferences": [{**owner, "uid": placement["metadata"]["uid"]}],
                },
                "destinations": [self.destination(edge) for edge in edges],
            },
        )
        return placement

    def destination(self, edge: str) -> Object:
        return {
            "cluster": "imw",
            "locationName": f"loc-{edge}",
            "syncTargetName": edge,
            "syncTargetUID": self.uids[edge],
        }

    async def reslice(self, name: str, *edges: str) -> None:
        patch = {"destinations": [self.destination(edge) for edge in edges]}
        await self.owner.patch(SINGLE_PLACEMENT_SLICES, name, patch)

    async def project(self, edge: str, gvr: GroupVersionResource, obj: Object, space: str) -> None:
        """Put a copy into a mailbox, as the translator would."""
        mailbox = self.mailbox(edge)
        if space and not await self._has(mailbox, NAMESPACES, space):
            labels = {"edge.kcp.io/projected": "yes"}
            await mailbox.create(NAMESPACES, {"metadata": {"name": space, "labels": labels}})
        labels = {**(obj["metadata"].get("labels") or {}), "edge.kcp.io/projected": "yes"}
        copy = {**obj, "metadata": {"name": obj["metadata"]["name"], "labels": labels}}
        copy.pop("status", None)
        await mailbox.create(gvr, copy, space)

    async def applied(self, edge: str, gvr: GroupVersionResource, name: str, space: str) -> None:
        """Mark a copy as applied, as the syncer would."""
        copy = await self.mailbox(edge).get(gvr, name, space)
        notes = {"metadata": {"annotations": {APPLIED: content_mark(copy)}}}
        await self.mailbox(edge).patch(gvr, name, notes, space)

    async def report(
        self, edge: str, gvr: GroupVersionResource, name: str, space: str, status: Object
    ) -> None:
        """Return a status, as the syncer would."""
        patch = {"status": status}
        await self.mailbox(edge).patch(gvr, name, patch, space, subresource="status")

    # -- what is found -----------------------------------------------------------------------

    async def summaries(self, space: str) -> dict[str, Object]:
        found = (await self.owner.list(STATUS_SUMMARIES, Selection(namespace=space))).items
        return {each["metadata"]["name"]: each for each in found}

    async def placement(self, name: str) -> Object:
        return await self.owner.get(EDGE_PLACEMENTS, name)

    async def _has(self, client: Client, gvr: GroupVersionResource, name: str) -> bool:
        names = [each["metadata"]["name"] for each in (await client.list(gvr)).items]
        return name in names
