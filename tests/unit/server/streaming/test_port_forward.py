"""Port-forwarding: streams of one connection to connections of a pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from skerry.edge.agent.network import Streams
from skerry.server.streaming.port_forward import Forwarding
from skerry.wire.spdy import Event, Finished, Received, Spdy
from tests.kit.server.spdy import Client

PORT = 80


class Wire:
    """A client's end in memory: what it sends, and what it hears."""

    def __init__(self) -> None:
        self._sent: asyncio.Queue[bytes] = asyncio.Queue()
        self._heard: asyncio.Queue[Event] = asyncio.Queue()
        self._spdy = Spdy()

    async def read(self) -> bytes:
        return await self._sent.get()

    async def write(self, data: bytes) -> None:
        for event in self._spdy.receive(data):
            self._heard.put_nowait(event)

    def send(self, data: bytes) -> None:
        self._sent.put_nowait(data)

    async def hear(self, count: int) -> list[Event]:
        async with asyncio.timeout(60):
            return [await self._heard.get() for _ in range(count)]


@asynccontextmanager
async def forwarding() -> AsyncIterator[Wire]:
    """Forward to a server that answers one line in capitals; only ``PORT`` is served."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    place = server.sockets[0].getsockname()

    async def dial(port: int) -> Streams:
        if port != PORT:
            raise ConnectionRefusedError("Connection refused")
        return await asyncio.open_connection(*place)

    wire = Wire()
    async with server, asyncio.TaskGroup() as tasks:
        tasks.create_task(Forwarding(wire, dial).run())
        yield wire
        wire.send(b"")


def pair(client: Client, first: int, port: int) -> bytes:
    """Return what opens the two streams of one connection."""
    opened = b""
    for stream, kind in ((first, "error"), (first + 2, "data")):
        opened += client.open(stream, streamType=kind, port=str(port), requestID=str(first))
    return opened


async def test_a_connection_goes_there_and_back_and_ends_quietly() -> None:
    async with forwarding() as wire:
        wire.send(pair(Client(), 1, PORT) + Spdy.sent(3, b"hello\n"))
        assert await wire.hear(3) == [Received(3, b"HELLO\n"), Finished(3), Finished(1)]


async def test_connections_side_by_side_are_kept_apart() -> None:
    client = Client()
    async with forwarding() as wire:
        wire.send(pair(client, 1, PORT) + pair(client, 5, PORT))
        wire.send(Spdy.sent(7, b"second\n"))
        assert await wire.hear(3) == [Received(7, b"SECOND\n"), Finished(7), Finished(5)]
        wire.send(Spdy.sent(3, b"first\n"))
        assert await wire.hear(3) == [Received(3, b"FIRST\n"), Finished(3), Finished(1)]


async def test_a_refused_port_is_reported_on_the_error_stream() -> None:
    async with forwarding() as wire:
        wire.send(pair(Client(), 1, 81))
        ended, result, quiet = await wire.hear(3)
    assert (ended, quiet) == (Finished(3), Finished(1))
    assert result == Received(1, b"error forwarding port 81 to pod: Connection refused")


async def test_a_stream_of_another_kind_is_refused() -> None:
    async with forwarding() as wire:
        wire.send(Client().open(1, streamType="gossip", port="80"))
        assert await wire.hear(1) == [Finished(1, reset=True)]


async def test_a_port_that_is_no_number_is_refused_and_others_go_on() -> None:
    client = Client()
    async with forwarding() as wire:
        for stream, port in ((1, "0"), (3, "65536"), (5, "web"), (7, "9" * 5000)):
            wire.send(client.open(stream, streamType="data", port=port))
            assert await wire.hear(1) == [Finished(stream, reset=True)]
        wire.send(pair(client, 9, PORT) + Spdy.sent(11, b"hello\n"))
        assert await wire.hear(1) == [Received(11, b"HELLO\n")]


async def test_whoever_breaks_the_protocol_is_left() -> None:
    async with forwarding() as wire:
        wire.send(b"\x80\x02\x00\x01\x00\x00\x00\x00")
