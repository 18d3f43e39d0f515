"""A proxy that counts what passes between an edge and its hub, and can cut the line.

What is counted is what the line carries: TLS records and everything inside them, both ways. Each
piece that passes is at least one TCP segment and one acknowledgement; ``with_headers`` adds their
headers (IPv4 and TCP with timestamps, 52 bytes each).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_HEADER_BYTES = 52


class Meter:
    """The proxy in front of one port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self.bytes = 0
        self.pieces = 0
        self.connections = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Pass on whatever comes to the port inside the context."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            try:
                yield server.sockets[0].getsockname()[1]
            finally:
                self.cut()

    def with_headers(self) -> int:
        """Return all bytes so far, TCP/IP headers included."""
        return self.bytes + 2 * self.pieces * _HEADER_BYTES

    @property
    def open(self) -> int:
        """How many connections are open."""
        return len(self._writers) // 2

    def cut(self) -> None:
        """Sever the line; whoever tries it again fails."""
        self._cut = True
        for writer in list(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        """Let new connections through again."""
        self._cut = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        self.connections += 1
        try:
            onward, back = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, back}
        self._writers |= ends
        try:
            await asyncio.gather(self._copy(reader, back), self._copy(onward, writer))
        except ConnectionError:
            pass
        finally:
            self._writers -= ends
            for end in ends:
                end.close()

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while chunk := await source.read(65536):
            self.bytes += len(chunk)
            self.pieces += 1
            sink.write(chunk)
            await sink.drain()
        sink.close()
