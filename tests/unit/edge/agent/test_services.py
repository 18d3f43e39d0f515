"""Services of an edge: where each is reached, and which endpoint a connection goes to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.network import Network, PodPorts
from skerry.edge.agent.services import ServiceProxy
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from tests.kit.sim.twin import Twin

VERSIONS = count(1)
API_SERVER = ("127.0.0.1", 6443)


def service(name: str = "web", address: str = "10.96.0.7", **more: Any) -> Object:
    ports = more.pop("ports", [{"name": "http", "port": 80}])
    metadata = {"name": name, "namespace": more.pop("namespace", "ns"), "uid": name}
    spec = {"clusterIP": address, "clusterIPs": [address], "ports": ports, **more}
    return {"metadata": {**metadata, "resourceVersion": str(next(VERSIONS))}, "spec": spec}


def slice_of(name: str, *addresses: str, ready: bool = True, port: int = 8080) -> Object:
    labels = {"kubernetes.io/service-name": name}
    metadata = {"name": f"{name}-x", "namespace": "ns", "uid": f"{name}-x", "labels": labels}
    endpoints = [{"addresses": [a], "conditions": {"ready": ready}} for a in addresses]
    ports = [{"name": "http", "port": port}]
    return {
        "metadata": {**metadata, "resourceVersion": str(next(VERSIONS))},
        "endpoints": endpoints,
        "ports": ports,
    }


class Desk:
    def __init__(self) -> None:
        self.network = Network()
        factory = InformerFactory(Client(Twin()), ids=SeededIds(1))
        self.proxy = ServiceProxy(self.network, factory, API_SERVER)
        self.services, self.slices = self.proxy._services, self.proxy._slices

    def join(self, address: str, port: int, real: int) -> None:
        """Have a pod whose port is some port of this machine."""
        self.network.join(address, PodPorts(address, "node-1", {port: real}, {}, inside=False))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.proxy.run())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def desk() -> Desk:
    return Desk()


async def test_endpoints_that_are_ready_take_turns(desk: Desk) -> None:
    desk.slices.apply("ADDED", slice_of("web", "10.244.0.2", "10.244.0.3"))
    desk.join("10.244.0.2", 8080, 20001)
    desk.join("10.244.0.3", 8080, 20002)
    found = [desk.proxy.backend(("ns", "web", "http")) for _ in range(4)]
    assert [place[1] for place in found if place] == [20001, 20002, 20001, 20002]
    desk.slices.apply("MODIFIED", slice_of("web", "10.244.0.2", ready=False))
    assert desk.proxy.backend(("ns", "web", "http")) is None
    assert desk.proxy.backend(("ns", "web", "other")) is None


async def test_an_endpoint_whose_pod_is_not_here_is_passed_over(desk: Desk) -> None:
    desk.slices.apply("ADDED", slice_of("web", "10.244.0.2", "10.244.0.3"))
    desk.join("10.244.0.3", 8080, 20002)
    assert {desk.proxy.backend(("ns", "web", "http")) for _ in range(3)} == {("127.0.0.1", 20002)}


async def test_endpoints_outside_this_edge_are_reached_as_they_are(desk: Desk) -> None:
    desk.slices.apply("ADDED", slice_of("web", "192.0.2.9", port=443))
    assert desk.proxy.backend(("ns", "web", "http")) == ("192.0.2.9", 443)


async def test_the_api_server_is_where_it_really_is(desk: Desk) -> None:
    kubernetes = service("kubernetes", "10.96.0.1", namespace="default")
    assert desk.proxy.backend(("default", "kubernetes", "https")) == API_SERVER
    assert desk.proxy.reached_at(kubernetes, {"port": 443}) == API_SERVER


@pytest.mark.parametrize(
    "host", ["web", "web.ns", "web.ns.svc", "web.ns.svc.cluster.local", "web.ns.svc.cluster.local."]
)
async def test_a_service_is_found_by_every_name_it_has(desk: Desk, host: str) -> None:
    desk.services.apply("ADDED", service())
    desk.slices.apply("ADDED", slice_of("web", "192.0.2.9"))
    assert desk.proxy.find(host, 80, "ns") == ("192.0.2.9", 8080)
    assert desk.proxy.find(host, 81, "ns") is None


async def test_a_short_name_is_of_the_askers_namespace_and_other_hosts_are_themselves(
    desk: Desk,
) -> None:
    desk.services.apply("ADDED", service())
    desk.slices.apply("ADDED", slice_of("web", "192.0.2.9"))
    desk.join("10.244.0.2", 8080, 20001)
    assert desk.proxy.find("web", 80, "other") == ("web", 80)
    assert desk.proxy.find("10.96.0.7", 80, "other") == ("192.0.2.9", 8080)
    assert desk.proxy.find("10.244.0.2", 8080, "other") == ("127.0.0.1", 20001)
    assert desk.proxy.find("example.com", 443, "ns") == ("example.com", 443)


async def test_a_service_without_endpoints_is_served_by_nobody(desk: Desk) -> None:
    desk.services.apply("ADDED", service())
    assert desk.proxy.find("web", 80, "ns") is None


async def test_a_headless_service_is_not_what_the_name_none_means(desk: Desk) -> None:
    desk.services.apply("ADDED", service(address="None"))
    assert desk.proxy.find("None", 80, "ns") == ("None", 80)


# -- listening -------------------------------------------------------------------------------------


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"> " + await reader.read())
    writer.close()


async def test_a_connection_to_a_services_port_reaches_an_endpoint(desk: Desk) -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    desk.join("10.244.0.2", 8080, server.sockets[0].getsockname()[1])
    async with desk.running():
        desk.services.apply("ADDED", service())
        desk.slices.apply("ADDED", slice_of("web", "10.244.0.2"))
        place = desk.proxy.reached_at(service(), {"name": "http", "port": 80})
        assert place is not None
        reader, writer = await asyncio.open_connection(*place)
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"> hello"
        writer.close()
        await writer.wait_closed()
    server.close()


async def test_a_port_is_known_at_once_and_gone_with_its_service(desk: Desk) -> None:
    port = {"name": "http", "port": 80}
    async with desk.running():
        desk.services.apply("ADDED", service())
        first = desk.proxy.reached_at(service(), port)
        assert first is not None
        desk.services.apply("MODIFIED", service(ports=[port, {"name": "more", "port": 81}]))
        assert desk.proxy.reached_at(service(), port) == first
        assert desk.proxy.reached_at(service(), {"name": "more", "port": 81})
        desk.services.apply("DELETED", service())
        assert desk.proxy.reached_at(service(), port) is None
        with pytest.raises(OSError, match=r"Connect call failed|refused"):
            await asyncio.open_connection(*first)


async def test_the_port_of_a_service_is_free_in_the_moment_it_goes(desk: Desk) -> None:
    """Its address may be another Service's at once."""
    async with desk.running():
        desk.services.apply("ADDED", service())
        place = desk.proxy.reached_at(service(), {"name": "http", "port": 80})
        assert place is not None
        desk.services.apply("DELETED", service())
        with socket.socket() as taking:
            taking.bind(place)


@pytest.mark.parametrize(
    "other",
    [
        service(type="ExternalName"),
        service(ports=[{"name": "http", "port": 80, "protocol": "UDP"}]),
        service("kubernetes", namespace="default"),
    ],
    ids=["a name of elsewhere", "datagrams", "the API server"],
)
async def test_nothing_listens_for_what_is_not_forwarded(desk: Desk, other: Object) -> None:
    async with desk.running():
        desk.services.apply("ADDED", other)
        assert desk.proxy._forwarders == {}


async def test_a_node_port_leads_to_the_services_endpoints(desk: Desk) -> None:
    desk.slices.apply("ADDED", slice_of("web", "192.0.2.9"))
    async with desk.running():
        desk.services.apply(
            "ADDED", service(ports=[{"name": "http", "port": 80, "nodePort": 30080}])
        )
        assert desk.network.node_port("node-1", 30080) == ("192.0.2.9", 8080)
        desk.services.apply("DELETED", service())
        assert desk.network.node_port("node-1", 30080) is None
