"""The edge's end of a tunnel: asks its cluster what it may be asked for, with its own rights."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import orjson
import pytest

from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.tunnel import EdgeTunnel
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.logic.machinery.edges.tunnel import opening_of, read_answer
from skerry.runtime.http import HttpTransport, Upgraded
from skerry.runtime.transport import TransportError
from skerry.wire.http1 import RequestHead, parsed_request
from skerry.wire.tunnel import PROTOCOL, StreamReset, Tunnel

SHOP = "/api/v1/namespaces/shop/pods"
WEBSOCKET = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": "abc"}
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Cluster:
    """The edge's cluster: notes what it is asked, greets, and echoes on what it is handed."""

    def __init__(self) -> None:
        self.asked: list[RequestHead] = []
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = parsed_request(await reader.readuntil(b"\r\n\r\n"))
        self.asked.append(head)
        if "missing" in head.target:
            body = b'{"kind": "Status", "message": "not found"}'
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n")
            writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
        elif head.field("upgrade"):
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n")
            while (piece := await reader.read(1024)) and piece != b"bye":
                writer.write(piece)
        else:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            writer.write(b"6\r\nline 1\r\n")
            if "follow" in head.target:
                await reader.read()
            else:
                writer.write(b"0\r\n\r\n")
        self.left.set()
        writer.close()


class Hub:
    """The hub's end, as far as a syncer meets it."""

    def __init__(self, status: int = 101) -> None:
        self.status = status
        self.dialled: list[RequestHead] = []
        self.tunnels: asyncio.Queue[tuple[Tunnel, asyncio.StreamWriter]] = asyncio.Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.dialled.append(parsed_request(await reader.readuntil(b"\r\n\r\n")))
        writer.write(b"HTTP/1.1 %d X\r\nupgrade: x\r\n\r\n" % self.status)
        if self.status == 101:
            tunnel = Tunnel(Upgraded(101, {}, reader, writer), asyncio.Event)
            self.tunnels.put_nowait((tunnel, writer))
            while data := await reader.read(65536):
                tunnel.receive(data)
        writer.close()


class Waits(SystemClock):
    """A clock on which no wait takes time; they are counted."""

    def __init__(self) -> None:
        self.waits: asyncio.Queue[float] = asyncio.Queue()

    async def sleep(self, seconds: float) -> None:
        self.waits.put_nowait(seconds)
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def served(answer: Callable[..., Awaitable[None]]) -> AsyncIterator[HttpTransport]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = HttpTransport("127.0.0.1", port, None, authorization="Bearer edge")
    try:
        yield transport
    finally:
        await transport.close()
        server.close()


