"""What a stream writes to: a connection framed in chunks, or one taken over altogether."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

# A reader that is this much behind makes its peer wait.
_MAX_AHEAD_BYTES = 1024 * 1024


class Line(Protocol):
    """What both need of the connection below."""

    def write(self, chunk: bytes) -> None:
        """Queue *chunk* for sending."""

    async def drain(self) -> None:
        """Wait until little enough is queued."""

    @property
    def closed(self) -> bool:
        """Whether nothing more is to be sent."""

    @property
    def queued_bytes(self) -> int:
        """How much waits to be sent."""

    @property
    def reading_paused(self) -> bool:
        """Whether the peer is made to wait."""

    def pause_reading(self) -> None:
        """Make the peer wait."""

    def resume_reading(self) -> None:
        """Read on."""


class ConnectionDuplex:
    """A ``Duplex`` over a connection; reads no further ahead than its reader can bear."""

    __slots__ = ("_arrived", "_connection", "_held", "_size")

    def __init__(self, connection: Line) -> None:
        self._connection = connection
        self._held: deque[bytes] = deque()
        self._size = 0
        self._arrived = asyncio.Event()

    def feed(self, data: bytes) -> None:
        self._held.append(data)
        self._size += len(data)
        self._arrived.set()
        if self._size > _MAX_AHEAD_BYTES:
            self._connection.pause_reading()

    async def read(self) -> bytes:
        while not self._held:
            if self._connection.closed:
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        data = self._held.popleft()
        self._size -= len(data)
        if self._connection.reading_paused and self._size < _MAX_AHEAD_BYTES:
            self._connection.resume_reading()
        return data

    def write(self, chunk: bytes) -> None:
        self._connection.write(chunk)

    async def drain(self) -> None:
        await self._connection.drain()

    @property
    def closed(self) -> bool:
        return self._connection.closed

    @property
    def queued_bytes(self) -> int:
        return self._connection.queued_bytes


class ChunkedSender:
    """A ``Sender`` that frames each chunk, for HTTP/1.1."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Line) -> None:
        self._connection = connection

    def write(self, chunk: bytes) -> None:
        if chunk:  # An empty chunk would end the answer.
            self._connection.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))

    async def drain(self) -> None:
        await self._connection.drain()

    @property
    def closed(self) -> bool:
        return self._connection.closed

    @property
    def queued_bytes(self) -> int:
        return self._connection.queued_bytes
