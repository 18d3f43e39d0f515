"""The socket transport: HTTP/1.1 over TLS with a pool of kept-alive connections.

Plain requests share at most ``connections`` sockets, the most recently used first, so that under
light load the others go idle and the server may close them. A stream has a socket of its own,
outside that bound, and gives it up when it ends.

A request that fails on a socket that had been idle, before a byte of the answer came, most
likely met the server's closing it; it is sent again on a fresh socket if it only reads. Writes
are never repeated here: their outcome is unknown, and those above know what is safe.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from skerry.kit.text import whole_number
from skerry.runtime.connection import Connection, Exchange
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    AnswerTimeout,
    ConnectTimeout,
    TransportError,
    Unreachable,
)
from skerry.wire.http1 import parsed_response, request_head

# Without HTTP/2 pings the kernel must find the peers that vanished without a word.
_PROBE_SECONDS = 5
_PROBES = 3
# Of connections that were taken over for another protocol: the largest head of an answer, which is
# also how far ahead is read, the largest piece, and how much of a refusal is waited for.
_AHEAD_BYTES = 64 << 10
_PIECE_BYTES = 64 << 10
_REFUSAL_BYTES = 1 << 20
_REFUSAL_SECONDS = 5.0

Authorization = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the server one transport takes, and how long it waits."""

    # Enough to keep a server of a few cores busy; each costs it tens of KB.
    connections: int = 64
    connect_seconds: float = 10.0
    # How long a connection is kept that nobody needed: both ends hold buffers for it, and one
    # burst should not cost them for good.
    idle_seconds: float = 30.0
    # kube-apiserver ends its own requests after a minute; a little longer lets it say so itself.
    request_seconds: float = 75.0
    # How long a silent connection is believed in; a dead one is noticed 15 seconds later. Each
    # look costs two packets.
    believed_seconds: int = 15
    # The largest answer to a plain request, head and all; 0 is no limit, for servers one trusts.
    answer_bytes: int = 0


LIMITS = Limits()


