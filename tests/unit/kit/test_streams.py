"""Two connections that are one: both directions, and every end of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from skerry.kit.streams import Stream, copy_stream, join_streams


class Sink:
    """A writer of which it is known what it was given, and how it ended."""

    def __init__(self, *, half_closes: bool = True, breaks: bool = False) -> None:
        self.data = b""
        self.end = ""
        self._half_closes = half_closes
        self._breaks = breaks

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        if self._breaks:
            raise ConnectionResetError

    def can_write_eof(self) -> bool:
        return self._half_closes

    def write_eof(self) -> None:
        self.end = "eof"

    def close(self) -> None:
        self.end = "closed"


def source(*pieces: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for piece in pieces:
        reader.feed_data(piece)
    reader.feed_eof()
    return reader


async def copied(sink: Sink, *pieces: bytes) -> Sink:
    await copy_stream(source(*pieces), sink)  # type: ignore[arg-type]
    return sink


async def test_everything_is_copied_and_the_end_is_passed_on() -> None:
    sink = await copied(Sink(), b"one ", b"two")
    assert (sink.data, sink.end) == (b"one two", "eof")


async def test_a_connection_that_cannot_end_in_one_direction_is_closed() -> None:
    assert (await copied(Sink(half_closes=False), b"x")).end == "closed"


async def test_a_connection_that_breaks_ends() -> None:
    assert (await copied(Sink(breaks=True), b"x")).end == "eof"
    reader = asyncio.StreamReader()
    reader.set_exception(ConnectionResetError())
    sink = Sink()
    await copy_stream(reader, sink)  # type: ignore[arg-type]
    assert sink.end == "eof"


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def connect(port: int) -> Stream:
    return Stream(*await asyncio.open_connection("127.0.0.1", port))


async def test_a_client_may_end_its_side_and_wait_for_the_answer() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.read()  # until the client's end has come through
        writer.write(asked.upper())
        writer.close()

    async with listening(answer) as behind:

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server = await connect(behind)
            await join_streams(Stream(reader, writer), server)
            server.writer.close()
            writer.close()

        async with listening(relay) as port:
            client = await connect(port)
            client.writer.write(b"please")
            client.writer.write_eof()
            assert await client.reader.read() == b"PLEASE"
            client.writer.close()


async def test_a_server_that_has_answered_waits_for_nothing() -> None:
    class Silent(asyncio.StreamReader):
        """A client that never says anything, and never ends."""

    client, server = Sink(), Sink()
    await join_streams(
        Stream(Silent(), client),  # type: ignore[arg-type]
        Stream(source(b"bye"), server),  # type: ignore[arg-type]
    )
    assert (client.data, client.end, server.data) == (b"bye", "eof", b"")
