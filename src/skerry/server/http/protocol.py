"""One HTTP/1.1 connection: bytes in, requests to the handler, answers out in order.

Parsing is httptools' (llhttp in its strict mode): conflicting or repeated Content-Length, bare
CR or LF, folded headers and broken chunks are errors there, which is the defence against request
smuggling; this module adds what llhttp leaves to its user (HTTP versions, transfer codings other
than ``chunked``, the Host header, trailers, sizes).

A connection has one task, started with the first request and waiting between requests, which
calls the handler for one request after another; so answers are in order however many requests
arrived together, and a request costs no task of its own. A plain handler is never cancelled
because its client left (a half-done write helps nobody); a stream is.

Timers: a connection only notes at which tick of the server its present phase began; the server
asks ``expire`` every tick. A request sets no timer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol as TypingProtocol

import httptools

from skerry.api.errors import (
    ApiError,
    BadRequest,
    InternalError,
    RequestEntityTooLarge,
)
from skerry.kit.log import Logger
from skerry.server.http.encoding import (
    BLOCK_BYTES,
    BODILESS,
    Heads,
    accepts_gzip,
    blocks,
    error_response,
    gzipped,
)
from skerry.server.http.message import Handler, Peer, Request, Response, Stream
from skerry.server.http.settings import HttpSettings
from skerry.server.http.target import parsed_target

log = Logger("http")

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_KEEP = b"\r\n"
_CLOSE = b"Connection: close\r\n\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
# After this much written without waiting, let others have the loop: TLS costs about 1 ms per MB.
_YIELD_BYTES = 1024 * 1024
_KNOWN_VERSIONS = frozenset(("1.1", "1.0"))
# Of these a second value is an attack or a mistake; Go's server refuses or ignores it as well.
_SINGLE = frozenset(("host",))
_FIRST_COUNTS = frozenset(("authorization", "content-type", "expect"))


class UriTooLong(ApiError):
    code, reason = 414, "RequestURITooLong"


class HeadersTooLarge(ApiError):
    code, reason = 431, "RequestHeaderFieldsTooLarge"


class RequestTimeout(ApiError):
    code, reason = 408, "Timeout"


class ExpectationFailed(ApiError):
    code, reason = 417, "ExpectationFailed"


class NotImplementedCoding(ApiError):
    code, reason = 501, "NotImplemented"


class VersionNotSupported(ApiError):
    code, reason = 505, "HTTPVersionNotSupported"


class Host(TypingProtocol):
    """What a connection needs of the server it belongs to."""

    handler: Handler
    settings: HttpSettings
    heads: Heads
    tick: float
    """The loop's time, as of the last tick."""

    def opened(self, connection: Connection) -> bool:
        """Note a new connection; False when there are too many."""

    def closed(self, connection: Connection) -> None:
        """Forget a connection; its task may still be finishing a request."""


class _Names(dict[bytes, str]):
    """Header names as sent → lower case text. Clients use few; strangers' are not kept."""

    _MOST = 512

    def __missing__(self, raw: bytes) -> str:
        name = raw.decode("latin-1").lower()
        if len(self) < self._MOST and len(raw) < 64:
            self[raw] = name
        return name


_NAMES = _Names()


class _Read:
    """A request that was read whole, or why it was refused, waiting for its turn."""

    __slots__ = ("chunkable", "keep", "refusal", "request")

    def __init__(
        self, request: Request, *, keep: bool, chunkable: bool, refusal: ApiError | None = None
    ) -> None:
        self.request = request
        self.keep = keep
        self.chunkable = chunkable
        self.refusal = refusal


