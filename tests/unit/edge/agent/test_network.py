"""Ports and names: forwarding, published ports, Services by name for pods that speak HTTP."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from skerry.edge.agent.http_proxy import BadHead, parse_head
from skerry.edge.agent.network import (
    LOOPBACK,
    Forwarder,
    Network,
    PodPorts,
    PortTaken,
    Published,
    free_port,
    is_near,
    publish,
)
from skerry.edge.agent.pod_network import NetworkLost, end_network
from skerry.edge.agent.services import SLICES
from skerry.edge.agent.sources import SERVICES
from tests.kit.agent.fixtures import httpd, log, pages
from tests.kit.agent.harness import (
    Edge,
    container,
    fetched,
    first,
    phase,
    ready,
    why_no_namespaces,
)


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A server that answers everything in capitals, once the client has finished."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def said(port: int, text: bytes) -> bytes:
    """Return the answer; a connection that is reset has none."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    answer = b""
    with contextlib.suppress(ConnectionError):
        writer.write(text)
        writer.write_eof()
        answer = await reader.read()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return answer


class TestForwarding:
    async def test_bytes_go_both_ways_and_ends_are_passed_on(self) -> None:
        async with echo() as port:
            forwarder = Forwarder(lambda: (LOOPBACK, port), "test")
            await forwarder.start(LOOPBACK, 0)
            text = b"hello " * 100_000
            assert await said(forwarder.port, text) == text.upper()
            await forwarder.stop()

    async def test_a_port_nobody_serves_closes_at_once(self) -> None:
        forwarder = Forwarder(lambda: None, "test")
        await forwarder.start(LOOPBACK, 0)
        assert await said(forwarder.port, b"anybody?") == b""
        await forwarder.stop()

    async def test_a_taken_port_is_reported_and_nothing_stays_open(self) -> None:
        async with echo() as taken:
            free = free_port()
            network = Network()
            ports = [Published("n", 1, free), Published("n", 2, taken)]
            with pytest.raises(PortTaken, match=str(taken)):
                await publish(network, ports)
            with pytest.raises(ConnectionRefusedError):
                await said(free, b"")

    async def test_a_published_port_follows_whoever_has_the_host_port(self) -> None:
        network = Network()
        async with echo() as port:
            wanted = free_port()
            (forwarder,) = await publish(network, [Published("n", 8081, wanted)])
            assert await said(wanted, b"x") == b""
            network.join("uid", PodPorts("10.244.0.2", "n", {80: port}, {8081: 80}))
            assert await said(wanted, b"x") == b"X"
            network.leave("uid")
            assert await said(wanted, b"x") == b""
            await forwarder.stop()


class TestAddresses:
    def test_host_ports_belong_to_their_node(self) -> None:
        network = Network()
        network.join("a", PodPorts("10.244.0.2", "one", {80: 4000}, {8081: 80}))
        network.join("b", PodPorts("10.244.1.2", "two", {80: 4001}, {8081: 80}))
        assert network.node_port("one", 8081) == (LOOPBACK, 4000)
        assert network.node_port("two", 8081) == (LOOPBACK, 4001)
        assert network.node_port("one", 9) is None

    def test_addresses_are_not_given_twice_and_undeclared_ports_are_themselves(self) -> None:
        network = Network()
        seen = set()
        for number in range(300):
            # Kept from the moment it is given: pods that are seen at once join later.
            address = network.fresh_address(0, str(number))
            assert address not in seen
            seen.add(address)
        network.join("0", PodPorts("10.244.0.2", "n"))
        network.leave("1")
        assert network.fresh_address(0, "new") == "10.244.0.3"
        assert network.pod_port("0", 9000) == (LOOPBACK, 9000)
        assert network.at("10.9.9.9", 80) is None


class TestProxyRequests:
    def test_an_absolute_request_is_passed_on_in_its_own_form(self) -> None:
        user = base64.b64encode(b"shop:").decode()
        head = (
            f"GET http://web:8080/a?b=1 HTTP/1.1\r\nHost: web:8080\r\n"
            f"Proxy-Authorization: Basic {user}\r\nConnection: keep-alive\r\n\r\n"
        )
        asked = parse_head(head.encode())
        assert (asked.host, asked.port, asked.namespace) == ("web", 8080, "shop")
        assert asked.head == (b"GET /a?b=1 HTTP/1.1\r\nHost: web:8080\r\nConnection: close\r\n\r\n")

    def test_a_tunnel_has_no_head(self) -> None:
        asked = parse_head(b"CONNECT web.shop.svc:443 HTTP/1.1\r\n\r\n")
        assert (asked.host, asked.port, asked.head) == ("web.shop.svc", 443, b"")

    @pytest.mark.parametrize(
        "head", [b"GET / HTTP/1.1\r\n\r\n", b"nonsense\r\n\r\n", b"GET ftp://x/ HTTP/1.1\r\n\r\n"]
    )
    def test_other_requests_are_refused(self, head: bytes) -> None:
        with pytest.raises(BadHead):
            parse_head(head)


