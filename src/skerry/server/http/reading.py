"""Bytes to requests.

Parsing is httptools' (llhttp in its strict mode): conflicting or repeated Content-Length, bare
CR or LF, folded headers and broken chunks are errors there, which is the defence against request
smuggling; this module adds what llhttp leaves to its user (HTTP versions, transfer codings other
than ``chunked``, the Host header, trailers, sizes, requests that offer an upgrade).

A request that offers an upgrade is the last one of its connection: what follows it is in the
offered protocol when the answer takes the upgrade, and is not read otherwise.

Most requests of a connection differ from the one before in their first line alone, or in that and
the digits of their Content-Length. Such a request, when it came in one piece, is recognised by
comparing bytes: its headers were parsed and judged before, and only the first line and the length
are read again. That halves the cost of a GET. Anything else takes the parser's way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

import httptools

from skerry.api.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    RequestEntityTooLarge,
    TooManyRequests,
)
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.server.http.accepting import Bodies
from skerry.server.http.message import Peer, Request
from skerry.server.http.settings import HttpSettings
from skerry.server.http.target import parsed_target
from skerry.wire.http1 import FieldNames

log = Logger("http")

# The methods that come without a body, and those that come with one; any other first line is the
# parser's to judge.
_REQUEST_LINE = re.compile(rb"(GET|HEAD|DELETE) (/[!-~]*) HTTP/1\.1")
_BODY_REQUEST_LINE = re.compile(rb"(POST|PUT|PATCH) (/[!-~]*) HTTP/1\.1")
# Where a head says, once, how long the body is. A length of more digits is the parser's to judge.
_LENGTH_LINE = re.compile(rb"\r\nContent-Length: ([0-9]{1,7})\r\n", re.IGNORECASE)
# Bodies up to this are not worth accounting for: all connections together hold little of them.
_SMALL_BODY = 64 * 1024
# Longer blocks are not worth comparing and keeping.
_MAX_KNOWN_BLOCK = 4096
_MAX_LENGTH_DIGITS = 7
# A request with one of these is more than its bytes say: connection or protocol change, or a body
# whose end is found otherwise.
_NEVER_KNOWN = frozenset(("transfer-encoding", "expect", "connection", "upgrade", "trailer"))
_KNOWN_VERSIONS = frozenset(("1.1", "1.0"))
# Of these a second value is an attack or a mistake; Go's server refuses or ignores it as well.
_SINGLE = frozenset(("host",))
# Headers that name users and groups, one each.
_ONE_BY_ONE = ("impersonate-", "x-remote-")
_FIRST_COUNTS = frozenset(("authorization", "content-type", "expect"))

_NAMES = FieldNames()


class UriTooLong(ApiError):
    code, reason = 414, "RequestURITooLong"


class HeadersTooLarge(ApiError):
    code, reason = 431, "RequestHeaderFieldsTooLarge"


class RequestTimeout(ApiError):
    code, reason = 408, "Timeout"


class ExpectationFailed(ApiError):
    code, reason = 417, "ExpectationFailed"


class UnknownCoding(ApiError):
    code, reason = 501, "NotImplemented"


class VersionNotSupported(ApiError):
    code, reason = 505, "HTTPVersionNotSupported"


# A request that was read whole: the request, whether the connection goes on after it, whether
# the peer knows chunks, and why it is refused, if it is. A plain tuple: one is made per request.
Read = tuple[Request, bool, bool, ApiError | None]


class Limits(Protocol):
    """Where the reader learns its bounds and the time."""

    settings: HttpSettings
    clock: Clock
    bodies: Bodies
    tick: float


class RequestReader:
    """Reads one connection's requests and hands each to *received*, in order.

    After a refusal or a request that ends the connection it reads nothing more. *invite* is
    called when a client waits for ``100 Continue``.
    """

    __slots__ = (
        "_body",
        "_body_bytes",
        "_head_bytes",
        "_headers",
        "_held_bytes",
        "_invite",
        "_known_block",
        "_known_head",
        "_known_head_headers",
        "_known_headers",
        "_known_tail",
        "_limits",
        "_now",
        "_packet",
        "_parser",
        "_partial",
        "_received",
        "_url",
        "awaits_continue",
        "ended",
        "in_body",
        "in_head",
        "peer",
        "sender",
        "since",
    )

    def __init__(
        self, limits: Limits, received: Callable[[Read], None], invite: Callable[[], None]
    ) -> None:
        self._limits = limits
        self._now = limits.clock.monotonic
        self._received = received
        self._invite = invite
        self._parser = httptools.HttpRequestParser(self)
        self._known_block = self._packet = self._url = b""
        self._known_headers: dict[str, str] = {}
        # Of a head before a body: what stands before the digits of its length, and after them.
        self._known_head = self._known_tail = b""
        self._known_head_headers: dict[str, str] = {}
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = self._head_bytes = self._partial = 0
        # How much of the present body is accounted for, as whose.
        self._held_bytes = 0
        self.sender = ""
        self.peer = Peer()
        # The tick at which the present phase (idle, head, body) began.
        self.since = limits.tick
        self.in_head = self.in_body = self.awaits_continue = self.ended = False

    def feed(self, data: bytes) -> None:
        """Take what arrived."""
        if self.ended:
            return
        if not self.in_head and not self.in_body:
            end = data.find(b"\r\n")
            if data[end:] == self._known_block:
                line = _REQUEST_LINE.fullmatch(data, 0, end)
                if line is not None:
                    self._receive_known(line[1], line[2], self._known_headers, b"")
                    return
            elif self._known_head and self._feed_known_body(data, end):
                return
            self._packet = data
        self._parse(data)

    def refuse(self, error: ApiError) -> None:
        """Answer what is being read with *error*, after all that was read before it; read no
        further."""
        self.ended = True
        self.in_head = self.in_body = False
        self._body = []
        self.give_body_back()
        self._received((Request("", "", peer=self.peer), False, False, error))

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # What follows an offered upgrade is of no protocol yet: it is never read as HTTP.
            self.ended = True
        except httptools.HttpParserCallbackError as error:
            self._fail(error.__context__)
        except httptools.HttpParserError as error:
            # llhttp minds bytes after a request that ends the connection; we do not read them.
            if not self.ended:
                self.refuse(BadRequest(f"malformed HTTP request: {error}"))
        else:
            if self.in_head:
                self._count_partial_head(len(data))

    def _fail(self, cause: BaseException | None) -> None:
        if isinstance(cause, ApiError):
            self.refuse(cause)
            return
        log.error("request parsing failed", error=cause)
        self.refuse(InternalError("Internal error occurred: the request could not be read"))

    def _count_partial_head(self, count: int) -> None:
        """Bound what the parser itself buffers of a head that does not end."""
        self._partial += count
        if self._partial > self._limits.settings.header_bytes:
            self.refuse(HeadersTooLarge("request header fields are too large"))

    # The parser calls these. What they raise comes back out of feed_data.

    def on_message_begin(self) -> None:
        self.in_head = True
        self._partial = self._head_bytes = self._body_bytes = 0
        self._url = b""
        self._headers = {}
        self.since = self._limits.tick

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url
        if len(self._url) > self._limits.settings.url_bytes:
            raise UriTooLong("request URI is too long")

    def on_header(self, raw_name: bytes, value: bytes) -> None:
        self._head_bytes += len(raw_name) + len(value) + 4
        if self._head_bytes > self._limits.settings.header_bytes:
            raise HeadersTooLarge("request header fields are too large")
        if not self.in_head:
            return  # A trailer; it must not pass for a header.
        name = _NAMES[raw_name]
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        if name in self._headers:
            text = _repeated(name, self._headers[name], text)
        self._headers[name] = text

    def on_headers_complete(self) -> None:
        self.in_head = False
        headers = self._headers
        version = self._parser.get_http_version()
        if version not in _KNOWN_VERSIONS:
            raise VersionNotSupported(f"HTTP version {version} is not supported")
        if "host" not in headers and version == "1.1":
            raise BadRequest("malformed HTTP request: missing required Host header")
        if self._parser.should_upgrade():
            self._check_upgrade(headers)
        if "content-length" in headers or "transfer-encoding" in headers:
            self._check_body(headers, version)
        if "expect" in headers:
            self._check_expectation(headers["expect"])

    def on_body(self, data: bytes) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > self._limits.settings.body_bytes:
            raise self._too_large()
        if self._body_bytes > _SMALL_BODY:
            self._hold(self._body_bytes - self._held_bytes)
        self._body.append(data)

    def _hold(self, size: int) -> None:
        """Account for what is held of a large body while it arrives."""
        if not self._limits.bodies.take(self.sender, size):
            raise TooManyRequests("too much of large requests is arriving at once")
        self._held_bytes += size

    def give_body_back(self) -> None:
        """Account no longer for a body that will never be complete."""
        if self._held_bytes:
            self._limits.bodies.give_back(self.sender, self._held_bytes)
            self._held_bytes = 0

    def on_message_complete(self) -> None:
        if self.ended:
            return
        self.in_body = self.awaits_continue = False
        parser = self._parser
        path, query, refusal = self._target(self._url)
        method = parser.get_method().decode("ascii")
        request = Request(method, path, query, self._headers, self._taken_body(), self.peer)
        request.received = self._now()
        if self._held_bytes:
            request.held, self._held_bytes = (self.sender, self._held_bytes), 0
        current = parser.get_http_version() == "1.1"
        keep = parser.should_keep_alive() and not parser.should_upgrade()
        self.since = self._limits.tick
        if not keep:
            self.ended = True
        elif current:
            self._remember_block()
        self._received((request, keep, current, refusal))

    # What llhttp leaves to us.

    def _target(self, url: bytes) -> tuple[str, str, ApiError | None]:
        try:
            path, query = parsed_target(url)
        except ApiError as error:
            return "", "", error
        return path, query, None

    def _taken_body(self) -> bytes:
        if not self._body:
            return b""
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        return body

    def _check_body(self, headers: dict[str, str], version: str) -> None:
        coding = headers.get("transfer-encoding")
        if coding is not None and coding.strip().lower() != "chunked":
            raise UnknownCoding("Unsupported transfer encoding")
        if coding is not None and version == "1.0":
            raise BadRequest("malformed HTTP request: transfer coding in HTTP/1.0")
        if int(headers.get("content-length", "0")) > self._limits.settings.body_bytes:
            raise self._too_large()
        self.in_body = True

    def _check_upgrade(self, headers: dict[str, str]) -> None:
        """Refuse an offered upgrade whose request has a body: llhttp does not read that body, so
        its bytes could pass for a request of their own."""
        if self._parser.get_method() == b"CONNECT":
            raise MethodNotAllowed
        if "transfer-encoding" in headers or headers.get("content-length", "0").strip("0"):
            raise BadRequest("malformed HTTP request: Upgrade is offered by a request with a body")

    def _check_expectation(self, expectation: str) -> None:
        if expectation.strip().lower() != "100-continue":
            raise ExpectationFailed("unknown expectation; only 100-continue is understood")
        if self.in_body:
            self.awaits_continue = True
            self._invite()

    def _too_large(self) -> ApiError:
        limit = self._limits.settings.body_bytes
        return RequestEntityTooLarge(f"Request entity is too large: limit is {limit}")

    # Requests known from their bytes.

    def _remember_block(self) -> None:
        """Keep the header block of a request that arrived alone and whole, for comparison."""
        packet, self._packet = self._packet, b""
        start = packet.find(b"\r\n")
        end = packet.find(b"\r\n\r\n") + 4
        if not 0 < start < end <= start + _MAX_KNOWN_BLOCK:
            return
        if not _NEVER_KNOWN.isdisjoint(self._headers):
            return
        if "content-length" in self._headers:
            self._remember_head(packet, start, end)
        elif end == len(packet):
            self._known_block = packet[start:]
            self._known_headers = self._headers

    def _remember_head(self, packet: bytes, start: int, end: int) -> None:
        """Keep a block that says the length of a body, apart from the length itself."""
        length = _LENGTH_LINE.search(packet, start, end)
        if length is None or len(packet) - end != int(length[1]):
            return
        first, last = length.span(1)
        self._known_head, self._known_tail = packet[start:first], packet[last:end]
        self._known_head_headers = self._headers

    def _feed_known_body(self, data: bytes, start: int) -> bool:
        """Take a request whose head differs from a known one in first line and length alone."""
        head, tail = self._known_head, self._known_tail
        first = start + len(head)
        last = data.find(b"\r\n", first, first + _MAX_LENGTH_DIGITS + 2)
        if last < 0 or not data.startswith(head, start) or not data.startswith(tail, last):
            return False
        digits, end = data[first:last], last + len(tail)
        # The parser alone refuses lengths, and puts together what came in pieces.
        if not digits.isdigit() or len(data) - end != int(digits):
            return False
        size = len(data) - end
        line = _BODY_REQUEST_LINE.fullmatch(data, 0, start)
        if line is None or not 0 < size <= min(_SMALL_BODY, self._limits.settings.body_bytes):
            return False
        headers = {**self._known_head_headers, "content-length": digits.decode("ascii")}
        self._receive_known(line[1], line[2], headers, data[end:])
        return True

    def _receive_known(
        self, method: bytes, url: bytes, headers: dict[str, str], body: bytes
    ) -> None:
        if len(url) > self._limits.settings.url_bytes:
            self.refuse(UriTooLong("request URI is too long"))
            return
        path, query, refusal = self._target(url)
        self.since = self._limits.tick
        request = Request(method.decode("ascii"), path, query, headers, body, self.peer)
        request.received = self._now()
        self._received((request, True, True, refusal))


def _repeated(name: str, first: str, second: str) -> str:
    """Return what a header given twice means.

    Those that name users and groups have items that may hold commas, so a line break, which no
    value can hold, joins them; others are comma lists by RFC 9110.
    """
    if name in _SINGLE:
        raise BadRequest(f"malformed HTTP request: repeated {name} header")
    if name in _FIRST_COUNTS:
        return first
    return f"{first}\n{second}" if name.startswith(_ONE_BY_ONE) else f"{first}, {second}"
