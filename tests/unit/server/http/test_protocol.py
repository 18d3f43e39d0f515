"""The connection as a client meets it, byte for byte."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable

import pytest

from skerry.api.errors import NotFound, TooManyRequests
from skerry.server.http.message import Answer, Request, Response, Sender, Stream, Upgrade
from skerry.server.http.settings import HttpSettings
from tests.kit.server.wire import GET, connected, echo, exchange, serving, turn, until


async def test_a_request_reaches_the_handler_whole() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(
            b"PATCH /a%20b/c?x=1&y=%2F HTTP/1.1\r\nHost: h\r\nX-Thing: One\r\n"
            b"Content-Length: 5\r\n\r\nhello"
        )
        echoed = (await client.answer()).json
    assert echoed["method"] == "PATCH"
    assert echoed["path"] == "/a b/c"
    assert echoed["query"] == {"x": "1", "y": "/"}
    assert echoed["headers"]["x-thing"] == "One"
    assert echoed["body"] == "hello"


async def test_a_connection_serves_many_requests_one_after_another() -> None:
    async with serving() as (server, port), connected(port) as client:
        for number in range(5):
            client.send(GET % str(number).encode())
            assert (await client.answer()).json["path"] == f"/{number}"
        assert server.connections == 1


async def test_requests_that_differ_in_their_first_line_alone_are_read_afresh() -> None:
    block = b" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\n\r\n"
    async with serving() as (_, port), connected(port) as client:
        for target, path in ((b"/one?a=1", "/one"), (b"/two", "/two"), (b"/%74hree", "/three")):
            client.send(b"GET " + target + block)
            echoed = (await client.answer()).json
            assert echoed["path"] == path
            assert echoed["headers"]["authorization"] == "Bearer t"
        client.send(b"DELETE /x?q=9" + block)
        echoed = (await client.answer()).json
        assert (echoed["method"], echoed["query"]) == ("DELETE", {"q": "9"})
        client.send(b"GET /bad%zz" + block)
        assert (await client.answer()).status == 400
        client.send(b"GET /other HTTP/1.1\r\nHost: b\r\n\r\n")
        assert (await client.answer()).json["headers"] == {"host": "b"}


async def test_pipelined_requests_are_answered_in_order_though_the_first_is_slow() -> None:
    release = asyncio.Event()

    async def handler(request: Request) -> Answer:
        if request.path == "/0":
            await release.wait()
        return await echo(request)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(b"".join(GET % str(number).encode() for number in range(40)))
        await turn()
        release.set()
        for number in range(40):
            assert (await client.answer()).json["path"] == f"/{number}"


async def test_a_request_split_into_single_bytes_is_the_same_request() -> None:
    raw = b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
    async with serving() as (_, port), connected(port) as client:
        for index in range(len(raw)):
            client.send(raw[index : index + 1])
            await client.writer.drain()
            await turn()
        assert (await client.answer()).json["body"] == "abc"


async def test_a_chunked_body_is_joined_and_its_trailers_are_no_headers() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nAuthorization: Bearer evil\r\n\r\n"
        )
        echoed = (await client.answer()).json
    assert echoed["body"] == "abcde"
    assert "authorization" not in echoed["headers"]


async def test_a_client_that_expects_100_continue_is_invited_to_send() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert (await client.answer()).status == 100
        client.send(b"ok")
        assert (await client.answer()).json["body"] == "ok"


async def test_the_invitation_waits_for_earlier_answers() -> None:
    release = asyncio.Event()

    async def handler(request: Request) -> Answer:
        if request.method == "GET":
            await release.wait()
        return await echo(request)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"first")
        client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        await turn()
        release.set()
        assert (await client.answer()).json["path"] == "/first"
        assert (await client.answer()).status == 100
        client.send(b"ok")
        assert (await client.answer()).json["body"] == "ok"


async def test_an_unknown_expectation_is_refused() -> None:
    async with serving() as (_, port):
        got = await exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 417 ")


async def test_head_gets_the_head_of_get_without_its_body() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(b"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n" + GET % b"y")
        head = await client.answer(head_only=True)
        assert int(head.headers["content-length"]) > 0
        assert (await client.answer()).json["path"] == "/y"


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_without_body_has_no_length_and_the_next_one_follows(status: int) -> None:
    async def handler(request: Request) -> Answer:
        return Response(status) if request.path == "/x" else await echo(request)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"x" + GET % b"y")
        first = await client.answer()
        assert (first.status, "content-length" in first.headers) == (status, False)
        assert (await client.answer()).json["path"] == "/y"


async def test_the_connection_ends_when_the_client_says_so() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + GET % b"ignored")
        got = await client.rest()
    assert got.count(b"HTTP/1.1 200 OK") == 1
    assert b"Connection: close\r\n" in got


async def test_http_1_0_is_served_and_closed_unless_kept() -> None:
    async with serving() as (_, port):
        got = await exchange(port, b"GET / HTTP/1.0\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 200 ")
        async with connected(port) as client:
            for _ in range(2):
                client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                assert (await client.answer()).headers["connection"] == "keep-alive"


async def test_an_offered_upgrade_that_nobody_takes_is_answered_and_ends_the_connection() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(
            b"GET /u HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            b"Upgrade: h2c\r\nHTTP2-Settings: AAM\r\n\r\n" + GET % b"next"
        )
        got = await client.answer()
        assert got.json["headers"]["upgrade"] == "h2c"
        assert got.headers["connection"] == "close"
        assert await client.rest() == b""


async def test_repeated_impersonation_headers_stay_apart() -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(
            b"GET / HTTP/1.1\r\nHost: a\r\nImpersonate-Group: a,b\r\nImpersonate-Group: c\r\n"
            b"Accept: x\r\nAccept: y\r\nAuthorization: Bearer 1\r\nAuthorization: Bearer 2\r\n\r\n"
        )
        headers = (await client.answer()).json["headers"]
    assert headers["impersonate-group"] == "a,b\nc"
    assert headers["accept"] == "x, y"
    assert headers["authorization"] == "Bearer 1"


async def test_an_api_error_becomes_its_status() -> None:
    async def handler(_: Request) -> Answer:
        raise NotFound.of("apps", "deployments", "web")

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"")
        got = await client.answer()
    assert got.status == 404
    assert got.json["message"] == 'deployments.apps "web" not found'
    assert got.headers["content-type"] == "application/json"


async def test_the_headers_of_an_error_are_sent() -> None:
    async def handler(_: Request) -> Answer:
        raise TooManyRequests("too many", 7)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"")
        assert (await client.answer()).headers["retry-after"] == "7"


async def test_a_bug_in_the_handler_is_a_500_that_reports_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def handler(_: Request) -> Answer:
        raise ValueError("the password is hunter2")

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"")
        got = await client.answer()
        assert got.status == 500
        assert got.json["reason"] == "InternalError"
        assert b"hunter2" not in got.body
        assert b"Traceback" not in got.body
        client.send(GET % b"")
        assert (await client.answer()).status == 500
    assert "request failed" in capsys.readouterr().err


async def test_headers_of_every_answer_are_sent_unless_the_answer_has_its_own() -> None:
    async def handler(request: Request) -> Answer:
        own = (("Cache-Control", "public"),) if request.path == "/own" else ()
        return Response(200, b"{}", headers=(("Audit-Id", "7"), *own))

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"x" + GET % b"own")
        got = await client.answer()
        assert got.headers["cache-control"] == "no-cache, private"
        assert got.headers["audit-id"] == "7"
        assert (await client.answer()).headers["cache-control"] == "public"


async def test_a_line_break_in_a_header_value_cannot_start_another_header() -> None:
    async def handler(_: Request) -> Answer:
        return Response(200, b"{}", headers=(("Warning", "a\r\nSet-Cookie: evil=1"),))

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"")
        headers = (await client.answer()).headers
    assert "set-cookie" not in headers


async def test_a_body_in_parts_arrives_joined() -> None:
    parts = [b"[", *[b"%d," % number for number in range(50_000)], b"0]"]

    async def handler(_: Request) -> Answer:
        return Response(200, parts)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"")
        got = await client.answer()
        assert got.body == b"".join(parts)
        assert "content-encoding" not in got.headers


@pytest.mark.parametrize("accept", [b"gzip", b"deflate, gzip;q=0.5", b"*"])
async def test_a_large_body_is_compressed_for_those_who_accept_it(accept: bytes) -> None:
    body = b'{"items":[' + b'{"name":"x"},' * 20_000 + b"{}]}"

    async def handler(_: Request) -> Answer:
        return Response(200, body)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: " + accept + b"\r\n\r\n")
        got = await client.answer()
    assert got.headers["content-encoding"] == "gzip"
    assert got.headers["vary"] == "Accept-Encoding"
    assert len(got.body) < len(body) / 10
    assert gzip.decompress(got.body) == body


@pytest.mark.parametrize("accept", [b"gzip;q=0", b"identity", b"br"])
async def test_a_large_body_is_plain_for_those_who_refuse_gzip(accept: bytes) -> None:
    body = b"x" * 300_000

    async def handler(_: Request) -> Answer:
        return Response(200, body)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: " + accept + b"\r\n\r\n")
        assert (await client.answer()).body == body


async def test_a_body_that_is_encoded_already_is_not_compressed_again() -> None:
    packed = zlib.compress(b"x" * 100, 0) * 3000

    async def handler(_: Request) -> Answer:
        return Response(200, packed, headers=(("Content-Encoding", "deflate"),))

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        assert (await client.answer()).body == packed


async def test_a_stream_arrives_chunk_by_chunk_and_the_connection_goes_on() -> None:
    step = asyncio.Event()

    async def run(sender: Sender) -> None:
        sender.write(b"one")
        sender.write(b"")
        await step.wait()
        sender.write(b"two")
        await sender.drain()

    async def handler(request: Request) -> Answer:
        return Stream(run) if request.path == "/watch" else await echo(request)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"watch")
        status, headers = await client.head()
        assert (status, headers["transfer-encoding"]) == (200, "chunked")
        assert await client.chunk() == b"one"
        step.set()
        assert await client.chunk() == b"two"
        assert await client.chunk() == b""
        client.send(GET % b"next")
        assert (await client.answer()).json["path"] == "/next"


async def test_a_stream_to_http_1_0_is_unframed_and_ends_with_the_connection() -> None:
    async def run(sender: Sender) -> None:
        sender.write(b"one")
        sender.write(b"two")

    async def handler(_: Request) -> Answer:
        return Stream(run)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert (await client.answer()).body == b"onetwo"


async def silent(_: Sender) -> None:
    """End without a word."""


async def empty(sender: Sender) -> None:
    """Write nothing, as what passes pieces on does at their end."""
    sender.write(b"")


async def drained(sender: Sender) -> None:
    """Write nothing, and wait for room."""
    await sender.drain()


@pytest.mark.parametrize("run", [silent, empty, drained])
@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        (b"1.0", b"close", False),
        (b"1.0", b"keep-alive", False),
        (b"1.1", b"close", False),
        (b"1.1", b"keep-alive", True),
    ],
)
async def test_a_stream_that_has_nothing_to_say_is_a_whole_answer(
    version: bytes, connection: bytes, kept: bool, run: Callable[[Sender], Awaitable[None]]
) -> None:
    async def handler(_: Request) -> Answer:
        return Stream(run, 302, "text/plain", (("Location", "/x"),))

    asked = b"GET / HTTP/%b\r\nHost: a\r\nConnection: %b\r\n\r\n" % (version, connection)
    async with serving(handler) as (_, port), connected(port) as client:
        # The first is served by a new task, the others in the callback that reads them.
        for _ in range(3 if kept else 1):
            client.send(asked)
            got = await client.answer()
            assert (got.status, got.headers["location"], got.body) == (302, "/x", b"")
        if kept:
            client.send(asked * 3)
            assert [(await client.answer()).status for _ in range(3)] == [302] * 3
        else:
            assert await client.rest() == b""


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("first", [b"", b"one"])
async def test_a_stream_that_fails_at_once_is_no_whole_answer(version: bytes, first: bytes) -> None:
    async def run(sender: Sender) -> None:
        sender.write(first)
        raise ConnectionResetError("the other end is gone")

    async def handler(_: Request) -> Answer:
        return Stream(run)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(b"GET / HTTP/%b\r\nHost: a\r\n\r\n" % version)
        assert b"0\r\n\r\n" not in await client.rest()


async def test_a_stream_that_the_server_ends_before_it_wrote_is_a_whole_answer() -> None:
    began = asyncio.Event()

    async def handler(_: Request) -> Answer:
        async def run(_: Sender) -> None:
            began.set()
            await asyncio.Event().wait()

        return Stream(run)

    async with serving(handler) as (server, port), connected(port) as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        await began.wait()
        for each in list(server._connections):
            each.drain_and_close()
        assert (await client.answer()).status == 200


async def test_a_stream_is_cancelled_when_its_client_leaves() -> None:
    cancelled = asyncio.Event()

    async def run(sender: Sender) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert sender.closed
            sender.write(b"into the void")
            cancelled.set()
            raise

    async def handler(_: Request) -> Answer:
        return Stream(run)

    async with serving(handler) as (server, port):
        async with connected(port) as client:
            client.send(GET % b"")
            await client.head()
            client.writer.transport.abort()
        async with asyncio.timeout(60):
            await cancelled.wait()
        await until(lambda: server.connections == 0, turn)


async def test_a_plain_handler_finishes_though_its_client_left() -> None:
    started, release, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Answer:
        started.set()
        await release.wait()
        finished.set()
        return await echo(request)

    async with serving(handler) as (server, port):
        async with connected(port) as client:
            client.send(GET % b"")
            await started.wait()
            client.writer.transport.abort()
        await until(lambda: all(c._reader.ended for c in server._connections), turn)
        release.set()
        async with asyncio.timeout(60):
            await finished.wait()


async def test_a_stream_that_never_pauses_ends_when_its_client_has_reset_the_line() -> None:
    client = socket.socket()
    # Closing it resets the connection, in the turn of the loop in which the stream is written.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ended = asyncio.get_running_loop().create_future()

    async def run(sender: Sender) -> None:
        client.close()
        try:
            for _ in range(1000):
                sender.write(b"x" * 65536)
                await sender.drain()
        except ConnectionError as error:
            ended.set_result(error)
            raise
        ended.set_result(None)

    async def handler(_: Request) -> Answer:
        return Stream(run)

    async with serving(handler) as (_, port):
        client.connect(("127.0.0.1", port))
        client.sendall(GET % b"")
        assert isinstance(await ended, ConnectionResetError)


async def test_a_failing_stream_does_not_pass_for_a_complete_one() -> None:
    async def run(sender: Sender) -> None:
        sender.write(b"half")
        await sender.drain()
        raise KeyError("bug")

    async def handler(_: Request) -> Answer:
        return Stream(run)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"")
        got = await client.rest()
    assert not got.endswith(b"0\r\n\r\n")


async def test_a_stream_whose_client_does_not_read_sees_its_queue_grow_and_waits() -> None:
    seen = asyncio.Event()

    async def run(sender: Sender) -> None:
        while sender.queued_bytes < 1_000_000:
            sender.write(b"x" * 100_000)
            await asyncio.sleep(0)
        seen.set()
        await sender.drain()
        sender.write(b"done")

    async def handler(_: Request) -> Answer:
        return Stream(run)

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"")
        async with asyncio.timeout(60):
            await seen.wait()
        got = await client.answer()
    assert got.body.endswith(b"done")


async def test_one_more_connection_than_allowed_is_refused_so() -> None:
    settings = HttpSettings(connections=1, linger_seconds=0.05)
    async with serving(settings=settings) as (_, port), connected(port) as first:
        first.send(GET % b"")
        await first.answer()
        async with connected(port) as second:
            assert (await second.rest()).startswith(b"HTTP/1.1 503 ")


async def test_the_handler_runs_in_one_task_and_context_from_its_first_line() -> None:
    import contextvars

    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="none")

    async def handler(request: Request) -> Answer:
        before = asyncio.current_task()
        mark.set(request.path)
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
        assert asyncio.current_task() is before
        assert before is not None
        return Response(200, mark.get().encode())

    async with serving(handler) as (_, port), connected(port) as client:
        for name in (b"a", b"b", b"c"):
            client.send(GET % name)
            assert (await client.answer()).body == b"/" + name


@pytest.mark.parametrize(
    "raw",
    [
        GET % b"fine",
        b"BROKEN\r\n\r\n",
        GET % (b"x" * 70_000),
        b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["answer", "refusal", "long target", "head", "upgrade"],
)
async def test_every_answer_forbids_guessing_its_type(raw: bytes) -> None:
    async with serving() as (_, port), connected(port) as client:
        client.send(raw)
        assert (await client.head())[1]["x-content-type-options"] == "nosniff"


async def test_a_switch_of_protocols_forbids_it_too_and_cannot_be_split() -> None:
    async def run(_: Sender) -> None:
        return

    async def handler(_: Request) -> Answer:
        chosen = (("Sec-WebSocket-Protocol", "a\r\nSet-Cookie: b"),)
        return Upgrade(run, status=101, headers=chosen, protocol="websocket")

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        status, headers = await client.head()
    assert status == 101
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["sec-websocket-protocol"] == "a  Set-Cookie: b"
    assert "set-cookie" not in headers


async def test_a_handler_that_waits_for_futures_stays_in_its_task_and_context() -> None:
    import contextvars

    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="none")

    async def handler(request: Request) -> Answer:
        before = asyncio.current_task()
        mark.set(request.path)
        for _ in range(3):
            await _soon()
            assert asyncio.current_task() is before
        assert before is not None
        return Response(200, mark.get().encode())

    async with serving(handler) as (_, port), connected(port) as client:
        for name in (b"a", b"b", b"c"):
            client.send(GET % name)
            assert (await client.answer()).body == b"/" + name


async def test_requests_that_arrive_while_one_waits_are_answered_after_it() -> None:
    waiting, ready = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def handler(request: Request) -> Answer:
        if request.path == "/first":
            waiting.set()
            await ready
        return Response(200, request.path.encode())

    async with serving(handler) as (_, port), connected(port) as client:
        client.send(GET % b"first")
        await waiting.wait()
        client.send(GET % b"second" + GET % b"third")
        await _soon()
        ready.set_result(None)
        assert [(await client.answer()).body for _ in range(3)] == [
            b"/first",
            b"/second",
            b"/third",
        ]


@pytest.mark.parametrize("already_done", [False, True])
async def test_a_time_limit_ends_the_wait_for_a_future(already_done: bool) -> None:
    """Also where the future is done in the very moment in which time is up."""
    cancelled = False

    async def handler(_: Request) -> Answer:
        nonlocal cancelled
        future = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(None) as limit:
                loop = asyncio.get_running_loop()
                if already_done:
                    loop.call_soon(future.set_result, None)
                loop.call_soon(limit.reschedule, 0)
                await future
                if already_done:
                    await loop.create_future()
        except TimeoutError:
            cancelled = future.cancelled()
            return Response(200, b"late")
        return Response(200, b"in time")

    async with serving(handler) as (_, port), connected(port) as client:
        for _ in range(3):
            client.send(GET % b"x")
            assert (await client.answer()).body == b"late"
            assert cancelled is not already_done


async def test_a_future_that_is_cancelled_ends_the_connection_and_nothing_else() -> None:
    async def handler(_: Request) -> Answer:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.cancel)
        await future
        return Response(200, b"")

    async with serving(handler) as (_, port):
        async with connected(port) as client:
            client.send(GET % b"x")
            assert await client.reader.read() == b""
        async with connected(port) as client:
            client.send(GET % b"x")
            assert await client.reader.read() == b""


async def test_a_server_that_drains_waits_for_a_request_that_waits() -> None:
    waiting, ready = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def handler(_: Request) -> Answer:
        waiting.set()
        await ready
        return Response(200, b"done")

    async with serving(handler) as (server, port), connected(port) as client:
        client.send(GET % b"x")
        await waiting.wait()
        stopping = asyncio.ensure_future(server.stop(30))
        await _soon()
        assert not stopping.done()
        ready.set_result(None)
        answer = await client.answer()
        assert (answer.body, answer.headers["connection"]) == (b"done", "close")
        await stopping


async def _soon() -> None:
    """Wait for a future that a later turn of the loop sets."""
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, None)
    await future
