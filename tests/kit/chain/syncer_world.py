"""A hub, an edge and syncers between them, in virtual time, with cuts, crashes and swaps.

Both sides are the real engine on memory stores. The hub here is a plain server that serves
SyncerConfigs; what is a mailbox to the syncer is all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.errors import ApiError, NotFound
from skerry.api.kcp.edge import syncer_config
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.api_server import ApiServer, Parts
from skerry.app.syncer import hub_client
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.state import SyncerSettings
from skerry.edge.syncer.syncer import Syncer
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.syncing.deletion_budget import Budget
from skerry.runtime.client import Client, Selection, WriteOptions
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    Transport,
    TransportError,
)
from skerry.store.memory import MemoryStore
from tests.kit.chain.inline import inline
from tests.kit.server.harness import Everybody
from tests.kit.sim.engine import request, version
from tests.kit.sim.faults import FaultyTransport, Rates

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
CRDS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")

SPEC: Object = {
    "namespaceScope": {
        "namespaces": ["shop"],
        "resources": [
            {"group": "", "resource": "configmaps", "apiVersion": "v1"},
            {"group": "", "resource": "secrets", "apiVersion": "v1"},
            {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
        ],
    }
}


class Server:
    """One engine with its store; ``run`` serves, ``client`` reaches it without faults."""

    def __init__(self, clock: LoopClock, seed: int) -> None:
        everybody, ids = Everybody(), SeededIds(seed)
        self.store = MemoryStore(ids.uid())
        self.api = ApiServer(
            Parts(
                store=self.store,
                clock=clock,
                ids=ids,
                authenticator=everybody,
                authorizer=everybody,
                flow=everybody,
                recorder=everybody,
                paths={"/version": version},
            )
        )
        self.transport = EmbeddedTransport(self.api.engine.handle, request)
        self.client = Client(self.transport, clock=clock)


class Switch:
    """A way to whichever server is there now; ``cut`` severs it, open streams included."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.cut = False
        self._waiting: set[asyncio.Timeout] = set()

    def sever(self) -> None:
        self.cut = True
        for scope in list(self._waiting):
            scope.reschedule(asyncio.get_running_loop().time())

    def restore(self) -> None:
        self.cut = False

    def lead_to(self, inner: Transport) -> None:
        """Put another server in place; what went to the old one breaks."""
        self.sever()
        self.inner = inner
        self.restore()

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if self.cut:
            raise TransportError("injected: cut")
        return await self.inner.request(method, path, query, headers, body)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        if self.cut:
            raise TransportError("injected: cut")
        async with self.inner.stream(method, path, query, headers, body) as answer:
            yield _Cuttable(answer, self._waiting)

    async def close(self) -> None:
        return None


class _Cuttable:
    """A stream whose reader fails at once when the line is severed."""

    def __init__(self, answer: AnswerStream, waiting: set[asyncio.Timeout]) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self._answer = answer
        self._waiting = waiting

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._answer)
        while True:
            try:
                async with asyncio.timeout(None) as scope:
                    self._waiting.add(scope)
                    try:
                        chunk = await anext(chunks)
                    finally:
                        self._waiting.discard(scope)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise TransportError("injected: cut") from error
            yield chunk


