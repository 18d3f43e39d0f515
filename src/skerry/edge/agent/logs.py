"""Reading containers' logs, once or as they grow.

Lines are in the form of the container runtime interface (see ``shim``). Following waits for the
kernel to tell of changes; it ends with the container.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from skerry.edge.agent.process_container import EXIT

_CLOSE_ON_EXEC = 0o2000000
_NON_BLOCKING = 0o4000
_MODIFIED, _MOVED_TO, _CREATED, _DELETED_SELF = 0x2, 0x80, 0x100, 0x400
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What part of a log is wanted, as PodLogOptions say it."""

    follow: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = ""


async def read_log(path: Path, options: LogOptions) -> AsyncIterator[bytes]:
    """Yield the wanted part of a log in chunks; goes on until the container ends to follow it."""
    left = options.limit_bytes
    async for chunk in _chunks(path, options):
        wanted = chunk if left is None else chunk[:left]
        if wanted:
            yield wanted
        if left is not None:
            left -= len(wanted)
            if left <= 0:
                return


async def _chunks(path: Path, options: LogOptions) -> AsyncIterator[bytes]:
    with watched(path.parent) as changed, path.open("rb") as file:
        start = _tail_start(path, options) if options.tail_lines is not None else 0
        file.seek(start)
        pending = b""
        while True:
            ended = (path.parent / EXIT).exists()
            data = await asyncio.get_running_loop().run_in_executor(None, file.read, _CHUNK)
            if data:
                *whole, pending = (pending + data).split(b"\n")
                yield b"".join(_shown(line, options) for line in whole)
            elif not options.follow:
                return
            elif _replaced(file.fileno(), path):
                # Even where the container has ended: what it wrote last is in the new one.
                file.close()
                async for chunk in _chunks(path, replace(options, tail_lines=None)):
                    yield chunk
                return
            elif ended:
                return
            else:
                await changed.wait()
                changed.clear()


def _replaced(descriptor: int, path: Path) -> bool:
    """Tell whether the log was begun anew under the same name."""
    try:
        return os.fstat(descriptor).st_ino != path.stat().st_ino
    except FileNotFoundError:
        return False


def _shown(line: bytes, options: LogOptions) -> bytes:
    """Return a log line as it is shown; empty when it is not wanted."""
    moment, stream, tag, text = (*line.split(b" ", 3), b"", b"", b"")[:4]
    if options.stream and stream.decode() != options.stream:
        return b""
    if options.since is not None and _moment(moment) < options.since:
        return b""
    shown = moment + b" " + text if options.timestamps else text
    return shown if tag == b"P" else shown + b"\n"


def _moment(text: bytes) -> datetime:
    # Nine decimals are more than datetime reads.
    whole, _, fraction = text.decode().rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{(fraction + '000000')[:6]}+00:00")


def _tail_start(path: Path, options: LogOptions) -> int:
    """Return where the last lines begin, reading backwards."""
    wanted = options.tail_lines or 0
    with path.open("rb") as file:
        position = file.seek(0, os.SEEK_END)
        if wanted == 0:
            return position
        found = 0
        while position > 0:
            size = min(_CHUNK, position)
            position = file.seek(position - size)
            block = file.read(size)
            for offset in range(len(block) - 1, -1, -1):
                if block[offset] == 10 and position + offset < path.stat().st_size - 1:
                    found += 1
                    if found == wanted:
                        return position + offset + 1
    return 0


@contextmanager
def watched(directory: Path) -> Iterator[asyncio.Event]:
    """Yield an event that is set whenever something in *directory* changes."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(_CLOSE_ON_EXEC | _NON_BLOCKING)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def readable() -> None:
        try:
            os.read(descriptor, 65536)
        except BlockingIOError:
            return
        changed.set()

    try:
        mask = _MODIFIED | _MOVED_TO | _CREATED | _DELETED_SELF
        if library.inotify_add_watch(descriptor, os.fsencode(directory), mask) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch", str(directory))
        loop.add_reader(descriptor, readable)
        yield changed
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