@contextlib.asynccontextmanager
async def dialling(
    cluster: Cluster, hub: Hub, clock: SystemClock | None = None
) -> AsyncIterator[SyncerMetrics]:
    metrics = SyncerMetrics()
    async with served(cluster.serve) as edge, served(hub.serve) as line:
        tunnel = EdgeTunnel(
            lambda: line.upgraded(PROTOCOL, "/extensions/v1/tunnel"),
            edge,
            clock=clock or SystemClock(),
            ids=SystemIds(),
            metrics=metrics,
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(tunnel.run())
            yield metrics
            running.cancel()


async def test_a_log_is_read_with_the_syncers_own_credentials() -> None:
    cluster, hub = Cluster(), Hub()
    async with dialling(cluster, hub) as metrics:
        tunnel, _ = await hub.tunnels.get()
        stream = tunnel.open(
            opening_of("GET", f"{SHOP}/web/log", "tailLines=1", {"authorization": "Bearer person"})
        )
        stream.end()
        assert read_answer(await stream.answered(), upgrade=False).status == 200
        assert (await stream.read(), await stream.read()) == (b"line 1", b"")
        (asked,) = cluster.asked
        assert (asked.method, asked.target) == ("GET", f"{SHOP}/web/log?tailLines=1")
        assert asked.field("authorization") == "Bearer edge"
        assert metrics.tunnel_connected._value.get() == 1
    assert hub.dialled[0].field("upgrade") == PROTOCOL


async def test_a_connection_is_handed_over_and_ends_with_either_side() -> None:
    cluster, hub = Cluster(), Hub()
    async with dialling(cluster, hub):
        tunnel, _ = await hub.tunnels.get()
        stream = tunnel.open(opening_of("GET", f"{SHOP}/web/exec", "command=sh", WEBSOCKET))
        answer = read_answer(await stream.answered(), upgrade=True)
        assert (answer.status, answer.protocol) == (101, "websocket")
        await stream.write(b"hello")
        assert await stream.read() == b"hello"
        await stream.write(b"bye")
        assert await stream.read() == b""
        cluster.left.clear()
        second = tunnel.open(opening_of("GET", f"{SHOP}/web/exec", "command=sh", WEBSOCKET))
        await second.answered()
        second.reset("the user has left")
        await asyncio.wait_for(cluster.left.wait(), 20)


async def test_a_session_that_the_hub_ends_lets_go_of_the_cluster() -> None:
    cluster, hub = Cluster(), Hub()
    async with dialling(cluster, hub):
        tunnel, _ = await hub.tunnels.get()
        stream = tunnel.open(opening_of("GET", f"{SHOP}/web/log", "follow=true", {}))
        stream.end()
        assert await stream.answered()
        assert await stream.read() == b"line 1"
        stream.reset("revoked")
        await asyncio.wait_for(cluster.left.wait(), 20)


async def test_the_clusters_refusal_is_passed_on_as_it_is() -> None:
    cluster, hub = Cluster(), Hub()
    async with dialling(cluster, hub):
        tunnel, _ = await hub.tunnels.get()
        for path, headers in ((f"{SHOP}/missing/log", {}), (f"{SHOP}/missing/exec", WEBSOCKET)):
            stream = tunnel.open(opening_of("GET", path, "", headers))
            stream.end()
            assert read_answer(await stream.answered(), upgrade=bool(headers)).status == 404
            assert orjson.loads(await stream.read())["message"] == "not found"


async def test_a_hub_cannot_have_the_edge_asked_for_anything_else() -> None:
    cluster, hub = Cluster(), Hub()
    async with dialling(cluster, hub):
        tunnel, _ = await hub.tunnels.get()
        for path in ("/api/v1/secrets", "/api/v1/namespaces/shop/secrets/x", "/metrics"):
            raw = b'{"method": "GET", "path": "%s", "query": "", "headers": {}}'
            stream = tunnel.open(raw % path.encode())
            with pytest.raises(StreamReset, match="want /api/v1/namespaces"):
                await stream.answered()
    assert cluster.asked == []


async def test_a_lost_tunnel_is_dialled_again() -> None:
    cluster, hub, clock = Cluster(), Hub(), Waits()
    async with dialling(cluster, hub, clock) as metrics:
        _, writer = await hub.tunnels.get()
        writer.close()
        tunnel, _ = await hub.tunnels.get()
        stream = tunnel.open(opening_of("GET", SHOP, "", {}))
        assert await stream.answered()
        assert clock.waits.get_nowait() >= 1
        assert metrics.tunnel_sessions.labels("pods")._value.get() == 1


async def test_a_hub_that_offers_none_is_asked_ever_more_seldom() -> None:
    cluster, hub, clock = Cluster(), Hub(404), Waits()
    async with dialling(cluster, hub, clock):
        waits = [await clock.waits.get() for _ in range(9)]
    assert waits[0] < 2
    assert waits[-1] >= 120


async def test_an_edge_cluster_that_is_away_is_named_as_the_cause() -> None:
    hub = Hub()
    async with served(hub.serve) as line:
        edge = HttpTransport("127.0.0.1", 1, None)
        tunnel = EdgeTunnel(
            lambda: line.upgraded(PROTOCOL, "/"), edge,
            clock=SystemClock(), ids=SystemIds(), metrics=SyncerMetrics(),
        )  # fmt: skip
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(tunnel.run())
            end, _ = await hub.tunnels.get()
            stream = end.open(opening_of("GET", SHOP, "", {}))
            with pytest.raises(StreamReset, match="the edge's cluster: cannot connect"):
                await stream.answered()
            running.cancel()
    with pytest.raises(TransportError):
        async with edge.upgraded("x", "/"):
            pass
