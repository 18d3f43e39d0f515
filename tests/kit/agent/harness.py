"""Node agents on the real engine, with real processes; events are awaited, nobody sleeps."""

from __future__ import annotations

import asyncio
import functools
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.edge.agent.abilities import can_filter, of_bubblewrap, of_namespaces, of_processes
from skerry.edge.agent.agent import NodeAgent
from skerry.edge.agent.catalogue import Catalogue
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.dns import DnsServer
from skerry.edge.agent.host_access import HostAccess
from skerry.edge.agent.http_proxy import HttpProxy
from skerry.edge.agent.leftovers import end_all
from skerry.edge.agent.network import Backend, Network
from skerry.edge.agent.oci import OciProgram, OciRuntime
from skerry.edge.agent.pod_network import GATEWAY, NoNamespaces, PodNetwork, end_network
from skerry.edge.agent.process_runtime import ProcessRuntime
from skerry.edge.agent.services import ServiceProxy
from skerry.edge.agent.settings import AgentSettings
from skerry.edge.agent.sources import CONFIG_MAPS, PodSources
from skerry.runtime.client import DeleteOptions
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.faults import Rates

PODS = GroupVersionResource("", "v1", "pods")
EVENTS = GroupVersionResource("", "v1", "events")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
QUICK = AgentSettings(backoff_seconds=0.05, mount_retry_seconds=0.05)
DNS = "10.96.0.10"
_PATIENCE = 60.0


class Edge(EngineWorld):
    """An engine; ``agents`` runs node agents over one directory."""

    def __init__(self, root: Path, nodes: int = 1, *, namespaces: bool = False) -> None:
        super().__init__(1, Rates(0.0, 0.0, 0.0, 0.0, 0.0))
        self.root = root
        self._keeping = root / "keeper"
        self.namespaces = namespaces
        self.oci: OciProgram | None = None
        # Who runs the edge, as far as it goes by that who its containers may be.
        self.user = os.geteuid()
        self.bubblewrap = ""
        # What a test's pods may have of the machine: nothing but the test's own folder.
        self.access = HostAccess((str(root),), network=True)
        self.names = [f"node-{n}" for n in range(nodes)]
        self.network = Network()
        self.by_name: dict[str, NodeAgent] = {}
        self._changed = asyncio.Event()
        self._watched = self.factory.informer(PODS)
        self._watched.add_handler(lambda old, new: self._changed.set())

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Serve; at the end nothing is left running."""
        try:
            async with self.running():
                await self.direct.create(ACCOUNTS, {"metadata": {"name": "default"}}, "default")
                yield
        finally:
            end_all(self.root)
            end_network(self._keeping)

    @asynccontextmanager
    async def agents(self, settings: AgentSettings = QUICK) -> AsyncIterator[None]:
        """Run agents while inside; processes outlive them."""
        inside = await self._inside()
        self.network = Network(inside)
        # A factory of their own, which ends with them as an agent's process would.
        factory = InformerFactory(self.direct, ids=self.ids)
        sources = PodSources(self.direct, factory, self.root / "claims")
        services = ServiceProxy(self.network, factory, ("127.0.0.1", 1))
        proxy = HttpProxy(services.find, self.network.dial)
        if inside is not None:
            proxy.listening = inside.listening(GATEWAY, 3128)
        sources.reached_at = services.reached_at
        sources.proxy_url = proxy.url
        plain = self.runtime()
        runtime = OciRuntime(plain, self.oci) if self.namespaces else plain
        failure: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(part.run()) for part in (factory, services, proxy)]
            if inside is not None:
                asked = DnsServer(services.names.records)
                places = (inside.datagrams(DNS, 53), inside.listening(DNS, 53))
                started.append(tasks.create_task(asked.run(*places)))
            for number, name in enumerate(self.names):
                context = NodeContext(
                    name,
                    number,
                    f"172.18.0.{number + 2}",
                    self.root / name,
                    self.direct,
                    runtime,
                    self.network,
                    sources,
                    EventRecorder(self.direct, "kubelet", host=name),
                    settings,
                    dns_address=DNS,
                    access=self.access,
                )
                agent = self.by_name[name] = NodeAgent(context, factory)
                await agent.heartbeat.register()
                started += [
                    tasks.create_task(agent.recorder.run()),
                    tasks.create_task(agent.run()),
                ]
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
                failure = error
            for task in started:
                task.cancel()
        if inside is not None:
            inside.close()
        if failure is not None:
            raise failure

    def runtime(self) -> ProcessRuntime:
        catalogue = Catalogue(self.root / "images.yaml", self.root / "images")
        private, seccomp = (str(self.root),), can_filter()
        if self.namespaces:
            found = of_namespaces(self.user, seccomp=seccomp)
            return ProcessRuntime(catalogue, "namespaces", found, private=private)
        if self.bubblewrap:
            found = of_bubblewrap(users=True, seccomp=seccomp)
            return ProcessRuntime(catalogue, "bubblewrap", found, self.bubblewrap, private)
        return ProcessRuntime(catalogue, abilities=of_processes(os.geteuid(), seccomp=seccomp))

    async def _inside(self) -> PodNetwork | None:
        """Return the network of pods that have namespaces, as an agent's process finds it."""
        if not self.namespaces:
            return None
        found = PodNetwork(self._keeping, "10.96.0.0/16")
        await found.start()
        return found

    async def run_pod(self, name: str, *containers: Object, **spec: Any) -> Object:
        """Create a pod that is bound already."""
        metadata = spec.pop("metadata", {})
        pod = {
            "metadata": {"name": name, **metadata},
            "spec": {
                "nodeName": self.names[0],
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 2,
                "containers": list(containers),
                **spec,
            },
        }
        return await self.direct.create(PODS, pod, "default")

    async def configure(self, name: str, **data: str) -> None:
        await self.direct.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data}, "default")

    async def pod(self, name: str, wanted: Callable[[Object], bool]) -> Object:
        """Wait until a pod is as wanted, and return it."""

        async def look() -> Object:
            while True:
                self._changed.clear()
                for pod in self._watched.index.objects():
                    if pod["metadata"]["name"] == name and wanted(pod):
                        return pod
                await self._changed.wait()

        try:
            async with asyncio.timeout(_PATIENCE):
                return await look()
        except TimeoutError as error:
            last = [p.get("status") for p in self._watched.index.objects()]
            raise AssertionError(f"pod {name} never became as wanted: {last}") from error

    async def gone(self, name: str) -> None:
        """Wait until there is no pod of that name."""
        async with asyncio.timeout(_PATIENCE):
            while any(p["metadata"]["name"] == name for p in self._watched.index.objects()):
                self._changed.clear()
                await self._changed.wait()

    async def delete(self, name: str, grace: int | None = None) -> None:
        await self.direct.delete(PODS, name, "default", DeleteOptions(grace_seconds=grace))

    async def has_event(self, name: str, reason: str) -> None:
        """Wait until a pod has an event of that reason."""
        async with asyncio.timeout(_PATIENCE):
            while reason not in await self.reasons(name):
                await asyncio.sleep(0.01)  # nothing tells when one is recorded

    async def reasons(self, name: str) -> list[str]:
        """Return the reasons of a pod's events, once all recorded ones are written."""
        for agent in self.by_name.values():
            await agent.recorder.flush()
        events = (await self.direct.list(EVENTS)).items
        return [e["reason"] for e in events if e["involvedObject"]["name"] == name]


