"""The client's side of a WebSocket, in bytes, for tests of the server's."""

from __future__ import annotations

import struct

MASK = b"\x01\x02\x03\x04"


class Wire:
    """A connection from which given pieces arrive."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.sent = b""
        self.closed = False
        self.queued_bytes = 0

    def write(self, chunk: bytes) -> None:
        self.sent += chunk

    async def drain(self) -> None: ...

    async def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def frame(opcode: int, payload: bytes) -> bytes:
    """Return one unmasked, final frame, as the RFC draws it."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", 0x80 | opcode, size) + payload
    if size < 65536:
        return struct.pack("!BBH", 0x80 | opcode, 126, size) + payload
    return struct.pack("!BBQ", 0x80 | opcode, 127, size) + payload


def masked(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """Return one frame as clients send it."""
    plain = frame(opcode, payload)
    head = plain[: len(plain) - len(payload)]
    first = (head[0] & 0x7F) | (0x80 if final else 0)
    hidden = bytes(byte ^ MASK[index % 4] for index, byte in enumerate(payload))
    return bytes([first, head[1] | 0x80]) + head[2:] + MASK + hidden
