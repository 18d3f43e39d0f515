"""The writing half of a connection: whole answers, and room for more.

It is one object with the reading half (``protocol.Connection``): every answer passes here, and a
second object per connection would be paid for on each of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from skerry.kit.arriving import ArrivingProtocol
from skerry.server.http.encoding import (
    BLOCK_BYTES,
    BODILESS,
    Heads,
    accepts_gzip,
    blocks,
    gzipped,
)
from skerry.server.http.message import Response
from skerry.server.http.reading import Read
from skerry.server.http.settings import HttpSettings

KEEP = b"\r\n"
CLOSE = b"Connection: close\r\n\r\n"
_KEEP_OLD = b"Connection: keep-alive\r\n\r\n"
# After this much written without waiting, let others have the loop: TLS costs about 1 ms per MB.
_YIELD_BYTES = 1024 * 1024


class WriterHost(Protocol):
    """What writing needs of the server."""

    settings: HttpSettings
    heads: Heads
    loop: asyncio.AbstractEventLoop
    tick: float
    """The loop's time, as of the last tick."""


class AnswerWriter(ArrivingProtocol):
    """Writes answers, and is the ``Sender`` of unframed streams."""

    __slots__ = (
        "_draining",
        "_host",
        "_lost",
        "_paused",
        "_stalled_at",
        "_stalled_size",
        "_stream_head",
        "_transport",
        "_writable",
    )

    def __init__(self, host: WriterHost) -> None:
        self._host = host
        self._transport: asyncio.Transport | None = None
        self._writable: asyncio.Future[None] | None = None
        self._lost = self._draining = self._paused = False
        self._stalled_at = 0.0
        self._stalled_size = 0
        # The head of a stream that has written nothing yet.
        self._stream_head = b""

    def pause_writing(self) -> None:
        self._paused = True
        self._stalled_at = self._host.tick
        self._stalled_size = self.queued_bytes

    def resume_writing(self) -> None:
        self._paused = False
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def _send(self, read: Read, answer: Response, body: bytes, last: bool) -> None:
        """Send an answer small enough to go out at once."""
        status = answer.status
        length = None if status in BODILESS else len(body)
        head = self._host.heads.head(status, answer.content_type, answer.headers, length)
        if length is None or read[0].method == "HEAD":
            body = b""
        ending = CLOSE if last else KEEP if read[2] else _KEEP_OLD
        self._write(b"%b%b%b" % (head, ending, body))

    async def _send_large(self, read: Read, answer: Response, last: bool) -> None:
        """Send an answer of any size, compressed when that is worth it and welcome."""
        request = read[0]
        parts: Sequence[bytes] = [answer.body] if isinstance(answer.body, bytes) else answer.body
        headers = answer.headers
        length = sum(map(len, parts))
        if length > self._host.settings.gzip_bytes and _compressible(headers):
            headers = (*headers, ("Vary", "Accept-Encoding"))
            if accepts_gzip(request.headers.get("accept-encoding", "")):
                parts = await gzipped(parts)
                length = sum(map(len, parts))
                headers = (*headers, ("Content-Encoding", "gzip"))
        head = self._host.heads.head(answer.status, answer.content_type, headers, length)
        self._write(head + (CLOSE if last else KEEP if read[2] else _KEEP_OLD))
        if request.method != "HEAD":
            await self._write_parts(parts)

    async def _write_parts(self, parts: Sequence[bytes]) -> None:
        """Send a body in blocks, never more than a block ahead of what the peer takes."""
        written = 0
        for block in blocks(parts, BLOCK_BYTES):
            self._write(block)
            written += len(block)
            if self._paused:
                await self.drain()
                written = 0
            elif written > _YIELD_BYTES:
                await asyncio.sleep(0)
                written = 0

    def _begin_stream(self, head: bytes) -> None:
        """Send the head of a stream with the first that is written, or at the next turn of the
        loop: most streams have something to say at once, and a message of its own costs both ends
        as much as what it says."""
        self._stream_head = head
        self._host.loop.call_soon(self._send_head)

    def _send_head(self) -> None:
        if self._stream_head:
            self._write(b"")

    def _write(self, data: bytes) -> None:
        if self._stream_head:
            data, self._stream_head = self._stream_head + data, b""
        transport = self._transport
        # Writing to a closed transport raises on uvloop.
        if transport is not None and not self._lost and not transport.is_closing():
            transport.write(data)

    def write(self, chunk: bytes) -> None:
        self._write(chunk)

    async def drain(self) -> None:
        while self._paused and not self._lost:
            if self._writable is None or self._writable.done():
                self._writable = self._host.loop.create_future()
            await self._writable
        # A write that failed closes the transport at once, and the loop says so at its next turn,
        # which whoever only writes and drains would never let come.
        if self._lost or (self._transport is not None and self._transport.is_closing()):
            raise ConnectionResetError("the peer is gone")

    @property
    def closed(self) -> bool:
        return self._lost or self._draining

    @property
    def queued_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()


def _compressible(headers: Sequence[tuple[str, str]]) -> bool:
    return all(name.lower() != "content-encoding" for name, _ in headers)