class SyncerWorld:
    """One hub, one edge, and as many syncers as are started."""

    # Whether syncers use nothing at the hub that Kubernetes does not have.
    ordinary = False

    def __init__(self, folder: Path, seed: int = 0, rates: Rates | None = None) -> None:
        self.clock = LoopClock()
        self.ids = SeededIds(seed)
        self.folder = folder
        self._seed = seed
        self.hub = Server(self.clock, seed + 1)
        self.edge = Server(self.clock, seed + 2)
        self.to_hub = Switch(self.hub.transport)
        self.to_edge = Switch(self.edge.transport)
        calm = rates or Rates(0, 0, 0, 0, 0)
        self.hub_faults = FaultyTransport(self.to_hub, self.ids, calm)
        self.edge_faults = FaultyTransport(self.to_edge, self.ids, calm)
        self.settings = SyncerSettings(name="florin", identity="one", budget=Budget(50, 50))
        self.syncers: dict[str, asyncio.Task[None]] = {}
        self.journals: dict[str, Journal] = {}
        self.running_syncers: dict[str, Syncer] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._servers: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        failure: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await self.start_server(self.hub)
            await self.start_server(self.edge)
            await self.prepare_hub(self.hub)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
                failure = error
            for task in [*self.syncers.values(), *self._servers]:
                task.cancel()
        for journal in self.journals.values():
            journal.close()
        if failure is not None:
            raise failure

    async def start_server(self, server: Server) -> None:
        assert self._tasks is not None
        await server.api.prepare()
        self._servers.append(self._tasks.create_task(server.api.run()))
        await asyncio.sleep(0.001)

    async def prepare_hub(self, server: Server) -> None:
        """Give a hub what every mailbox has."""
        await server.client.create(CRDS, syncer_config())
        await asyncio.sleep(0.5)

    async def another_hub(self) -> Server:
        """Return a hub that knows nothing, ready to take the place of the old one."""
        self._seed += 100
        server = Server(self.clock, self._seed)
        await self.start_server(server)
        await self.prepare_hub(server)
        return server

    async def another_edge(self) -> Server:
        self._seed += 100
        server = Server(self.clock, self._seed)
        await self.start_server(server)
        return server

    def start(self, identity: str = "one") -> Syncer:
        """Start a syncer on the data it left behind, if any."""
        assert self._tasks is not None
        journal = Journal(self.folder / f"{identity}.journal", offload=inline)
        self.journals[identity] = journal
        syncer = Syncer(
            replace(self.settings, identity=identity),
            hub_client(self.hub_faults, self.clock, ordinary=self.ordinary),
            Client(self.edge_faults, clock=self.clock),
            SyncRecords(journal),
            ids=self.ids,
            metrics=SyncerMetrics(),
        )
        self.running_syncers[identity] = syncer
        self.syncers[identity] = self._tasks.create_task(syncer.run())
        return syncer

    async def kill(self, identity: str = "one") -> None:
        """End a syncer without letting it finish anything."""
        task = self.syncers.pop(identity)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.journals.pop(identity).close()

    async def settle(self, seconds: float = 300.0) -> None:
        """Let the world find its peace; virtual seconds are free."""
        self.hub_faults.heal()
        self.edge_faults.heal()
        await asyncio.sleep(seconds)

    # Short words for what tests do.

    async def configure(self, spec: Object | None = None, hub: Server | None = None) -> Object:
        client = (hub or self.hub).client
        body = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "SyncerConfig",
            "metadata": {"name": "the-one"},
            "spec": SPEC if spec is None else spec,
        }
        try:
            return await client.create(SYNCER_CONFIGS, body)
        except ApiError:
            live = await client.get(SYNCER_CONFIGS, "the-one")
            return await client.update(SYNCER_CONFIGS, {**live, "spec": body["spec"]})

    async def put(
        self,
        gvr: GroupVersionResource,
        name: str,
        content: Object,
        *,
        namespace: str = "shop",
        server: Server | None = None,
        **metadata: Any,
    ) -> Object:
        """Apply an object in the hub, as the translator would; its namespace too."""
        client = (server or self.hub).client
        if namespace:
            place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await client.patch(NAMESPACES, namespace, place, kind="apply", options=_TRANSLATOR)
        body = {
            "apiVersion": f"{gvr.group}/{gvr.version}" if gvr.group else gvr.version,
            "kind": _KINDS.get(gvr.resource, "Widget"),
            "metadata": {"name": name, **metadata},
            **content,
        }
        if namespace:
            body["metadata"]["namespace"] = namespace
        return await client.patch(
            gvr, name, body, namespace, kind="apply", force=True, options=_TRANSLATOR
        )

    async def at_edge(
        self, gvr: GroupVersionResource, name: str, namespace: str = "shop"
    ) -> Object | None:
        try:
            return await self.edge.client.get(gvr, name, namespace)
        except NotFound:
            return None

    async def in_hub(
        self, gvr: GroupVersionResource, name: str, namespace: str = "shop"
    ) -> Object | None:
        try:
            return await self.hub.client.get(gvr, name, namespace)
        except NotFound:
            return None

    async def names_at_edge(self, gvr: GroupVersionResource, namespace: str = "shop") -> set[str]:
        found = await self.edge.client.list(gvr, Selection(namespace=namespace))
        return {item["metadata"]["name"] for item in found.items}

    async def conditions(self) -> dict[str, Object]:
        config = await self.hub.client.get(SYNCER_CONFIGS, "the-one")
        found = (config.get("status") or {}).get("conditions") or []
        return {condition["type"]: condition for condition in found}


_TRANSLATOR = WriteOptions(field_manager="placement-translator")
_KINDS = {
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "deployments": "Deployment",
    "namespaces": "Namespace",
    "customresourcedefinitions": "CustomResourceDefinition",
}


def deployment(image: str = "httpd", replicas: int = 1) -> Object:
    labels = {"app": "web"}
    return {
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {
                            "name": "web",
                            "image": image,
                            "resources": {"requests": {"cpu": "1000m"}},
                        }
                    ]
                },
            },
        }
    }
