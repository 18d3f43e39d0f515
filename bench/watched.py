"""A command of skerry, with its event loop watched: ``python -m bench.watched FILE hub ...``.

A timer of a millisecond fires at every turn of the loop while it is busy, and notes how much
processor time the loop's thread used since the turn before: what one turn held the loop for. The
longest is kept in FILE, eight bytes, which who measures reads and sets back to zero.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import uvloop

_SECONDS = 0.001
_FORM = struct.Struct("d")


class Hold:
    """The longest turn of a loop, shared between two processes."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_FORM.pack(0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _FORM.size)

    @property
    def seconds(self) -> float:
        found: float = _FORM.unpack_from(self._shared)[0]
        return found

    @seconds.setter
    def seconds(self, value: float) -> None:
        _FORM.pack_into(self._shared, 0, value)


class _Beat:
    """Looks at the processor time of its loop's thread at every turn."""

    def __init__(self, hold: Hold, loop: asyncio.AbstractEventLoop) -> None:
        self._hold = hold
        self._loop = loop
        self._before = time.thread_time()

    def __call__(self) -> None:
        now = time.thread_time()
        used, self._before = now - self._before, now
        if used > self._hold.seconds:
            self._hold.seconds = used
        self._loop.call_later(_SECONDS, self)


def main() -> None:
    """Run the command that follows the name of the file."""
    hold = Hold(Path(sys.argv[1]))
    sys.argv[1:2] = []
    run = uvloop.run

    def watched(coroutine: Coroutine[Any, Any, Any], **options: Any) -> Any:
        async def with_beat() -> Any:
            _Beat(hold, asyncio.get_running_loop())()
            return await coroutine

        return run(with_beat(), **options)

    uvloop.run = watched  # type: ignore[assignment]
    # Only now: it looks up what runs it when it is loaded.
    from skerry.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