class Connection(asyncio.Protocol):
    """The protocol of one connection. ``Sender`` of its streams, too."""

    __slots__ = (
        "_body",
        "_body_bytes",
        "_continue",
        "_draining",
        "_ended",
        "_head_bytes",
        "_headers",
        "_host",
        "_idle",
        "_in_body",
        "_in_head",
        "_lingering",
        "_lost",
        "_parser",
        "_partial",
        "_paused",
        "_peer",
        "_queue",
        "_reading_paused",
        "_since",
        "_stalled_at",
        "_stalled_size",
        "_streaming",
        "_task",
        "_transport",
        "_url",
        "_writable",
    )

    def __init__(self, host: Host) -> None:
        self._host = host
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._peer = Peer()
        self._queue: deque[_Read] = deque()
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._headers: dict[str, str] = {}
        self._url = b""
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._head_bytes = 0
        self._partial = 0
        self._in_head = self._in_body = self._continue = False
        self._lost = self._ended = self._draining = self._lingering = False
        self._paused = self._reading_paused = self._streaming = False
        self._since = host.tick
        self._stalled_at = 0.0
        self._stalled_size = 0

    # The transport calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # TCP and TLS transports are
        self._peer = _peer(transport)
        self._since = self._host.tick
        if not self._host.opened(self):
            self._refuse(ApiError("the server has too many connections"), 503)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._ended = True
        self._queue.clear()
        self._host.closed(self)
        _release(self._writable)
        if self._task is not None and (self._streaming or self._idle is not None):
            self._task.cancel()

    def eof_received(self) -> bool:
        """Keep the way back open while an answer is due; a stream's reader has gone."""
        self._ended = True
        if self._streaming and self._task is not None:
            self._task.cancel()
            return False
        return self._busy and not self._lingering

    def pause_writing(self) -> None:
        self._paused = True
        self._stalled_at = self._host.tick
        self._stalled_size = self.queued_bytes

    def resume_writing(self) -> None:
        self._paused = False
        _release(self._writable)

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._after_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError as error:
            self._parse_failed(error.__context__)
        except httptools.HttpParserError as error:
            self._parse_failed(BadRequest(f"malformed HTTP request: {error}"))
        else:
            if self._in_head:
                self._partial += len(data)
                if self._partial > self._host.settings.header_bytes:
                    self._head_too_large()

    def _after_upgrade(self, rest: bytes) -> None:
        """Go on with HTTP/1.1: an offered upgrade that nobody takes up is ignored.

        The place for WebSocket and SPDY: a handler's answer that takes the upgrade would be
        given the transport here instead.
        """
        self._parser = httptools.HttpRequestParser(self)
        if rest:
            self.data_received(rest)

    def _parse_failed(self, cause: BaseException | None) -> None:
        refusal = cause if isinstance(cause, ApiError) else None
        if refusal is None:
            log.error("request parsing failed", error=cause)
            refusal = InternalError("Internal error occurred: the request could not be read")
        self._enqueue_refusal(refusal)

    # The parser calls these. What they raise comes back out of feed_data.

    def on_message_begin(self) -> None:
        self._in_head = True
        self._partial = self._head_bytes = self._body_bytes = 0
        self._url = b""
        self._headers = {}
        self._since = self._host.tick

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url
        if len(self._url) > self._host.settings.url_bytes:
            raise UriTooLong("request URI is too long")

    def on_header(self, raw_name: bytes, value: bytes) -> None:
        if not self._in_head:
            self._count_trailer(raw_name, value)
            return
        self._head_bytes += len(raw_name) + len(value) + 4
        name = _NAMES[raw_name]
        text = _header_value(value)
        if name in self._headers:
            text = _repeated(name, self._headers[name], text)
        self._headers[name] = text

    def on_headers_complete(self) -> None:
        self._in_head = False
        settings = self._host.settings
        if self._head_bytes + len(self._url) > settings.header_bytes:
            self._head_too_large()
            return
        headers = self._headers
        self._check_version(headers)
        if "content-length" in headers or "transfer-encoding" in headers:
            self._check_body(headers, settings)
        if "expect" in headers:
            self._check_expectation(headers["expect"])

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > self._host.settings.body_bytes:
            raise _too_large(self._host.settings)
        self._body.append(data)

    def on_message_complete(self) -> None:
        self._in_body = self._continue = False
        body = self._taken_body() if self._body else b""
        parser = self._parser
        try:
            path, query = parsed_target(self._url)
            refusal = None
        except ApiError as error:
            path, query, refusal = "", "", error
        method = parser.get_method().decode("ascii")
        request = Request(method, path, query, self._headers, body, self._peer)
        chunkable = parser.get_http_version() == "1.1"
        keep = parser.should_keep_alive() or (chunkable and parser.should_upgrade())
        if "connection" in self._headers and keep:
            keep = "close" not in self._headers["connection"].lower()
        self._since = self._host.tick
        if not keep:
            self._ended = True
        self._enqueue(_Read(request, keep=keep, chunkable=chunkable, refusal=refusal))

    def _taken_body(self) -> bytes:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        return body

    # What llhttp leaves to us.

    def _check_version(self, headers: dict[str, str]) -> None:
        version = self._parser.get_http_version()
        if version not in _KNOWN_VERSIONS:
            raise VersionNotSupported(f"HTTP version {version} is not supported")
        if "host" not in headers and version == "1.1":
            raise BadRequest("malformed HTTP request: missing required Host header")

    def _check_body(self, headers: dict[str, str], settings: HttpSettings) -> None:
        coding = headers.get("transfer-encoding")
        if coding is not None and coding.strip().lower() != "chunked":
            raise NotImplementedCoding("Unsupported transfer encoding")
        if coding is not None and self._parser.get_http_version() == "1.0":
            raise BadRequest("malformed HTTP request: transfer coding in HTTP/1.0")
        if int(headers.get("content-length", "0")) > settings.body_bytes:
            raise _too_large(settings)
        self._in_body = True

    def _check_expectation(self, expectation: str) -> None:
        if expectation.strip().lower() != "100-continue":
            raise ExpectationFailed("unknown expectation; only 100-continue is understood")
        if self._in_body:
            self._continue = True
            self._invite_body()

    def _invite_body(self) -> None:
        """Say 100 Continue, unless answers to earlier requests must go out first."""
        if self._continue and not self._busy and self._transport is not None:
            self._continue = False
            self._transport.write(_CONTINUE)

    def _count_trailer(self, name: bytes, value: bytes) -> None:
        """Drop a trailer: it must not pass for a header. They count as head bytes."""
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._host.settings.header_bytes:
            raise HeadersTooLarge("request trailers are too large")

    def _head_too_large(self) -> None:
        error: ApiError = HeadersTooLarge("request header fields are too large")
        if len(self._url) > self._host.settings.url_bytes:
            error = UriTooLong("request URI is too long")
        self._enqueue_refusal(error)

    # The queue between the parser and the connection's task.

    @property
    def _busy(self) -> bool:
        """Whether an answer is still owed to the peer."""
        return bool(self._queue) or (self._task is not None and self._idle is None)

    def _enqueue_refusal(self, error: ApiError) -> None:
        """Refuse what is being read, after all that was read before; read no further."""
        if self._ended and self._lost:
            return
        self._ended = True
        self._in_head = self._in_body = False
        self._body = []
        request = Request("", "", peer=self._peer)
        self._enqueue(_Read(request, keep=False, chunkable=False, refusal=error))

    def _enqueue(self, read: _Read) -> None:
        self._queue.append(read)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())
        elif self._idle is not None:
            idle, self._idle = self._idle, None
            if not idle.done():
                idle.set_result(None)
        if len(self._queue) >= self._host.settings.pipelined and not self._reading_paused:
            self._pause_reading()

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        self._reading_paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    async def _serve(self) -> None:
        """Answer request after request until the connection has no more of them."""
        loop = asyncio.get_running_loop()
        queue = self._queue
        try:
            while not self._lost:
                if not queue:
                    self._invite_body() if self._continue else None
                    self._idle = loop.create_future()
                    await self._idle
                    continue
                read = queue.popleft()
                if self._reading_paused and not queue:
                    self._resume_reading()
                if not await self._serve_one(read):
                    break
        except asyncio.CancelledError:
            # Cancelled by ourselves, the peer being gone or the server stopping.
            pass
        except ConnectionError:
            log.debug("peer left during an answer", peer=self._peer.address)
        finally:
            self._idle = None
            self._task = None
            self._close(lingering=False)

    async def _serve_one(self, read: _Read) -> bool:
        """Answer one request; False when it was the last."""
        if read.refusal is not None:
            await self._send(read, error_response(read.refusal), last=not read.keep)
            if not read.keep:
                await self._linger()
            return read.keep
        answer = await self._answer(read.request)
        if self._lost:
            return False
        keep = read.keep and not self._draining
        if isinstance(answer, Stream):
            return await self._run_stream(read, answer, keep)
        await self._send(read, answer, last=not keep)
        return keep

    async def _answer(self, request: Request) -> Response | Stream:
        """Call the handler. This is the boundary no exception crosses."""
        try:
            return await self._host.handler(request)
        except ApiError as error:
            return error_response(error)
        except Exception as error:  # noqa: BLE001 - the HTTP boundary: a bug costs one request
            log.error(
                "request failed", method=request.method, path=request.path, error=error,
                at=_where(error),
            )
            return error_response(
                InternalError("Internal error occurred: the request could not be served")
            )

    # Whole answers.

    async def _send(self, read: _Read, answer: Response, *, last: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        body = answer.body
        ending = _CLOSE if last else (_KEEP if read.chunkable else b"Connection: keep-alive\r\n\r\n")
        if isinstance(body, bytes) and len(body) <= self._host.settings.gzip_bytes:
            status = answer.status
            length = None if status in BODILESS and not body else len(body)
            head = self._host.heads.head(status, answer.content_type, answer.headers, length)
            if read.request.method == "HEAD" or length is None:
                body = b""
            transport.write(b"%b%b%b" % (head, ending, body))
            if self._paused:
                await self.drain()
        else:
            await self._send_large(read.request, answer, ending)

    async def _send_large(self, request: Request, answer: Response, ending: bytes) -> None:
        parts: Sequence[bytes] = [answer.body] if isinstance(answer.body, bytes) else answer.body
        headers = answer.headers
        length = sum(map(len, parts))
        encoding = request.headers.get("accept-encoding", "")
        if length > self._host.settings.gzip_bytes and encoding and _compressible(headers):
            if accepts_gzip(encoding):
                parts = await gzipped(parts)
                length = sum(map(len, parts))
                headers = (*headers, ("Content-Encoding", "gzip"))
            headers = (*headers, ("Vary", "Accept-Encoding"))
        head = self._host.heads.head(answer.status, answer.content_type, headers, length)
        if request.method == "HEAD":
            self._write(head + ending)
            return
        self._write(head + ending)
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
            if self._lost:
                return

    def _write(self, data: bytes) -> None:
        transport = self._transport
        # Writing to a closed transport raises on uvloop.
        if transport is not None and not self._lost and not transport.is_closing():
            transport.write(data)

    # Streams; the methods without underscore are those of ``Sender``.

    async def _run_stream(self, read: _Read, stream: Stream, keep: bool) -> bool:
        head = self._host.heads.head(stream.status, stream.content_type, stream.headers, None)
        if read.request.method == "HEAD":
            self._write(head + _CLOSE)
            return False
        ending = _CHUNKED if read.chunkable else _CLOSE
        self._write(head + (b"Connection: close\r\n" if not keep and read.chunkable else b"") + ending)
        finished = await self._finished(stream, _ChunkedSender(self) if read.chunkable else self)
        if not finished:
            # The peer must not take a broken stream for a complete one.
            if self._transport is not None:
                self._transport.abort()
            return False
        if read.chunkable:
            self._write(_LAST_CHUNK)
        return keep and read.chunkable and not self._draining

    async def _finished(self, stream: Stream, sender: Connection | _ChunkedSender) -> bool:
        """Run the stream; True when it ended as it should, by itself or by the server's wish."""
        self._streaming = True
        try:
            await stream.run(sender)
        except asyncio.CancelledError:
            if self._lost or not self._draining:
                raise
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        except ConnectionError:
            return False
        except Exception as error:  # noqa: BLE001 - the HTTP boundary: a bug costs one stream
            log.error("stream failed", error=error, at=_where(error))
            return False
        finally:
            self._streaming = False
        return True

    def write(self, chunk: bytes) -> None:
        self._write(chunk)

    async def drain(self) -> None:
        while self._paused and not self._lost:
            if self._writable is None or self._writable.done():
                self._writable = asyncio.get_running_loop().create_future()
            await self._writable
        if self._lost:
            raise ConnectionResetError("the peer is gone")

    @property
    def closed(self) -> bool:
        return self._lost or self._draining

    @property
    def queued_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # Ending.

    def _refuse(self, error: ApiError, code: int) -> None:
        """Tell why and hang up; for what is wrong before any request."""
        self._ended = True
        response = error_response(error)
        head = self._host.heads.head(code, response.content_type, (), len(response.body))
        self._write(b"%b%b%b" % (head, _CLOSE, response.body))
        self._close(lingering=False)

    async def _linger(self) -> None:
        """Read on a moment after a refusal; closing on unread input would reset the connection
        and could take the answer with it."""
        self._lingering = True
        if self._reading_paused:
            self._resume_reading()
        self._since = self._host.tick
        self._streaming = True  # Anything that ends a stream ends the wait.
        try:
            async with asyncio.timeout(self._host.settings.linger_seconds):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            pass
        finally:
            self._streaming = False

    def _close(self, *, lingering: bool) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def drain_and_close(self) -> None:
        """Finish what is being answered, end streams, then close. Reads nothing more."""
        self._draining = self._ended = True
        if not self._busy:
            if self._task is not None:
                self._task.cancel()
            else:
                self._close(lingering=False)
        elif self._streaming and self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        """Cut the connection, whatever is going on."""
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task serving this connection, when it has one."""
        return self._task

    def expire(self, now: float) -> None:
        """End the connection when its present phase has lasted too long."""
        settings = self._host.settings
        if self._paused:
            self._expire_stalled(now)
        elif self._in_head or self._in_body:
            allowed = settings.header_seconds if self._in_head else settings.body_seconds
            if now - self._since > allowed:
                self._enqueue_refusal(RequestTimeout("the request did not arrive in time"))
        elif not self._busy and now - self._since > settings.idle_seconds:
            self.drain_and_close()

    def _expire_stalled(self, now: float) -> None:
        """Cut a peer that takes nothing; one that takes a little, however slowly, is kept."""
        size = self.queued_bytes
        if size < self._stalled_size:
            self._stalled_size, self._stalled_at = size, now
        elif now - self._stalled_at > self._host.settings.stalled_seconds:
            log.info("peer takes nothing; connection cut", v=2, peer=self._peer.address)
            self.abort()


class _ChunkedSender:
    """A ``Sender`` that frames each chunk, for HTTP/1.1."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
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


def _peer(transport: asyncio.BaseTransport) -> Peer:
    """Say who is at the other end; the certificate was verified in the handshake."""
    name = transport.get_extra_info("peername")
    address = str(name[0]) if isinstance(name, tuple) else ""
    secured = transport.get_extra_info("ssl_object")
    certificate = None if secured is None else secured.getpeercert(binary_form=True)
    return Peer(address, certificate)


def _header_value(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _repeated(name: str, first: str, second: str) -> str:
    """Return what a header given twice means.

    Impersonation headers are lists whose items may hold commas, so a line break, which no value
    can hold, joins them; others are comma lists by RFC 9110.
    """
    if name in _SINGLE:
        raise BadRequest(f"malformed HTTP request: repeated {name} header")
    if name in _FIRST_COUNTS:
        return first
    return f"{first}\n{second}" if name.startswith("impersonate-") else f"{first}, {second}"


def _compressible(headers: Sequence[tuple[str, str]]) -> bool:
    return all(name.lower() != "content-encoding" for name, _ in headers)


def _too_large(settings: HttpSettings) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(
        f"Request entity is too large: limit is {settings.body_bytes}"
    )


def _where(error: BaseException) -> str:
    """Return the innermost place of *error*, enough to find the bug; never sent to clients."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _release(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
