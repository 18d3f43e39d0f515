"""This process's terminal, for a command that runs elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import AsyncIterator, Iterator

_PIECE_BYTES = 32 << 10


class LocalTerminal:
    """Input, output and size of the terminal this process was started in."""

    async def typed(self) -> AsyncIterator[bytes]:
        """Yield what is typed, or read from a file or pipe, to its end."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[bytes] = asyncio.Queue(maxsize=4)

        def read() -> None:
            # A thread of its own that nobody waits for: what blocks in read() cannot be cancelled.
            with contextlib.suppress(OSError, RuntimeError):
                while True:
                    text = os.read(sys.stdin.fileno(), _PIECE_BYTES)
                    asyncio.run_coroutine_threadsafe(arrived.put(text), loop).result()
                    if not text:
                        return

        threading.Thread(target=read, daemon=True).start()
        while text := await arrived.get():
            yield text

    async def sizes(self) -> AsyncIterator[tuple[int, int]]:
        """Yield the size of the terminal, now and whenever it changes."""
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, changed.set)
        try:
            while True:
                changed.clear()
                with contextlib.suppress(OSError):
                    size = os.get_terminal_size(sys.stdin.fileno())
                    yield size.columns, size.lines
                await changed.wait()
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)

    async def show(self, text: bytes, *, error: bool) -> None:
        """Write what the command wrote."""
        stream = sys.stderr.buffer if error else sys.stdout.buffer
        stream.write(text)
        stream.flush()


@contextlib.contextmanager
def raw_input(wanted: bool) -> Iterator[None]:
    """Pass every key on as it is, Ctrl-C among them, where *wanted* and there is a terminal."""
    if not wanted or not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
