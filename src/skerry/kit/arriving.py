"""What arrives on a socket is read into one buffer that all connections of a loop share.

An event loop that hands out ``bytes`` must have a piece of memory before it knows how much will
come. Over TLS that is a quarter of a megabyte for each reading, and there are two of them for each
request, the second of which finds nothing. Pieces of that size are mappings of their own
(``allocation``), so each of them costs two calls of the system and the pages that are touched: half
of a GET.

Nobody may keep the buffer: what came is copied, at its own size, before anything else is read.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Final

# As much as the event loop reads of one connection before it looks after others.
_BUFFER_BYTES: Final = 256 << 10


class _Arriving(threading.local):
    """A loop has a thread of its own, and so has its buffer."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(_BUFFER_BYTES))


_arriving = _Arriving()


class ArrivingProtocol(asyncio.BufferedProtocol):
    """A protocol that gets what arrives in ``data_received``, as ``asyncio.Protocol`` does."""

    __slots__ = ()

    def get_buffer(self, sizehint: int) -> memoryview:
        return _arriving.view

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(_arriving.view[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Take what arrived."""
        raise NotImplementedError