@pytest.mark.parametrize("namespaces", [False, True], ids=["processes", "namespaces"])
async def test_pods_reach_services_by_name_and_by_environment(
    tmp_path: Path, namespaces: bool
) -> None:
    if namespaces and (refused := why_no_namespaces()):
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    edge = Edge(tmp_path, namespaces=namespaces)
    async with edge.up(), edge.agents():
        service = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}
        await edge.direct.create(
            SERVICES, {"metadata": {"name": "web"}, "spec": service}, "default"
        )
        await edge.configure("site", **{"index.html": "found"})
        await edge.run_pod("server", httpd(), volumes=[pages("site")])
        pod = await edge.pod("server", lambda p: bool((p.get("status") or {}).get("podIP")))
        endpoint = {"addresses": [pod["status"]["podIP"]], "conditions": {"ready": True}}
        labels = {"kubernetes.io/service-name": "web"}
        await edge.direct.create(
            SLICES,
            {
                "metadata": {"name": "web-1", "labels": labels},
                "addressType": "IPv4",
                "endpoints": [endpoint],
                "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
            },
            "default",
        )
        script = (
            "import os, urllib.request as u\n"
            "host, port = os.environ['WEB_SERVICE_HOST'], os.environ['WEB_SERVICE_PORT']\n"
            "for url in ('http://web/', 'http://web.default.svc.cluster.local/',"
            " f'http://{host}:{port}/'):\n"
            "    print(u.urlopen(url).read().decode())\n"
        )
        if namespaces:
            # Then names and addresses are real, for programs that know no proxy as well.
            script += (
                "import socket\n"
                "with socket.create_connection(('web', 80)) as s:\n"
                "    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')\n"
                "    print(s.makefile().read().split()[-1])\n"
            )
        await edge.run_pod(
            "client", container("python", "python", "-c", script), restartPolicy="Never"
        )
        client = await edge.pod("client", lambda p: phase("Succeeded")(p) or phase("Failed")(p))
        assert await log(edge, client) == "found\n" * (4 if namespaces else 3)


async def test_pods_have_processes_files_and_an_address_of_their_own(tmp_path: Path) -> None:
    if refused := why_no_namespaces():
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    edge = Edge(tmp_path, namespaces=True)
    script = (
        "import os, socket\n"
        "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))\n"
        "print(socket.gethostname(), socket.gethostbyname('alone'), os.listdir('/tmp'))\n"
        "open('/made', 'w').close()\n"
        "try:\n    open('/usr/made', 'w')\n"
        "except OSError as error:\n    print(error.strerror)\n"
    )
    async with edge.up(), edge.agents():
        await edge.run_pod(
            "alone", container("python", "python", "-c", script), restartPolicy="Never"
        )
        pod = await edge.pod("alone", lambda p: phase("Succeeded")(p) or phase("Failed")(p))
        text = await log(edge, pod)
    address = pod["status"]["podIP"]
    # Nothing of the machine's, but the way to the interpreter where that lies below /tmp.
    prefix = Path(sys.prefix)
    shown = [prefix.parts[2]] if prefix.is_relative_to("/tmp") else []
    assert text == f"[1, 2]\nalone {address} {shown}\nRead-only file system\n"
    assert not Path("/made").exists()


async def test_a_lost_network_restarts_what_was_on_it(tmp_path: Path) -> None:
    if refused := why_no_namespaces():
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    edge = Edge(tmp_path, namespaces=True)
    async with edge.up():
        await edge.configure("site", **{"index.html": "found"})
        async with edge.agents():
            await edge.run_pod("server", httpd(), volumes=[pages("site")])
            before = await edge.pod("server", ready)
            assert edge.network.inside is not None
            end_network(tmp_path / "keeper")
            with pytest.raises(NetworkLost):
                await edge.network.inside.lost()
        async with edge.agents():
            after = await edge.pod("server", lambda p: ready(p) and first(p)["restartCount"] == 1)
            uid = after["metadata"]["uid"]
            assert await fetched(edge, edge.network.pod_port(uid, 80)) == "found"
            assert after["status"]["podIP"] == before["status"]["podIP"]
            assert "SandboxChanged" in await edge.reasons("server")


async def test_datagrams_reach_a_service_and_answers_come_back(tmp_path: Path) -> None:
    if refused := why_no_namespaces():
        pytest.skip(f"pods cannot have namespaces here: {refused}")
    edge = Edge(tmp_path, namespaces=True)
    serving = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 5353))\n"
        "while True:\n    data, who = s.recvfrom(100); s.sendto(data.upper(), who)\n"
    )
    asking = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.2)\n"
        "for _ in range(50):\n"
        "    s.sendto(b'hello', ('echo', 53))\n"
        "    try:\n        print(*s.recvfrom(100)); break\n"
        "    except TimeoutError:\n        pass\n"
    )
    async with edge.up(), edge.agents():
        port = {"name": "u", "port": 53, "targetPort": 5353, "protocol": "UDP"}
        service = {"clusterIP": "10.96.0.53", "ports": [port]}
        await edge.direct.create(
            SERVICES, {"metadata": {"name": "echo"}, "spec": service}, "default"
        )
        await edge.run_pod("server", container("python", "python", "-c", serving))
        pod = await edge.pod("server", ready)
        endpoint = {"addresses": [pod["status"]["podIP"]], "conditions": {"ready": True}}
        await edge.direct.create(
            SLICES,
            {
                "metadata": {"name": "e", "labels": {"kubernetes.io/service-name": "echo"}},
                "addressType": "IPv4",
                "endpoints": [endpoint],
                "ports": [{"name": "u", "port": 5353, "protocol": "UDP"}],
            },
            "default",
        )
        asked = container("python", "python", "-c", asking)
        await edge.run_pod("client", asked, restartPolicy="Never")
        client = await edge.pod("client", lambda p: phase("Succeeded")(p) or phase("Failed")(p))
        assert await log(edge, client) == "b'HELLO' ('10.96.0.53', 53)\n"


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("127.0.0.1", True),
        ("127.255.1.2", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("169.254.169.254", True),
        ("fe80::1%eth0", True),
        ("0.0.0.0", True),
        ("::", True),
        ("224.0.0.1", True),
        ("10.0.0.1", False),
        ("192.0.2.7", False),
        ("2001:db8::1", False),
    ],
)
def test_what_is_near_a_machine_is_not_outside_it(address: str, near: bool) -> None:
    assert is_near(address) is near
