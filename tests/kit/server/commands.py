"""A command that exec and attach lead to, and a connection to ask for it by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tests.kit.server.websocket import Wire


class Command:
    """Says a line on each output once its input has ended, and remembers what it was given."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.given = b""
        self.size = (0, 0)
        self.ended = asyncio.Event()

    async def output(self) -> AsyncIterator[bytes]:
        await self.ended.wait()
        yield b"out"

    async def errors(self) -> AsyncIterator[bytes]:
        await self.ended.wait()
        yield b"err"

    async def write(self, data: bytes) -> None:
        self.given += data

    def end_input(self) -> None:
        self.ended.set()

    def resize(self, width: int, height: int) -> None:
        self.size = (width, height)

    async def wait(self) -> int:
        return self.code


class OpenWire(Wire):
    """A connection that stays open after its pieces."""

    async def read(self) -> bytes:
        if self.pieces:
            return self.pieces.pop(0)
        await asyncio.Event().wait()
        return b""
