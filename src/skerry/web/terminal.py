"""The terminal of one program in a tab: what it prints, what is typed, and how much of it waits.

Neither side can swamp the other. A program is sent on only as fast as the page shows what it
prints: so much may be under way, and then the program waits, all the way back at the edge. What is
typed waits here, within a bound that the page knows, while the program does not read. A page that
keeps to neither bound has its terminal ended (``terminals``).
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from skerry.api.errors import BadRequest
from skerry.logic.fleet.console.frames import MAX_TYPED_BYTES, Shown, Size, Typed

# What may be on its way to a page or wait there to be shown: less than what keeps views from being
# sent (``tab``), so that a program that prints without end does not stop them.
WINDOW_BYTES: Final = 128 * 1024
_PIECE_BYTES: Final = 16 * 1024

Say = Callable[[Mapping[str, Any]], None]


class TabTerminal:
    """The terminal of one program, as the program has it."""

    def __init__(
        self, number: int, size: tuple[int, int], say: Say, begun: Callable[[], None]
    ) -> None:
        self._number = number
        self._size = size
        self._say = say
        self._begun = begun
        self._typed: deque[bytes] = deque()
        self._typed_bytes = 0
        self._arrived = asyncio.Event()
        self._resized = asyncio.Event()
        self._unshown = 0
        self._room = asyncio.Event()

    def begin(self, pod: str) -> None:
        """Say that the program runs."""
        self._begun()
        self._send(running={"pod": pod})

    async def typed(self) -> AsyncIterator[bytes]:
        """Yield what is typed; who comes back for more has passed it on."""
        while True:
            while self._typed:
                text = self._typed.popleft()
                yield text
                self._typed_bytes -= len(text)
                self._send(taken=len(text))
            self._arrived.clear()
            await self._arrived.wait()

    async def sizes(self) -> AsyncIterator[tuple[int, int]]:
        """Yield the size of the terminal, now and whenever it changes."""
        while True:
            self._resized.clear()
            yield self._size
            await self._resized.wait()

    async def show(self, text: bytes, *, error: bool) -> None:
        """Send what the program wrote as far as the page takes it; a terminal has one stream."""
        del error
        for start in range(0, len(text), _PIECE_BYTES):
            piece = text[start : start + _PIECE_BYTES]
            while self._unshown + len(piece) > WINDOW_BYTES:
                self._room.clear()
                await self._room.wait()
            self._unshown += len(piece)
            self._send(out=base64.b64encode(piece).decode())

    def hear(self, frame: Typed | Size | Shown) -> None:
        """Take what the page says; raises BadRequest where it breaks the bounds."""
        match frame:
            case Typed(_, text):
                if self._typed_bytes + len(text) > MAX_TYPED_BYTES:
                    raise BadRequest(
                        f"typed: more than {MAX_TYPED_BYTES} bytes wait for the program"
                    )
                self._typed_bytes += len(text)
                self._typed.append(text)
                self._arrived.set()
            case Size(_, size):
                self._size = size
                self._resized.set()
            case Shown(_, count):
                if count > self._unshown:
                    raise BadRequest(f"shown: {count} bytes, of which {self._unshown} were sent")
                self._unshown -= count
                self._room.set()

    def _send(self, **members: Any) -> None:
        self._say({"id": self._number, **members})
