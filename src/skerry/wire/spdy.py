"""SPDY/3.1: streams within one connection, as ``kubectl port-forward`` speaks.

Only what that takes: the client opens streams with headers, both sides send data and say when no
more comes. Frames are those of draft-mbelshe-httpbis-spdy-00; there is no flow control beyond that
of the connection below, because Kubernetes' clients have none.

Sans I/O: bytes that arrive become events, calls return bytes to send.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_VERSION = 3
_CONTROL = 0x80000000
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_FIN = 1
_CANCEL = 5
# A frame's length has 24 bits; nobody here sends more than 64 KiB at once.
_MAX_FRAME = 1 << 20

# Both sides start their compression with this text: names with their lengths, then likely values.
_NAMES = (  # noqa: SIM905 - a list of sixty lines
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base content-encoding "
    "content-language content-length content-location content-md5 content-range content-type date "
    "etag expect expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified location max-forwards pragma proxy-authenticate "
    "proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
).split()
_NAMES += ["200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin"]
_VALUES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
    "Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(struct.pack("!I", len(name)) + name.encode() for name in _NAMES)
DICTIONARY += _VALUES.encode()


class SpdyError(Exception):
    """The peer broke the protocol."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The peer opened a stream."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Received:
    """Data came on a stream."""

    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Finished:
    """No more will come on a stream; ``reset`` when the peer wants no more either."""

    stream: int
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The peer wants to hear this back at once."""

    reply: bytes


Event = Opened | Received | Finished | Asked


class Spdy:
    """One connection's state."""

    def __init__(self) -> None:
        self._pending = b""
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def receive(self, data: bytes) -> Iterator[Event]:
        """Yield what *data* completes; raises ``SpdyError``."""
        self._pending += data
        while len(self._pending) >= 8:
            first, rest = struct.unpack_from("!II", self._pending)
            flags, size = rest >> 24, rest & 0xFFFFFF
            if size > _MAX_FRAME:
                raise SpdyError(f"a frame of {size} bytes")
            if len(self._pending) < 8 + size:
                return
            content, self._pending = self._pending[8 : 8 + size], self._pending[8 + size :]
            if first & _CONTROL:
                yield from self._control(first, flags, content)
            else:
                yield from _data(first, flags, content)

    def _control(self, first: int, flags: int, content: bytes) -> Iterator[Event]:
        kind = first & 0xFFFF
        if first >> 16 & 0x7FFF != _VERSION:
            raise SpdyError(f"version {first >> 16 & 0x7FFF}")
        try:
            if kind == _SYN_STREAM:
                stream = struct.unpack_from("!I", content)[0] & ~_CONTROL
                yield Opened(stream, self._headers(content[10:]))
                if flags & _FIN:
                    yield Finished(stream)
            elif kind == _SYN_REPLY:
                self._headers(content[4:])  # nothing is said there, but later blocks build on it
            elif kind == _RST_STREAM:
                yield Finished(struct.unpack_from("!I", content)[0] & ~_CONTROL, reset=True)
            elif kind == _PING:
                yield Asked(_frame(_PING, 0, content))
            # Settings, windows and farewells ask nothing of us.
        except (struct.error, zlib.error, IndexError) as error:
            raise SpdyError(f"frame of kind {kind}: {error}") from error

    def _headers(self, block: bytes) -> dict[str, str]:
        text = self._inflate.decompress(block)
        (count,) = struct.unpack_from("!I", text)
        position, found = 4, {}
        for _ in range(count):
            name, position = _text(text, position)
            value, position = _text(text, position)
            found[name.lower()] = value
        return found

    def opened(self, stream: int, headers: Mapping[str, str], *, last: bool = False) -> bytes:
        """Return what opens a stream at the peer; *last* says that nothing will be sent on it."""
        block = struct.pack("!I", len(headers))
        for text in (part for pair in headers.items() for part in pair):
            block += struct.pack("!I", len(text)) + text.encode("latin-1")
        content = struct.pack("!IIBB", stream, 0, 0, 0) + self._packed(block)
        return _frame(_SYN_STREAM, _FIN if last else 0, content)

    def accepted(self, stream: int) -> bytes:
        """Return what tells the peer that a stream is open."""
        empty = self._packed(struct.pack("!I", 0))
        return _frame(_SYN_REPLY, 0, struct.pack("!I", stream) + empty)

    def _packed(self, block: bytes) -> bytes:
        return self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    @staticmethod
    def sent(stream: int, data: bytes, *, last: bool = False) -> bytes:
        """Return data for a stream; *last* says that no more will come."""
        return struct.pack("!II", stream, (_FIN if last else 0) << 24 | len(data)) + data

    @staticmethod
    def reset(stream: int) -> bytes:
        """Return what ends a stream at once."""
        return _frame(_RST_STREAM, 0, struct.pack("!II", stream, _CANCEL))

    @staticmethod
    def farewell() -> bytes:
        """Return what says that no stream will be accepted any more."""
        return _frame(_GOAWAY, 0, struct.pack("!II", 0, 0))


def _data(stream: int, flags: int, content: bytes) -> Iterator[Event]:
    if content:
        yield Received(stream, content)
    if flags & _FIN:
        yield Finished(stream)


def _frame(kind: int, flags: int, content: bytes) -> bytes:
    head = _CONTROL | _VERSION << 16 | kind
    return struct.pack("!II", head, flags << 24 | len(content)) + content


def _text(block: bytes, position: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("!I", block, position)
    end = position + 4 + size
    if end > len(block):
        raise IndexError("a header beyond its block")
    return block[position + 4 : end].decode("latin-1"), end
