"""An embedded edge cluster: API server, controllers, scheduler and node agents in one process.

Everything beside the server speaks to it through the in-process transport, each part in its own
name, so that audit and field managers tell them apart as in a cluster of many processes.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from skerry.api.errors import AlreadyExists, NotFound
from skerry.api.keys import PLAIN
from skerry.app.api_server import ApiServer
from skerry.app.core_controllers import embedded_transport
from skerry.app.edge_config import PODS_DIRECTORY, EdgeConfig, NodeConfig
from skerry.app.edge_connect import AgentConnection
from skerry.app.security import build_security
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import Face, Foundation, Kind, StartError, plain_face
from skerry.app.workload_controllers import run_workload_controllers
from skerry.controllers.workload.kinds import SERVICES, STORAGE_CLASSES
from skerry.controllers.workload.volume.decide import standard_class
from skerry.edge.agent.agent import NodeAgent
from skerry.edge.agent.catalogue import Catalogue
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.http_proxy import HttpProxy
from skerry.edge.agent.network import LOOPBACK, Forwarder, Network, PortTaken, publish
from skerry.edge.agent.node import capacity
from skerry.edge.agent.plain import PlainRuntime, bubblewrap
from skerry.edge.agent.runtime import ContainerRuntime
from skerry.edge.agent.services import ServiceProxy
from skerry.edge.agent.settings import AgentSettings
from skerry.edge.agent.sources import PodSources
from skerry.edge.agent.volume_cleanup import run_volume_cleanup
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.runtime.client import Client
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory
from skerry.scheduler.config.load import load
from skerry.scheduler.service import SchedulerOptions, run_scheduler
from skerry.server.http.message import User

_MASTERS = ("system:masters", "system:authenticated")
CATALOGUE_FILE = "images.yaml"
# There is only one scheduler, and it goes with the server: nobody to elect among.
_SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""


def edge_kind(config: EdgeConfig, settings: AgentSettings | None = None) -> Kind:
    """Return the kind of server an edge is."""

    async def face(foundation: Foundation) -> Face:
        found = await plain_face(foundation)
        edge = Edge(config, foundation, found.api, settings or AgentSettings())
        found.beside.append(edge.run)
        found.complete = edge.complete
        return found

    return Kind(f"edge {config.name}", build_security, face)


def edge_settings(directory: Path, config: EdgeConfig) -> ServerSettings:
    """Return the settings of an edge's API server."""
    return ServerSettings(
        data_dir=directory,
        store=StoreSettings(path=directory / "store.db"),
        bind_address=config.api_address,
        port=config.api_port,
        service_network=config.service_network,
        drain_seconds=2.0,
    )


def make_runtime(catalogue: Catalogue) -> ContainerRuntime:
    """Return the best runtime this machine offers."""
    wrap = bubblewrap()
    if wrap is None:
        return PlainRuntime(catalogue)
    return PlainRuntime(catalogue, "bubblewrap", wrap)


@dataclass
class Edge:
    """Everything of an edge beside its API server."""

    config: EdgeConfig
    foundation: Foundation
    api: ApiServer
    settings: AgentSettings
    agents: list[NodeAgent] = field(default_factory=list)

    def __post_init__(self) -> None:
        f, directory = self.foundation, self.foundation.settings.data_dir
        self._clock: Clock = f.clock
        self._ids: IdSource = f.ids
        self.network = Network()
        named = self.config.catalogue
        catalogue = Catalogue(Path(named) if named else directory / CATALOGUE_FILE)
        self._runtime = make_runtime(catalogue)
        self._volumes = str((directory / "volumes").resolve())
        self._published: list[Forwarder] = []
        self._scheduler = _scheduler_options()
        agent_client = self._client("system:node-agent", "skerry/node-agent")
        self._agent_factory = InformerFactory(agent_client, ids=f.ids)
        self._sources = PodSources(agent_client, self._agent_factory)
        port = int(f.url.rpartition(":")[2])
        self._services = ServiceProxy(self.network, self._agent_factory, (LOOPBACK, port))
        self._proxy = HttpProxy(self._services.find)
        self._sources.reached_at = self._services.reached_at
        self._sources.proxy_url = self._proxy.url
        for number, node in enumerate(self.config.nodes):
            self._add_agent(agent_client, node, number)

    def _client(self, user: str, agent: str) -> Client:
        transport = embedded_transport(self.api, User(user, groups=_MASTERS))
        return Client(transport, user_agent=agent, clock=self._clock)

    def _add_agent(self, client: Client, node: NodeConfig, number: int) -> None:
        context = NodeContext(
            node.name,
            number,
            # A name like a pod's address: nothing of this machine has it.
            f"172.18.0.{number + 2}",
            self.foundation.settings.data_dir / PODS_DIRECTORY / node.name,
            client,
            self._runtime,
            self.network,
            self._sources,
            EventRecorder(client, "kubelet", host=node.name, metrics=self._agent_factory.metrics),
            self.settings,
            capacity(self.settings.most_pods),
        )
        tainted = node.control_plane and self.config.tainted
        agent = NodeAgent(
            context, self._agent_factory, control_plane=node.control_plane, tainted=tainted
        )
        self.agents.append(agent)
        connection = AgentConnection(agent, self._runtime, self._clock)
        self.api.connections.register(PLAIN, node.name, connection)

    async def complete(self) -> None:
        """Have nodes, published ports and the API server's own Service before saying ready."""
        try:
            self._published = await publish(self.network, self.config.published)
        except PortTaken as error:
            raise StartError(f"cannot publish a port of the edge: {error}") from error
        await self._ensure_kubernetes_service()
        with contextlib.suppress(AlreadyExists):
            client = self._client("system:apiserver", "skerry/apiserver")
            await client.create(STORAGE_CLASSES, standard_class())
        for agent in self.agents:
            await agent.heartbeat.register()
        await self._scheduler.ready.wait()

    async def _ensure_kubernetes_service(self) -> None:
        client = self._client("system:apiserver", "skerry/apiserver")
        with contextlib.suppress(NotFound):
            await client.get(SERVICES, "kubernetes", "default")
            return
        address = self.config.service_network.partition("/")[0].rpartition(".")[0] + ".1"
        port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}
        labels = {"component": "apiserver", "provider": "kubernetes"}
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
            "spec": {"type": "ClusterIP", "clusterIP": address, "ports": [port]},
        }
        await client.create(SERVICES, service, "default")

    async def run(self) -> None:
        """Run controllers, scheduler and agents until cancelled."""
        controllers = self._client("system:kube-controller-manager", "skerry/controllers")
        factory = InformerFactory(controllers, ids=self._ids)
        scheduler = self._client("system:kube-scheduler", "skerry/scheduler")
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(factory.run())
                tasks.create_task(run_workload_controllers(controllers, factory, self._volumes))
                tasks.create_task(run_scheduler(self._scheduler, scheduler, self._ids))
                tasks.create_task(self._agent_factory.run())
                tasks.create_task(self._services.run())
                tasks.create_task(self._proxy.run())
                cleanup = run_volume_cleanup(Path(self._volumes), self._sources.volumes)
                tasks.create_task(cleanup)
                for agent in self.agents:
                    tasks.create_task(agent.recorder.run())
                    tasks.create_task(agent.run())
        finally:
            for forwarder in self._published:
                await forwarder.stop()


def _scheduler_options() -> SchedulerOptions:
    return SchedulerOptions(
        load(_SCHEDULER), "embedded", secure_port=None, delegate_authorization=False
    )
