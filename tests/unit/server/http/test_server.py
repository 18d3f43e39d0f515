"""Starting, draining and stopping."""

from __future__ import annotations

import asyncio

import pytest

from skerry.server.http.message import Answer, Request, Response, Sender, Stream
from skerry.server.http.server import HttpServer
from tests.kit.server.wire import GET, connected, echo, turn, until


async def started(handler: object = echo) -> tuple[HttpServer, int]:
    server = HttpServer(handler)  # type: ignore[arg-type]
    return server, await server.start()


async def test_stopping_finishes_the_request_in_flight_and_closes_idle_connections() -> None:
    running, release = asyncio.Event(), asyncio.Event()

    async def handler(_: Request) -> Answer:
        running.set()
        await release.wait()
        return Response(200, b"done")

    server, port = await started(handler)
    async with connected(port) as idle, connected(port) as busy:
        busy.send(GET % b"")
        await running.wait()
        stopping = asyncio.ensure_future(server.stop(10))
        assert await idle.rest() == b""
        release.set()
        got = await busy.answer()
        assert (got.body, got.headers["connection"]) == (b"done", "close")
        await stopping


async def test_stopping_ends_streams_so_that_the_client_sees_a_proper_end() -> None:
    async def run(sender: Sender) -> None:
        sender.write(b"event")
        await asyncio.Event().wait()

    async def handler(_: Request) -> Answer:
        return Stream(run)

    server, port = await started(handler)
    async with connected(port) as client:
        client.send(GET % b"")
        await client.head()
        assert await client.chunk() == b"event"
        await server.stop(10)
        assert await client.rest() == b"0\r\n\r\n"


async def test_stopping_lets_a_stream_say_goodbye() -> None:
    async def run(sender: Sender) -> None:
        sender.write(b"event")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert sender.closed
            sender.write(b"bye")
            raise

    async def handler(_: Request) -> Answer:
        return Stream(run)

    server, port = await started(handler)
    async with connected(port) as client:
        client.send(GET % b"")
        await client.head()
        assert await client.chunk() == b"event"
        await server.stop(10)
        assert await client.chunk() == b"bye"


async def test_what_is_not_over_at_the_deadline_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    cancelled = asyncio.Event()

    async def handler(_: Request) -> Answer:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    server, port = await started(handler)
    async with connected(port) as client:
        client.send(GET % b"")
        await until(lambda: any(c.task for c in server._connections), turn)
        await turn()
        await server.stop(0.01)
        assert cancelled.is_set()
        assert await client.rest() == b""
    assert "connections cut at the deadline" in capsys.readouterr().err


async def test_a_stopped_server_accepts_nothing() -> None:
    server, port = await started()
    await server.stop()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    await server.stop()


async def test_a_pipelined_request_behind_the_one_in_flight_is_not_begun_after_stopping() -> None:
    running, release = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    async def handler(request: Request) -> Answer:
        seen.append(request.path)
        running.set()
        await release.wait()
        return Response(200, b"done")

    server, port = await started(handler)
    async with connected(port) as client:
        client.send(GET % b"1" + GET % b"2")
        await running.wait()
        stopping = asyncio.ensure_future(server.stop(10))
        await turn()
        release.set()
        got = await client.rest()
        await stopping
    assert got.count(b"HTTP/1.1 200") == 1
    assert seen == ["/1"]