def container(image: str, *command: str, name: str = "c", **more: Any) -> Object:
    found: Object = {"name": name, "image": image, **more}
    if command:
        found["command"] = list(command)
    return found


def ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def phase(wanted: str) -> Callable[[Object], bool]:
    return lambda pod: (pod.get("status") or {}).get("phase") == wanted


def first(pod: Object) -> Object:
    """Return the status of the only container, empty while there is none."""
    found: Object = ((pod.get("status") or {}).get("containerStatuses") or [{}])[0]
    return found


async def fetched(edge: Edge, backend: Backend | None, path: str = "/") -> str:
    """Return the answer of an HTTP server, which may only just be starting."""
    assert backend is not None
    for _ in range(200):
        try:
            reader, writer = await edge.network.connect(backend)
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)  # nothing tells when a process listens
            continue
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer.partition(b"\r\n\r\n")[2].decode()
    raise AssertionError(f"nobody listens at {backend}")


@functools.cache
def why_no_namespaces() -> str:
    """Return why pods cannot have namespaces on this machine; empty when they can."""

    async def tried(place: Path) -> str:
        network = PodNetwork(place, "10.96.0.0/16")
        try:
            await network.start()
        except NoNamespaces as error:
            return str(error)
        network.close()
        return ""

    with tempfile.TemporaryDirectory() as name:
        with ThreadPoolExecutor(1) as other:  # a loop of its own, whoever asks
            found = other.submit(lambda: asyncio.run(tried(Path(name)))).result()
        end_network(Path(name))
    return found
