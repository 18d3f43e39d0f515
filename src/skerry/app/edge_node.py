"""An embedded edge cluster: API server, controllers, scheduler and node agents in one process.

Everything beside the server speaks to it through the in-process transport, each part in its own
name, so that audit and field managers tell them apart as in a cluster of many processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from skerry.api.errors import AlreadyExists, NotFound
from skerry.api.keys import PLAIN
from skerry.api.objects import Object
from skerry.app.api_server import ApiServer
from skerry.app.core_controllers import embedded_transport
from skerry.app.edge_config import (
    NETWORK_DIRECTORY,
    PODS_DIRECTORY,
    EdgeConfig,
    NodeConfig,
    save_warning,
)
from skerry.app.edge_connect import AgentConnection
from skerry.app.kubernetes_service import kubernetes_service
from skerry.app.security import build_security
from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import (
    ServerAssembly,
    ServerDeps,
    ServerFlavor,
    StartError,
    plain_assembly,
)
from skerry.app.workload_controllers import run_workload_controllers
from skerry.controllers.workload.kinds import SERVICES, STORAGE_CLASSES
from skerry.controllers.workload.volume.decide import standard_class
from skerry.edge.agent import abilities, bubblewrap, control_groups
from skerry.edge.agent.agent import NodeAgent
from skerry.edge.agent.catalogue import Catalogue
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.control_groups import ControlGroups
from skerry.edge.agent.dns import DnsServer
from skerry.edge.agent.host_access import HostAccess
from skerry.edge.agent.http_proxy import HttpProxy
from skerry.edge.agent.network import LOOPBACK, Forwarder, Network, PortTaken, publish
from skerry.edge.agent.node import capacity, isolation_condition
from skerry.edge.agent.oci import OciRuntime, oci_program
from skerry.edge.agent.pod_network import GATEWAY, NoNamespaces, PodNetwork
from skerry.edge.agent.process_runtime import ProcessRuntime
from skerry.edge.agent.runtime import ContainerRuntime
from skerry.edge.agent.services import ServiceProxy
from skerry.edge.agent.settings import AgentSettings
from skerry.edge.agent.sources import PodSources
from skerry.edge.agent.volume_cleanup import run_volume_cleanup
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.runtime.client import Client
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory
from skerry.scheduler.config.load import load
from skerry.scheduler.service import SchedulerOptions, run_scheduler
from skerry.server.user import User

log = Logger("edge")
_MASTERS = ("system:masters", "system:authenticated")
CATALOGUE_FILE = "images.yaml"
_DNS_PORT = 53
# As HTTP proxies usually have; nobody else listens at the gateway.
_PROXY_PORT = 3128
# There is only one scheduler, and it goes with the server: nobody to elect among.
_SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""


def edge_flavor(config: EdgeConfig, settings: AgentSettings | None = None) -> ServerFlavor:
    """Return the kind of server an edge is."""

    async def assembly(deps: ServerDeps) -> ServerAssembly:
        found = await plain_assembly(deps)
        machine = await offered(config, deps.settings.data_dir.resolve())
        machine = replace(machine, control_groups=control_groups.found(config.name))
        _, isolated, _, message = isolation_condition(machine.runtime)
        save_warning(deps.settings.data_dir, "" if isolated == "True" else message)
        edge = Edge(config, deps, found.api, machine, settings or AgentSettings())
        found.beside.append(edge.run)
        found.complete = edge.complete
        return found

    return ServerFlavor(f"edge {config.name}", build_security, assembly)


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


@dataclass(frozen=True, slots=True)
class Machine:
    """What runs the containers of an edge: a runtime, and a network for pods if they have one."""

    runtime: ContainerRuntime
    pod_network: PodNetwork | None = None
    control_groups: ControlGroups = field(default_factory=ControlGroups)


async def offered(config: EdgeConfig, directory: Path) -> Machine:
    """Return what the configuration asks of this machine; raises ``StartError``."""
    named = config.catalogue
    listed = Path(named) if named else directory / CATALOGUE_FILE
    catalogue = Catalogue(listed, directory / "images")
    wanted, refused = config.runtime, ""
    private = (str(directory),)
    if wanted in ("auto", "oci", "namespaces"):
        network = PodNetwork(directory / NETWORK_DIRECTORY, config.service_network)
        try:
            await network.start()
        except NoNamespaces as error:
            refused = str(error)
            log.info("pods cannot have namespaces here", error=refused)
        else:
            return Machine(_namespaced(catalogue, wanted, private), network)
    seccomp = abilities.can_filter()
    if wanted in ("auto", "bubblewrap") and (found := _bubblewrapped(catalogue, private, seccomp)):
        return Machine(found)
    if wanted in ("auto", "processes"):
        own = abilities.of_processes(os.geteuid(), seccomp=seccomp)
        log.warning(
            "pods share the files, processes and network of this machine: it gives them none of "
            "their own",
            error=refused,
        )
        return Machine(ProcessRuntime(catalogue, abilities=own))
    reason = f": {refused}" if refused else ""
    raise StartError(f"runtime {wanted!r} cannot be had on this machine{reason}")


def _bubblewrapped(
    catalogue: Catalogue, private: Sequence[str], seccomp: bool
) -> ProcessRuntime | None:
    """Return a runtime that uses bubblewrap, if this machine has one that works."""
    program = shutil.which("bwrap")
    for users in (True, False):
        if program and bubblewrap.works(program, users=users):
            found = abilities.of_bubblewrap(users=users, seccomp=seccomp)
            return ProcessRuntime(catalogue, "bubblewrap", found, program, private)
    return None


def _namespaced(catalogue: Catalogue, wanted: str, private: Sequence[str]) -> ContainerRuntime:
    """Return a runtime for pods with namespaces, which may have images of their own."""
    program = oci_program()
    if program is None and wanted == "oci":
        raise StartError("runtime 'oci' takes crun or runc, and this machine has neither")
    found = abilities.of_namespaces(os.geteuid(), seccomp=abilities.can_filter())
    plain = ProcessRuntime(catalogue, "namespaces", found, private=private)
    return OciRuntime(plain, program)


@dataclass
class Edge:
    """Everything of an edge beside its API server."""

    config: EdgeConfig
    deps: ServerDeps
    api: ApiServer
    machine: Machine
    settings: AgentSettings
    agents: list[NodeAgent] = field(default_factory=list)

    def __post_init__(self) -> None:
        f, directory = self.deps, self.deps.settings.data_dir
        self._clock: Clock = f.clock
        self._ids: IdSource = f.ids
        self._inside = self.machine.pod_network
        self.network = Network(self._inside)
        self._runtime = self.machine.runtime
        self._volumes = str((directory / "volumes").resolve())
        self._published: list[Forwarder] = []
        self._scheduler = _scheduler_options()
        agent_client = self._client("system:node-agent", "skerry/node-agent")
        self._agent_factory = InformerFactory(agent_client, ids=f.ids)
        self._sources = PodSources(agent_client, self._agent_factory, Path(self._volumes))
        port = int(f.url.rpartition(":")[2])
        self._services = ServiceProxy(self.network, self._agent_factory, (LOOPBACK, port))
        self.network.shared = frozenset({(LOOPBACK, port)})
        self._proxy = HttpProxy(self._services.find, self.network.dial)
        self._dns_address = _address_in(self.config.service_network, 10)
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
            self.deps.settings.data_dir / PODS_DIRECTORY / node.name,
            client,
            self._runtime,
            self.network,
            self._sources,
            EventRecorder(client, "kubelet", host=node.name, metrics=self._agent_factory.metrics),
            self.settings,
            capacity(self.settings.max_pods),
            self._dns_address,
            HostAccess(
                self.config.host_paths,
                self.config.host_network,
                (str(self.deps.settings.data_dir.resolve()),),
            ),
            self.machine.control_groups,
        )
        tainted = node.control_plane and self.config.tainted
        agent = NodeAgent(
            context, self._agent_factory, control_plane=node.control_plane, tainted=tainted
        )
        self.agents.append(agent)
        connection = AgentConnection(agent, self._runtime, self.network, self._clock)
        self.api.connections.register(PLAIN, node.name, connection)

    async def complete(self) -> None:
        """Have nodes, published ports and the API server's own Service before saying ready."""
        try:
            self._published = await publish(self.network, self.config.published)
        except PortTaken as error:
            raise StartError(f"cannot publish a port of the edge: {error}") from error
        await self._ensure_service(kubernetes_service(self.config.service_network, 6443))
        if self._inside is not None:
            await self._ensure_service(_dns_service(self._dns_address))
        with contextlib.suppress(AlreadyExists):
            client = self._client("system:apiserver", "skerry/apiserver")
            await client.create(STORAGE_CLASSES, standard_class())
        for agent in self.agents:
            await agent.heartbeat.register()
        await self._scheduler.ready.wait()

    async def _ensure_service(self, service: Object) -> None:
        client = self._client("system:apiserver", "skerry/apiserver")
        name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        try:
            await client.get(SERVICES, name, namespace)
        except NotFound:
            await client.create(SERVICES, service, namespace)

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
                self._serve_inside(tasks)
                tasks.create_task(self._proxy.run())
                cleanup = run_volume_cleanup(Path(self._volumes), self._sources.volumes)
                tasks.create_task(cleanup)
                for agent in self.agents:
                    tasks.create_task(agent.recorder.run())
                    tasks.create_task(agent.run())
        finally:
            for forwarder in self._published:
                await forwarder.stop()
            if self._inside is not None:
                self._inside.close()

    def _serve_inside(self, tasks: asyncio.TaskGroup) -> None:
        """Serve names and the way out on the pods' own network, and end when that ends."""
        if self._inside is None:
            return
        self._proxy.listening = self._inside.listening(GATEWAY, _PROXY_PORT)
        names = DnsServer(self._services.names.records)
        place = (self._dns_address, _DNS_PORT)
        asked = names.run(self._inside.datagrams(*place), self._inside.listening(*place))
        tasks.create_task(asked)
        tasks.create_task(self._inside.lost())


def _address_in(network: str, number: int) -> str:
    """Return an address of a network by its number."""
    return str(ipaddress.ip_network(network)[number])


def _dns_service(address: str) -> Object:
    """Return the Service that says where names are served; who serves them is no pod."""
    name = "kube-dns"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": {"k8s-app": name, "kubernetes.io/name": "CoreDNS"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "ports": [
                {"name": "dns", "port": _DNS_PORT, "protocol": "UDP"},
                {"name": "dns-tcp", "port": _DNS_PORT, "protocol": "TCP"},
            ],
        },
    }


def _scheduler_options() -> SchedulerOptions:
    return SchedulerOptions(
        load(_SCHEDULER), "embedded", secure_port=None, delegate_authorization=False
    )
