"""One HTTP/1.1 client connection: bytes out, parsed answers in.

A connection serves one exchange at a time. ``Exchange.ready`` resolves with the head for a
stream and with everything for a plain request, so a plain request costs one future and no task.
Reading pauses while a slow consumer leaves more than ``HIGH_WATER`` unread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import httptools

from skerry.kit.arriving import ArrivingProtocol
from skerry.runtime.transport import ConnectionLost, TransportError
from skerry.wire.http1 import FieldNames

# Room for some hundred watch events; beyond it TCP pushes back on the server, which may end us.
HIGH_WATER = 1024 * 1024
_NAMES = FieldNames()


class Exchange:
    """One request's answer as it comes in."""

    __slots__ = (
        "_arrived",
        "_connection",
        "chunks",
        "error",
        "finished",
        "headers",
        "ready",
        "received",
        "status",
        "streaming",
        "unread",
    )

    def __init__(self, connection: Connection, streaming: bool) -> None:
        loop = asyncio.get_running_loop()
        self._connection = connection
        self._arrived: asyncio.Future[None] | None = None
        self.streaming = streaming
        self.ready: asyncio.Future[None] = loop.create_future()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: deque[bytes] = deque()
        self.unread = 0
        self.received = False
        self.finished = False
        self.error: TransportError | None = None

    def head_complete(self, status: int) -> None:
        self.status = status
        if self.streaming and not self.ready.done():
            self.ready.set_result(None)

    def body(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self.unread += len(chunk)
        if self.streaming:
            if self.unread > HIGH_WATER:
                self._connection.pause()
            self._notify()

    def finish(self, error: TransportError | None = None) -> None:
        """End the exchange, well or with *error*; the first ending counts."""
        if self.finished:
            return
        self.finished = True
        self.error = error
        if not self.ready.done():
            if error is not None:
                self.ready.set_exception(error)
            else:
                self.ready.set_result(None)
        self._notify()

    def _notify(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            while self.chunks:
                chunk = self.chunks.popleft()
                self.unread -= len(chunk)
                yield chunk
            self._connection.resume()
            if self.finished:
                if self.error is not None:
                    raise self.error
                return
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived


class Connection(ArrivingProtocol):
    """A socket and its parser. ``on_lost`` is called once, when the socket is gone."""

    def __init__(self, on_lost: Callable[[Connection], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._until_close = False
        self._paused = False
        # How much the answer under way may still bring; None is no limit.
        self._left: int | None = None
        self.used = False
        self.reusable = True
        # By the loop's clock; for whoever keeps connections.
        self.idle_since = 0.0

    @property
    def closed(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def start(self, payload: bytes, *, streaming: bool, limit: int = 0) -> Exchange:
        """Send a request and return its exchange; the connection must be idle.

        An answer of more than *limit* bytes, where there is one, is a failure.
        """
        self._left = limit or None
        exchange = self._exchange = Exchange(self, streaming)
        if self._transport is None:
            exchange.finish(TransportError("the connection is closed"))
        else:
            self._transport.write(payload)
        return exchange

    def abort(self) -> None:
        """Drop the socket; an exchange still under way fails."""
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream socket's transport

    def data_received(self, data: bytes) -> None:
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                self._end(TransportError("the answer is larger than it may be"))
                self.abort()
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(TransportError(f"the answer is not HTTP/1.1: {error}"))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.reusable = False
        if self._until_close and exc is None:
            self._end(None)
        else:
            reason = exc or "the server closed it"
            self._end(ConnectionLost(f"connection lost before the answer was whole: {reason}"))
        self._on_lost(self)

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._exchange is not None:
            self._exchange.received = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._exchange is not None:
            self._exchange.headers[_NAMES[name]] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        exchange = self._exchange
        if exchange is None:  # an answer nobody asked for
            self.abort()
            return
        headers = exchange.headers
        self._until_close = (
            "content-length" not in headers and "transfer-encoding" not in headers
        ) and self._parser.get_status_code() not in (204, 304)
        exchange.head_complete(self._parser.get_status_code())

    def on_body(self, chunk: bytes) -> None:
        if self._exchange is not None:
            self._exchange.body(chunk)

    def on_message_complete(self) -> None:
        self._until_close = False
        self.reusable = self.reusable and self._parser.should_keep_alive()
        self._end(None)

    def _end(self, error: TransportError | None) -> None:
        exchange, self._exchange = self._exchange, None
        self.used = True
        if exchange is not None:
            exchange.finish(error)
