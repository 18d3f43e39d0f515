"""WebSocket (RFC 6455) over a connection that was taken over: whole messages, both ways.

The server's side only, without extensions. Pings are answered and fragments joined on the way;
what breaks the protocol ends the connection with the code the RFC names.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Sequence

from skerry.api.errors import BadRequest
from skerry.server.http.message import Duplex, Request

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_PROTOCOL_ERROR = 1002
_TOO_BIG = 1009
# Far beyond what kubectl sends at once (32 KiB), and little enough to hold.
_MAX_MESSAGE = 8 * 1024 * 1024


class WebSocketClosed(Exception):
    """The peer has closed the connection, or broke the protocol."""


def handshake(request: Request, protocols: Sequence[str]) -> list[tuple[str, str]]:
    """Return the headers that accept *request*, with the first of its protocols we know.

    Raises ``BadRequest`` when it is no WebSocket request or none of *protocols* is offered.
    """
    headers = request.headers
    key = headers.get("sec-websocket-key", "")
    if "websocket" not in headers.get("upgrade", "").lower() or not key:
        raise BadRequest("Upgrade request required")
    if headers.get("sec-websocket-version") != "13":
        raise BadRequest("websocket: unsupported version: 13 not found in 'Sec-Websocket-Version'")
    offered = [part.strip() for part in headers.get("sec-websocket-protocol", "").split(",")]
    chosen = next((name for name in offered if name in protocols), None)
    if chosen is None:
        raise BadRequest(
            f"unable to negotiate protocol: client supports {offered}, server {list(protocols)}"
        )
    digest = hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()
    answer = base64.b64encode(digest).decode()
    return [("Sec-WebSocket-Accept", answer), ("Sec-WebSocket-Protocol", chosen)]


def frame(opcode: int, payload: bytes) -> bytes:
    """Return one unmasked, final frame."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, size)
    elif size < 65536:
        head = struct.pack("!BBH", 0x80 | opcode, 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 127, size)
    return head + payload


class WebSocket:
    """One connection; one task reads, any may send."""

    def __init__(self, duplex: Duplex) -> None:
        self._duplex = duplex
        self._pending = b""
        self._closed = False

    def send(self, payload: bytes) -> None:
        """Send one binary message; dropped once the connection is closed."""
        if not self._closed:
            self._duplex.write(frame(_BINARY, payload))

    async def drain(self) -> None:
        await self._duplex.drain()

    def close(self, code: int = 1000) -> None:
        """Say that nothing more will come."""
        if not self._closed:
            self._duplex.write(frame(_CLOSE, struct.pack("!H", code)))
            self._closed = True

    async def receive(self) -> bytes:
        """Return the next message; raises ``WebSocketClosed`` in the end."""
        parts: list[bytes] = []
        size = 0
        while True:
            final, opcode, payload = await self._frame()
            if opcode == _PING:
                self._duplex.write(frame(_PONG, payload))
            elif opcode == _CLOSE:
                self.close()
                raise WebSocketClosed
            elif opcode in (_TEXT, _BINARY, _CONTINUATION):
                if (opcode == _CONTINUATION) != bool(parts):
                    raise self._broken(_PROTOCOL_ERROR)
                parts.append(payload)
                size += len(payload)
                if size > _MAX_MESSAGE:
                    raise self._broken(_TOO_BIG)
                if final:
                    return b"".join(parts)
            elif opcode != _PONG:
                raise self._broken(_PROTOCOL_ERROR)

    async def _frame(self) -> tuple[bool, int, bytes]:
        first, second = await self._take(2)
        if first & 0x70 or not second & 0x80:
            raise self._broken(_PROTOCOL_ERROR)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await self._take(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await self._take(8))
        if size > _MAX_MESSAGE:
            raise self._broken(_TOO_BIG)
        mask = await self._take(4)
        return bool(first & 0x80), first & 0x0F, unmasked(await self._take(size), mask)

    async def _take(self, count: int) -> bytes:
        while len(self._pending) < count:
            data = await self._duplex.read()
            if not data:
                raise WebSocketClosed
            self._pending += data
        taken, self._pending = self._pending[:count], self._pending[count:]
        return taken

    def _broken(self, code: int) -> WebSocketClosed:
        self.close(code)
        return WebSocketClosed(str(code))


def unmasked(payload: bytes, mask: bytes) -> bytes:
    """Return *payload* with *mask* taken off (or put on, which is the same)."""
    size = len(payload)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
