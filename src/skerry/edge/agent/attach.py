"""The agent's side of ``kubectl attach``: streams of a container that runs; see ``attaching``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from skerry.edge.agent.attaching import END, HEAD, RESIZE, SOCKET, STDERR, STDIN, STDOUT
from skerry.edge.agent.logs import LogOptions, read_log
from skerry.edge.agent.runtime import CannotStart

# What has come for a reader that is slower than the program.
_MAX_WAITING = 256


class Attached:
    """A container with input, as one who is attached has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._chunks: dict[int, asyncio.Queue[bytes]] = {
            channel: asyncio.Queue(_MAX_WAITING) for channel in (STDOUT, STDERR)
        }

    async def run(self) -> None:
        """Sort what comes by channel, until nothing comes any more."""
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    channel, size = HEAD.unpack(await self._reader.readexactly(HEAD.size))
                    await self._chunks[channel].put(await self._reader.readexactly(size))
        finally:
            for queue in self._chunks.values():
                await queue.put(b"")

    async def output(self) -> AsyncIterator[bytes]:
        while chunk := await self._chunks[STDOUT].get():
            yield chunk

    async def errors(self) -> AsyncIterator[bytes]:
        while chunk := await self._chunks[STDERR].get():
            yield chunk

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self._send(STDIN, data)
            await self._writer.drain()

    def end_input(self) -> None:
        self._send(END, b"")

    def resize(self, width: int, height: int) -> None:
        self._send(RESIZE, json.dumps({"Width": width, "Height": height}).encode())

    def _send(self, channel: int, data: bytes) -> None:
        self._writer.write(HEAD.pack(channel, len(data)) + data)

    async def wait(self) -> int:
        """Return 0: how the container ended is reported by its status, to everybody."""
        return 0


@asynccontextmanager
async def attached(directory: Path) -> AsyncIterator[Attached]:
    """Be attached to the container of *directory* while inside; raises ``CannotStart``."""
    place = os.open(directory, os.O_PATH | os.O_CLOEXEC)
    try:
        # By a short way: the whole path may be longer than a socket's name can be.
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{place}/{SOCKET}")
    except OSError as error:
        raise CannotStart(f"the container does not answer: {error}") from error
    finally:
        os.close(place)
    found = Attached(reader, writer)
    try:
        async with asyncio.TaskGroup() as tasks:
            sorting = tasks.create_task(found.run())
            yield found
            sorting.cancel()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class Listener:
    """A container without input: only what it writes from now on can be had."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def output(self) -> AsyncIterator[bytes]:
        return read_log(self._log, LogOptions(follow=True, tail_lines=0, stream="stdout"))

    def errors(self) -> AsyncIterator[bytes]:
        return read_log(self._log, LogOptions(follow=True, tail_lines=0, stream="stderr"))

    async def write(self, data: bytes) -> None:
        """Drop it: nobody listens."""

    def end_input(self) -> None:
        """Nothing to end."""

    def resize(self, width: int, height: int) -> None:
        """Nothing to resize."""

    async def wait(self) -> int:
        return 0
