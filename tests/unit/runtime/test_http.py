"""One handler behind a socket and without one: a client cannot tell which."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson
import pytest

from skerry.api.errors import NotFound, TooManyRequests
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.http import HttpTransport, Limits
from skerry.runtime.transport import (
    AnswerTimeout,
    ConnectTimeout,
    Transport,
    TransportError,
    Unreachable,
    lines,
    whole,
)
from skerry.server.http.message import Answer, Request, Response, Sender, Stream
from skerry.server.http.packing import PackedSender
from skerry.server.http.server import HttpServer

Serving = Callable[[], Awaitable[None]]


class Server:
    """A handler that does what the path says, and remembers."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.ended = asyncio.Event()
        self.began = asyncio.Event()

    async def handle(self, request: Request) -> Answer:
        self.seen.append(request)
        match request.path:
            case "/missing":
                raise NotFound.of("", "pods", "web")
            case "/busy":
                raise TooManyRequests("slow down", 7)
            case "/bug":
                raise ZeroDivisionError
            case "/parts":
                return Response(body=[b"one,", b"two"], headers=[("X-Kind", "parts")])
            case "/hang":
                await self._hang()
            case "/watch":
                return Stream(self._watch)
            case "/flood":
                return Stream(self._flood)
            case "/short":
                return Stream(self._short)
            case _:
                pass
        return Response(status=201 if request.method == "POST" else 200, body=request.body)

    async def _hang(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def _short(self, sender: Sender) -> None:
        sender.write(b"a\n")
        await sender.drain()
        sender.write(b"b\nc")

    async def _watch(self, sender: Sender) -> None:
        sender.write(b"first\nsec")
        sender.write(b"ond\n\n")
        await sender.drain()
        await self._hang()

    async def _flood(self, sender: Sender) -> None:
        try:
            while True:
                sender.write(b"x" * 65536)
                await sender.drain()
        except ConnectionError:
            pass
        finally:
            self.ended.set()


@asynccontextmanager
async def reached(kind: str, server: Server) -> AsyncIterator[Transport]:
    if kind == "embedded":
        embedded = EmbeddedTransport(server.handle, Request)
        yield embedded
        await embedded.close()
        return
    listening = HttpServer(server.handle)
    port = await listening.start()
    transport = HttpTransport("127.0.0.1", port, None)
    try:
        yield transport
    finally:
        await transport.close()
        await listening.stop(0.1)


both = pytest.mark.parametrize("kind", ["socket", "embedded"])


@both
async def test_a_request_arrives_whole_and_so_does_the_answer(kind: str) -> None:
    server = Server()
    async with reached(kind, server) as transport:
        answer = await transport.request("POST", "/a%20b", "x=1", {"X-Test": "yes"}, b"body")
        assert (answer.status, answer.body) == (201, b"body")
        assert answer.headers["content-type"] == "application/json"
        parts = await transport.request("GET", "/parts")
        assert (parts.body, parts.headers["x-kind"]) == (b"one,two", "parts")
    request = server.seen[0]
    assert (request.method, request.path, request.query) == ("POST", "/a b", {"x": "1"})
    assert request.headers["x-test"] == "yes"


@both
async def test_failures_arrive_as_status_objects(kind: str) -> None:
    async with reached(kind, Server()) as transport:
        missing = await transport.request("GET", "/missing")
        assert missing.status == 404
        assert orjson.loads(missing.body)["details"] == {"name": "web", "kind": "pods"}
        busy = await transport.request("GET", "/busy")
        assert (busy.status, busy.headers["retry-after"]) == (429, "7")
        bug = await transport.request("GET", "/bug")
        assert bug.status == 500
        assert b"ZeroDivision" not in bug.body


@both
async def test_a_stream_gives_records_as_they_come_and_ends_with_its_reader(kind: str) -> None:
    server = Server()
    async with reached(kind, server) as transport:
        async with transport.stream("GET", "/watch") as answer:
            assert answer.status == 200
            records = lines(aiter(answer))
            assert [await anext(records), await anext(records)] == [b"first", b"second"]
        await server.ended.wait()


@both
async def test_a_stream_that_ends_drops_its_unfinished_record(kind: str) -> None:
    async with reached(kind, Server()) as transport:
        async with transport.stream("GET", "/short") as answer:
            assert [line async for line in lines(aiter(answer))] == [b"a", b"b"]
        assert (await transport.request("GET", "/short")).body == b"a\nb\nc"


@both
async def test_a_refused_stream_can_be_read_as_an_answer(kind: str) -> None:
    async with (
        reached(kind, Server()) as transport,
        transport.stream("GET", "/missing") as answer,
    ):
        assert answer.status == 404
        assert orjson.loads(await whole(answer))["reason"] == "NotFound"


@both
async def test_a_slow_reader_slows_the_writer_down(kind: str) -> None:
    server = Server()
    async with reached(kind, server) as transport:
        async with transport.stream("GET", "/flood") as answer:
            chunks = aiter(answer)
            total = 0
            while total < 20_000_000:
                total += len(await anext(chunks))
        await server.ended.wait()


@both
async def test_what_is_raised_inside_a_stream_leaves_as_itself(kind: str) -> None:
    async with reached(kind, Server()) as transport:
        with pytest.raises(KeyError, match="mine"):
            async with transport.stream("GET", "/watch"):
                raise KeyError("mine")


@both
async def test_a_cancelled_request_leaves_the_transport_usable(kind: str) -> None:
    server = Server()
    async with reached(kind, server) as transport:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(transport.request("GET", "/hang"))
            await server.began.wait()
            task.cancel()
        assert task.cancelled()
        assert (await transport.request("GET", "/again")).status == 200


@both
async def test_a_closed_transport_says_so(kind: str) -> None:
    async with reached(kind, Server()) as transport:
        await transport.close()
        with pytest.raises(TransportError, match="closed"):
            await transport.request("GET", "/")


async def test_many_requests_share_few_connections() -> None:
    server = Server()
    listening = HttpServer(server.handle)
    port = await listening.start()
    transport = HttpTransport("127.0.0.1", port, None, limits=Limits(connections=4))
    async with asyncio.TaskGroup() as tasks:
        answers = [
            tasks.create_task(transport.request("POST", "/", body=str(number).encode()))
            for number in range(100)
        ]
    assert [task.result().body for task in answers] == [str(n).encode() for n in range(100)]
    assert len({request.peer.address for request in server.seen}) <= 4
    await transport.close()
    await listening.stop(0.1)


async def test_connections_that_a_burst_needed_are_not_kept_for_good() -> None:
    listening = HttpServer(Server().handle)
    port = await listening.start()
    for seconds, left in ((0.0, {1}), (3600.0, set(range(2, 9)))):
        limits = Limits(idle_seconds=seconds)
        transport = HttpTransport("127.0.0.1", port, None, limits=limits)
        await asyncio.gather(*(transport.request("GET", "/") for _ in range(8)))
        for _ in range(8):
            await transport.request("GET", "/")
        assert len(transport._idle) in left
        await transport.close()
    await listening.stop(0.1)


async def test_an_answer_that_does_not_come_in_time_is_given_up() -> None:
    server = Server()
    listening = HttpServer(server.handle)
    port = await listening.start()
    transport = HttpTransport("127.0.0.1", port, None, limits=Limits(request_seconds=0.05))
    with pytest.raises(AnswerTimeout, match=r"GET /hang: no answer within 0\.05 s"):
        await transport.request("GET", "/hang")
    await transport.close()
    await listening.stop(0.1)


async def test_a_line_break_cannot_smuggle_a_request() -> None:
    transport = HttpTransport("127.0.0.1", 1, None)
    for path, headers in (("/a\r\nX: y", {}), ("/a b", {}), ("/a", {"x": "1\r\ny: 2"})):
        with pytest.raises(ValueError, match="line breaks"):
            await transport.request("GET", path, "", headers)


async def test_a_server_without_time_for_a_handshake_differs_from_one_that_is_away() -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    port = silent.getsockname()[1]
    tls = ssl.create_default_context()
    transport = HttpTransport("127.0.0.1", port, tls, limits=Limits(connect_seconds=0.2))
    with pytest.raises(ConnectTimeout, match="timed out"):
        await transport.request("GET", "/")
    silent.close()
    with pytest.raises(Unreachable) as refused:
        await transport.request("GET", "/")
    assert not isinstance(refused.value, ConnectTimeout)
    await transport.close()


async def test_nobody_listening_is_a_transport_error() -> None:
    transport = HttpTransport("127.0.0.1", 1, None)
    with pytest.raises(TransportError, match=r"cannot connect to 127\.0\.0\.1:1"):
        await transport.request("GET", "/")


class Scripted:
    """A raw server: each connection gets the next script of byte strings, then is closed."""

    def __init__(self, *scripts: list[bytes]) -> None:
        self._scripts = list(scripts)
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in self._scripts.pop(0):
            head = await reader.readuntil(b"\r\n\r\n")
            if b"content-length" in head:
                await reader.read(1000)
            self.requests += 1
            writer.write(answer)
            await writer.drain()
        writer.close()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@asynccontextmanager
async def scripted(*scripts: list[bytes]) -> AsyncIterator[tuple[HttpTransport, Scripted]]:
    script = Scripted(*scripts)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    transport = HttpTransport("127.0.0.1", server.sockets[0].getsockname()[1], None)
    async with server:
        yield transport, script
        await transport.close()


async def test_a_read_that_met_a_closing_connection_is_sent_again() -> None:
    # The second request goes out on a connection that answers nothing and closes.
    async with scripted([OK, b""], [OK]) as (transport, script):
        assert (await transport.request("GET", "/")).body == b"ok"
        assert (await transport.request("GET", "/")).body == b"ok"
        assert script.requests == 3


async def test_a_write_that_met_a_closing_connection_is_not() -> None:
    async with scripted([OK, b""], [OK]) as (transport, script):
        await transport.request("GET", "/")
        with pytest.raises(TransportError, match="connection lost"):
            await transport.request("POST", "/", body=b"x")
        assert script.requests == 2


async def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    async with scripted([b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it"]) as (client, _):
        assert (await client.request("GET", "/")).body == b"all of it"


@pytest.mark.parametrize(
    "broken",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nonly",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        b"garbage\r\n\r\n",
    ],
)
async def test_a_broken_answer_is_never_taken_for_a_whole_one(broken: bytes) -> None:
    async with scripted([broken]) as (client, _):
        with pytest.raises(TransportError):
            await client.request("GET", "/")


async def test_gzip_is_unpacked_whole_and_streamed() -> None:
    async def handle(request: Request) -> Answer:
        return Response(body=b'{"some": "text"}' * 20_000)

    listening = HttpServer(handle)
    port = await listening.start()
    transport = HttpTransport("127.0.0.1", port, None, gzip=True)
    answer = await transport.request("GET", "/")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.body == b'{"some": "text"}' * 20_000
    async with transport.stream("GET", "/") as stream:
        assert await whole(stream) == answer.body
    await transport.close()
    await listening.stop(0.1)


async def test_a_packed_stream_is_read_as_it_comes_though_its_packer_rests_in_between() -> None:
    went_on = asyncio.Event()

    async def run(sender: Sender) -> None:
        packed = PackedSender(sender)
        packed.write(b"one\n")
        await went_on.wait()
        packed.rest()
        packed.write(b"two\n")
        packed.write(b"three\n")

    async def handle(request: Request) -> Answer:
        return Stream(run=run, headers=(("Content-Encoding", "gzip"),))

    listening = HttpServer(handle)
    port = await listening.start()
    transport = HttpTransport("127.0.0.1", port, None, gzip=True)
    async with asyncio.timeout(60), transport.stream("GET", "/") as stream:
        chunks = lines(aiter(stream))
        assert await anext(chunks) == b"one"
        went_on.set()
        assert [line async for line in chunks] == [b"two", b"three"]
    await transport.close()
    await listening.stop(0.1)