class Upgraded:
    """A connection on which another protocol was offered, and how that was answered."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.status = status
        self.headers = headers
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        """Return what has arrived, waiting for it; empty at the end."""
        try:
            return await self._reader.read(_PIECE_BYTES)
        except (ConnectionError, ssl.SSLError):
            return b""

    def write(self, chunk: bytes) -> None:
        """Queue *chunk* for sending; dropped once the peer is gone."""
        if not self._writer.is_closing():
            self._writer.write(chunk)

    async def drain(self) -> None:
        """Wait until little enough is queued; raises ConnectionError once the peer is gone."""
        await self._writer.drain()

    @property
    def closed(self) -> bool:
        return self._writer.is_closing()

    @property
    def queued_bytes(self) -> int:
        """How much waits to be sent."""
        return self._writer.transport.get_write_buffer_size()

    async def refusal(self) -> bytes:
        """Return the body of an answer that did not take the offer, as far as it is short."""
        length = whole_number(self.headers.get("content-length", "0"))
        wanted = min(length or 0, _REFUSAL_BYTES)
        try:
            async with asyncio.timeout(_REFUSAL_SECONDS):
                return await self._reader.readexactly(wanted)
        except (TimeoutError, asyncio.IncompleteReadError, OSError):
            return b""


class HttpTransport:
    """A pool of connections to one server."""

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        *,
        server_name: str = "",
        prefix: str = "",
        authorization: Authorization | str = "",
        limits: Limits = LIMITS,
        gzip: bool = False,
        address: str = "",
        repeats: bool = False,
    ) -> None:
        """*prefix* is the path part of the server's URL; *authorization* the header's value.

        *address* is where to connect to in place of whatever *host* resolves to; *repeats* says
        that every request may be sent twice.
        """
        self._host, self._port, self._tls = host, port, tls
        self._address = address or host
        self._repeats = repeats
        self._server_name = server_name or host
        self._prefix = prefix.rstrip("/")
        self._authorization = authorization
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.connections)
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        # Open under an identity that is no longer ours: each serves its request and is not kept.
        self._retired: set[Connection] = set()
        self._all_lost = asyncio.Event()
        self._closed = False
        self._kept = True
        shown = f"[{host}]" if ":" in host else host
        self._fixed = [f"host: {shown}:{port}", *(["accept-encoding: gzip"] if gzip else ())]

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        payload = await self._payload(method, path, query, headers, body)
        try:
            async with asyncio.timeout(self._limits.request_seconds), self._slots:
                exchange = await self._exchanged(method, payload)
        except TimeoutError as error:
            raise AnswerTimeout(
                f"{method} {path}: no answer within {self._limits.request_seconds:g} s"
            ) from error
        text = b"".join(exchange.chunks)
        if exchange.headers.get("content-encoding") == "gzip":
            text = zlib.decompress(text, wbits=31)
        return Answer(exchange.status, exchange.headers, text)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        payload = await self._payload(method, path, query, headers, body)
        connection = await self._connected()
        try:
            exchange = connection.start(payload, streaming=True)
            try:
                async with asyncio.timeout(self._limits.request_seconds):
                    await exchange.ready
            except TimeoutError as error:
                raise AnswerTimeout(f"{method} {path}: the stream did not begin") from error
            packed = exchange.headers.get("content-encoding") == "gzip"
            yield _Unpacked(exchange) if packed else exchange
        finally:
            self._release(connection, whole=False)

    @asynccontextmanager
    async def upgraded(
        self,
        protocol: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        method: str = "GET",
    ) -> AsyncIterator[Upgraded]:
        """Offer to speak *protocol* from now on; yields the connection with what was answered.

        Only an answer of 101 has taken the offer. Leaving ends the connection.
        """
        fields = {**headers, "connection": "Upgrade", "upgrade": protocol}
        payload = await self._payload(method, path, query, fields, b"")
        reader, writer = await self._streams()
        try:
            writer.write(payload)
            try:
                async with asyncio.timeout(self._limits.request_seconds):
                    head = await reader.readuntil(b"\r\n\r\n")
                status, found = parsed_response(head)
            except TimeoutError as error:
                raise AnswerTimeout(f"{method} {path}: the upgrade was not answered") from error
            except (EOFError, asyncio.LimitOverrunError, ValueError, OSError) as error:
                raise TransportError(f"no answer to the upgrade: {error}") from error
            yield Upgraded(status, found, reader, writer)
        finally:
            writer.transport.abort()

    async def _streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls = self._tls
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                reader, writer = await asyncio.open_connection(
                    self._address,
                    self._port,
                    ssl=tls,
                    server_hostname=self._server_name if tls else None,
                    limit=_AHEAD_BYTES,
                )
        except (OSError, TimeoutError) as error:
            raise self._unreachable(error) from error
        _keep_alive(writer.get_extra_info("socket"), self._limits.believed_seconds)
        return reader, writer

    def _unreachable(self, error: Exception) -> Unreachable:
        timed_out = isinstance(error, TimeoutError)
        kind, reason = (ConnectTimeout, "timed out") if timed_out else (Unreachable, str(error))
        return kind(f"cannot connect to {self._host}:{self._port}: {reason}")

    def identify(self, tls: ssl.SSLContext | None, authorization: Authorization | str) -> None:
        """Come as somebody else from the next connection on.

        Requests and streams under way end as they began; a connection is known to the server by
        the certificate it was opened with, so none is used again.
        """
        self._tls, self._authorization = tls, authorization
        self._retired |= self._open
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abort()

    def retire(self) -> None:
        """Keep no connection any longer; requests under way end as they began."""
        self._kept = False
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abort()

    async def close(self) -> None:
        self._closed = True
        self._idle.clear()
        for connection in list(self._open):
            connection.abort()
        if self._open:  # sockets report their end on the loop's next turns
            await self._all_lost.wait()

    async def _exchanged(self, method: str, payload: bytes) -> Exchange:
        """Return the finished exchange of one plain request."""
        while True:
            connection = self._taken() or await self._connected()
            reused = connection.used
            limit = self._limits.answer_bytes
            exchange = connection.start(payload, streaming=False, limit=limit)
            done = False
            try:
                await exchange.ready
                done = True
            except TransportError:
                harmless = self._repeats or method == "GET"
                if not (reused and harmless and not exchange.received):
                    raise
            finally:
                self._release(connection, whole=done)
            if done:
                return exchange

    def _taken(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        return None

    def _release(self, connection: Connection, *, whole: bool) -> None:
        """Keep a connection whose answer was read to its end; end any other."""
        kept = self._kept and not self._closed and connection not in self._retired
        if not (whole and connection.reusable and not connection.closed and kept):
            connection.abort()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.append(connection)
        # The last one kept is the first one taken: the first has been needed least.
        oldest = self._idle[0]
        unneeded = connection.idle_since - oldest.idle_since >= self._limits.idle_seconds
        if oldest is not connection and unneeded:
            self._idle.pop(0).abort()

    async def _connected(self) -> Connection:
        if self._closed:
            raise TransportError("the transport is closed")
        loop = asyncio.get_running_loop()
        connection = Connection(self._forget)
        tls = self._tls
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                transport, _ = await loop.create_connection(
                    lambda: connection,
                    self._address,
                    self._port,
                    ssl=tls,
                    server_hostname=self._server_name if tls else None,
                )
        except (OSError, TimeoutError) as error:
            connection.abort()
            raise self._unreachable(error) from error
        except asyncio.CancelledError:
            # The handshake may have ended in this very turn; nobody else would drop the socket.
            connection.abort()
            raise
        _keep_alive(transport.get_extra_info("socket"), self._limits.believed_seconds)
        if not connection.closed:
            self._open.add(connection)
            if tls is not self._tls:
                self._retired.add(connection)
        return connection

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._retired.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._closed and not self._open:
            self._all_lost.set()

    async def _payload(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> bytes:
        authorization = self._authorization
        if not isinstance(authorization, str):
            authorization = await authorization()
        target = f"{self._prefix}{path}?{query}" if query else f"{self._prefix}{path}"
        fields = dict(headers)
        if authorization:
            fields["authorization"] = authorization
        if body or method in ("POST", "PUT", "PATCH"):
            fields["content-length"] = str(len(body))
        return request_head(method, target, fields, self._fixed) + body


class _Unpacked:
    """A gzipped stream, unpacked chunk by chunk."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.status = exchange.status
        self.headers: Mapping[str, str] = exchange.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        unpacker = zlib.decompressobj(wbits=31)
        async for chunk in self._exchange:
            packed = chunk
            while packed:
                if text := unpacker.decompress(packed):
                    yield text
                packed = unpacker.unused_data
                if unpacker.eof:  # a stream may be several gzip members, one after the other
                    unpacker = zlib.decompressobj(wbits=31)


def _keep_alive(raw: socket.socket | None, seconds: int) -> None:
    if raw is None or raw.family not in (socket.AF_INET, socket.AF_INET6):
        return
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = (
        ("TCP_KEEPIDLE", seconds),
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
    )
    for name, value in wanted:
        if hasattr(socket, name):  # not every system names them
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
