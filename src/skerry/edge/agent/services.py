"""Services of an edge: something listens for each of their ports.

Where pods have a network of their own, that is the Service's own address and port, in the router;
otherwise a loopback port of the machine, which pods learn by environment, as they learn a
Service's address in any cluster. A connection goes to one of the Service's ready endpoints, in
turn; which they are is read when it comes, so a change of endpoints needs nothing done. Node ports
are what published ports of the machine may lead to.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Hashable, Iterable

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.edge.agent.datagrams import DatagramForwarder
from skerry.edge.agent.network import LOOPBACK, Backend, Forwarder, Network, PortTaken, Resolve
from skerry.edge.agent.runtime import CannotStart
from skerry.edge.agent.service_names import ServiceNames
from skerry.edge.agent.sources import SERVICES
from skerry.kit.log import Logger
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import InformerFactory

SLICES = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
_BY_SERVICE = "service"
_SERVICE_NAME = "kubernetes.io/service-name"

_log = Logger("network")

_PortKey = tuple[str, str, str]  # namespace, Service, port name
_Place = tuple[str, str, int]  # protocol, address, port
_API_SERVER = ("default", "kubernetes")
DNS_SERVICE = ("kube-system", "kube-dns")


def _service_of(obj: Object) -> Iterable[Hashable]:
    name = (obj["metadata"].get("labels") or {}).get(_SERVICE_NAME)
    return ((obj["metadata"].get("namespace", ""), name),) if name else ()


class ServiceProxy:
    """Forwards connections to Services."""

    def __init__(self, network: Network, factory: InformerFactory, api_server: Backend) -> None:
        """*api_server* is where the Service ``kubernetes`` is really reached."""
        self._network = network
        self._api_server = api_server
        self._services = factory.informer(SERVICES)
        self._slices = factory.informer(SLICES)
        self._slices.index.add_index(_BY_SERVICE, _service_of)
        self._forwarders: dict[_PortKey, Forwarder | DatagramForwarder] = {}
        self.names = ServiceNames(
            lambda namespace, name: self._services.index.get(Key("", namespace, name)),
            lambda namespace, name: self._slices.index.by(_BY_SERVICE, (namespace, name)),
        )
        self._turns: dict[_PortKey, int] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def reached_at(self, service: Object, port: Object) -> Backend | None:
        """Return where a Service's port is reached on this machine; None when it is not."""
        metadata = service["metadata"]
        if self._network.inside is not None:
            address = service["spec"].get("clusterIP")
            return None if address in (None, "", "None") else (address, int(port["port"]))
        if (metadata["namespace"], metadata["name"]) == _API_SERVER:
            return self._api_server
        key = (metadata["namespace"], metadata["name"], str(port.get("name") or ""))
        forwarder = self._forwarders.get(key)
        return (LOOPBACK, forwarder.port) if isinstance(forwarder, Forwarder) else None

    def backend(self, key: _PortKey) -> Backend | None:
        """Return the next ready endpoint of a Service's port."""
        namespace, service, name = key
        if (namespace, service) == _API_SERVER:
            return self._api_server
        found: list[tuple[str, int]] = []
        for item in self._slices.index.by(_BY_SERVICE, (namespace, service)):
            for port in item.get("ports") or ():
                if (port.get("name") or "") == name and port.get("port"):
                    found += [(address, int(port["port"])) for address in _ready(item)]
        if not found:
            return None
        found.sort()
        turn = self._turns[key] = self._turns.get(key, -1) + 1
        for offset in range(len(found)):
            place = self._network.at(*found[(turn + offset) % len(found)])
            if place is not None:
                return place
        # Endpoints somebody else made, outside this edge.
        return found[turn % len(found)]

    def find(self, host: str, port: int, namespace: str) -> Backend | None:
        """Return where a host and port lead, as seen from *namespace*.

        A Service by name or cluster address, a pod by address; any other host is itself. None for
        a Service that has no such port or no ready endpoint.
        """
        service = self._named(host, namespace) or self._at_address(host)
        if service is None:
            return self._network.at(host, port) or (host, port)
        place = key_of(service)
        for item in service["spec"].get("ports") or ():
            if int(item["port"]) == port:
                return self.backend((place.namespace, place.name, str(item.get("name") or "")))
        return None

    def _named(self, host: str, namespace: str) -> Object | None:
        """Return the Service a name means: ``web``, ``web.ns``, ``web.ns.svc[.cluster.local]``."""
        short = host.removesuffix(".").removesuffix(".cluster.local").removesuffix(".svc")
        name, _, other = short.partition(".")
        return self._services.index.get(Key("", other or namespace, name))

    def _at_address(self, host: str) -> Object | None:
        for service in self._services.index.objects():
            if host in (service["spec"].get("clusterIPs") or ()) and host != "None":
                return service
        return None

    async def run(self) -> None:
        """Forward until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._services.add_handler(self._changed)
                await asyncio.Event().wait()
        finally:
            self._tasks = None
            for forwarder in self._forwarders.values():
                with contextlib.suppress(OSError):
                    await forwarder.stop()

    def _changed(self, old: Object | None, new: Object | None) -> None:
        wanted = {} if new is None else self._places(new)
        before = {} if old is None else self._places(old)
        for key, place in before.items():
            if wanted.get(key) != place and (forwarder := self._forwarders.pop(key, None)):
                # At once: the address may be another Service's in the same moment.
                forwarder.release()
                if self._tasks is not None:
                    self._tasks.create_task(forwarder.stop())
        for key in wanted.keys() - self._forwarders.keys():
            # At once: a pod started next must find the port in its environment.
            try:
                forwarder = self._bound(key, wanted[key])
            except (PortTaken, CannotStart, OSError) as error:
                _log.error("no port for a service", key="/".join(key), error=error)
                continue
            self._forwarders[key] = forwarder
            if self._tasks is not None:
                self._tasks.create_task(forwarder.serve())
        self._set_node_ports()

    def _bound(self, key: _PortKey, place: _Place) -> Forwarder | DatagramForwarder:
        """Return what forwards a port, with its place taken."""
        protocol, address, port = place
        inside, name = self._network.inside, "/".join(key)
        if protocol == "UDP" and inside is not None:
            passing = DatagramForwarder(self._resolving(key), name, inside.datagram_socket)
            passing.take(inside.datagrams(address, port))
            return passing
        forwarder = Forwarder(self._resolving(key), name, self._network.dial)
        if inside is None:
            forwarder.bind(address, port)
        else:
            forwarder.take(inside.listening(address, port))
        return forwarder

    def _places(self, service: Object) -> dict[_PortKey, _Place]:
        """Return where each port of a Service is to be listened for."""
        spec, key = service["spec"], key_of(service)
        place = (key.namespace, key.name)
        inside = self._network.inside is not None
        address = spec.get("clusterIP") or "None"
        if spec.get("type") == "ExternalName" or place == (DNS_SERVICE if inside else _API_SERVER):
            return {}
        if inside and address == "None":
            return {}
        # Without a network of their own pods could not be given addresses for UDP.
        served = ("TCP", "UDP") if inside else ("TCP",)
        found: dict[_PortKey, _Place] = {}
        for port in spec.get("ports") or ():
            protocol = port.get("protocol", "TCP")
            if protocol in served:
                real = (address, int(port["port"])) if inside else (LOOPBACK, 0)
                found[(*place, str(port.get("name") or ""))] = (protocol, *real)
        return found

    def _resolving(self, key: _PortKey) -> Resolve:
        return lambda: self.backend(key)

    def _set_node_ports(self) -> None:
        found: dict[int, Resolve] = {}
        for service in self._services.index.objects():
            place = key_of(service)
            for port in service["spec"].get("ports") or ():
                if port.get("nodePort"):
                    key = (place.namespace, place.name, str(port.get("name") or ""))
                    found[int(port["nodePort"])] = self._resolving(key)
        self._network.set_node_ports(found)


def _ready(item: Object) -> list[str]:
    return [
        address
        for endpoint in item.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready", True)
        for address in endpoint.get("addresses") or ()
    ]
