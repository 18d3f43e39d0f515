"""The client's end of a SPDY connection."""

from __future__ import annotations

import struct
import zlib

from skerry.wire.spdy import (
    DICTIONARY,
)


class Client:
    """What kubectl does, as far as the tests need it."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream: int, *, last: bool = False, **headers: str) -> bytes:
        pairs = [text.encode() for pair in headers.items() for text in pair]
        block = struct.pack("!I", len(headers))
        block += b"".join(struct.pack("!I", len(text)) + text for text in pairs)
        packed = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack("!IIBB", stream, 0, 0, 0) + packed, int(last))


def control(kind: int, content: bytes, flags: int = 0) -> bytes:
    return struct.pack("!HHI", 0x8003, kind, flags << 24 | len(content)) + content
