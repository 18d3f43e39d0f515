"""A stream packed with gzip as it goes: whatever was written can be read at once.

Each write ends with a sync flush. A packer costs some 64 KB while it remembers what went before,
so ``rest`` and ``write_last`` end the gzip member and let go of it; the next write begins another
member, which every reader of gzip takes for the same stream.
"""

from __future__ import annotations

import zlib
from typing import Any

from skerry.server.http.message import Sender

_LEVEL = 6
# A window of 8 KB spans a handful of objects, which is what repeats; the usual 32 KB window
# would cost four times the memory per watcher.
_WBITS = 16 + 13
_MEMORY_LEVEL = 6


class PackedSender:
    """A sender that packs what passes to another."""

    def __init__(self, inner: Sender) -> None:
        self._inner = inner
        self._packer: Any = None

    def write(self, chunk: bytes) -> None:
        self._write(chunk, zlib.Z_SYNC_FLUSH)

    def write_last(self, chunk: bytes) -> None:
        """Write what nothing is expected to follow for a while, and rest."""
        self._write(chunk, zlib.Z_FINISH)
        self._packer = None

    def _write(self, chunk: bytes, ending: int) -> None:
        if self._packer is None:
            self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WBITS, _MEMORY_LEVEL)
        packed = self._packer.compress(chunk)
        self._inner.write(packed + self._packer.flush(ending))

    def rest(self) -> None:
        """Let go of what is only needed to pack the next write well."""
        if self._packer is not None:
            self._inner.write(self._packer.flush(zlib.Z_FINISH))
            self._packer = None

    async def drain(self) -> None:
        await self._inner.drain()

    @property
    def closed(self) -> bool:
        return self._inner.closed

    @property
    def queued_bytes(self) -> int:
        return self._inner.queued_bytes
