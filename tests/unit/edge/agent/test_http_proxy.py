"""Names of Services for programs that speak HTTP, over real sockets on loopback."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from skerry.edge.agent.http_proxy import BadHead, HttpProxy, parse_head
from skerry.edge.agent.network import Backend, Streams


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()


def credentials(user: str) -> str:
    return f"Proxy-Authorization: Basic {base64.b64encode(user.encode()).decode()}"


def test_a_request_is_passed_on_as_a_server_expects_it() -> None:
    asked = parse_head(
        head(
            "GET http://web:8080/a?b=c HTTP/1.1",
            "Host: web:8080",
            "Proxy-Connection: keep-alive",
            "Connection: keep-alive",
            "X-Own: 1",
            credentials("shop:"),
        )
    )
    assert (asked.host, asked.port, asked.namespace) == ("web", 8080, "shop")
    assert asked.head == head(
        "GET /a?b=c HTTP/1.1", "Host: web:8080", "X-Own: 1", "Connection: close"
    )


def test_a_url_without_port_and_path_means_the_usual_ones() -> None:
    asked = parse_head(head("GET http://web HTTP/1.1"))
    assert (asked.port, asked.namespace) == (80, "default")
    assert asked.head.startswith(b"GET / HTTP/1.1\r\n")


def test_a_tunnel_has_no_head_to_pass_on() -> None:
    asked = parse_head(head("CONNECT web.shop:443 HTTP/1.1", credentials("shop:x")))
    assert (asked.host, asked.port, asked.namespace, asked.head) == ("web.shop", 443, "shop", b"")


@pytest.mark.parametrize(
    "line",
    [
        "GET /path HTTP/1.1",
        "GET https://web/ HTTP/1.1",
        "GET http:/// HTTP/1.1",
        "GET http://web:none/ HTTP/1.1",
        "CONNECT web HTTP/1.1",
        "CONNECT web:none HTTP/1.1",
        "nonsense",
    ],
)
def test_what_cannot_be_passed_on_is_refused(line: str) -> None:
    with pytest.raises(BadHead):
        parse_head(head(line))


@pytest.mark.parametrize("field", ["Basic %%%", "Basic /////w==", "Basic"])
def test_a_user_that_cannot_be_read_is_of_the_default_namespace(field: str) -> None:
    asked = parse_head(head("GET http://web/ HTTP/1.1", f"Proxy-Authorization: {field}"))
    assert asked.namespace == "default"


# -- over sockets ----------------------------------------------------------------------------------


class Bench:
    """A proxy, and a server that sends back what it was sent."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, str]] = []
        self.backend: Backend | None = None
        self.proxy = HttpProxy(self._find, self._connect)

    def _find(self, host: str, port: int, namespace: str) -> Backend | None:
        self.asked.append((host, port, namespace))
        return self.backend

    async def _connect(self, backend: Backend) -> Streams:
        """Try once: what listens is there before it is asked for."""
        return await asyncio.open_connection(*backend)

    async def send(self, *messages: bytes) -> bytes:
        url = self.proxy.url("shop")
        port = int(url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for message in messages:
            writer.write(message)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"> " + await reader.read())
    writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[Backend]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()
    server.close()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    assert made.proxy.url("shop") == ""
    task = asyncio.create_task(made.proxy.run())
    while not made.proxy.url("shop"):
        await asyncio.sleep(0)
    yield made
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert made.proxy.url("shop") == ""


async def test_a_request_reaches_the_backend_of_its_namespace(bench: Bench) -> None:
    async with listening() as bench.backend:
        answer = await bench.send(
            head("POST http://web/a HTTP/1.1", credentials("shop:")), b"the body"
        )
    assert bench.asked == [("web", 80, "shop")]
    assert answer == b"> " + head("POST /a HTTP/1.1", "Connection: close") + b"the body"


async def test_a_tunnel_carries_whatever_is_sent(bench: Bench) -> None:
    async with listening() as bench.backend:
        answer = await bench.send(head("CONNECT web:443 HTTP/1.1"), b"\x16\x03bytes")
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n> \x16\x03bytes"


async def test_a_name_nobody_serves_is_unavailable_and_a_dead_backend_a_bad_gateway(
    bench: Bench,
) -> None:
    assert (await bench.send(head("GET http://web/ HTTP/1.1"))).startswith(b"HTTP/1.1 503 ")
    async with listening() as bench.backend:
        pass
    assert (await bench.send(head("GET http://web/ HTTP/1.1"))).startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize("sent", [b"GET http://w", b"nonsense\r\n\r\n", bytes(70_000)])
async def test_what_is_no_request_is_a_bad_request_and_the_proxy_goes_on(
    bench: Bench, sent: bytes
) -> None:
    assert (await bench.send(sent)).startswith(b"HTTP/1.1 400 ")
    async with listening() as bench.backend:
        assert b"> GET / " in await bench.send(head("GET http://web/ HTTP/1.1"))
