"""Interactive commands in a container: ``kubectl exec``.

A session is a process beside the container with its three streams, or one terminal for all of
them. It ends with its user: whatever the command started is killed when the session is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import functools
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from skerry.edge.agent.runtime import CannotStart, ContainerRuntime, ContainerSpec

_CHUNK = 32 * 1024


class Session:
    """A running command; read ``output`` and ``errors``, write its input."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int | None) -> None:
        self._process = process
        self._terminal = terminal
        if terminal is not None:
            # A command that does not read its input must not keep the agent waiting.
            os.set_blocking(terminal, False)

    async def output(self) -> AsyncIterator[bytes]:
        """Yield what the command writes, to its end."""
        if self._terminal is not None:
            async for chunk in _terminal_output(self._terminal):
                yield chunk
        elif self._process.stdout is not None:
            while chunk := await self._process.stdout.read(_CHUNK):
                yield chunk

    async def errors(self) -> AsyncIterator[bytes]:
        """Yield what the command writes to its error output; nothing with a terminal."""
        if self._process.stderr is not None:
            while chunk := await self._process.stderr.read(_CHUNK):
                yield chunk

    async def write(self, data: bytes) -> None:
        """Give the command input; harmless when it does not listen any more."""
        with contextlib.suppress(OSError):
            if self._terminal is not None:
                await _written(self._terminal, data)
            elif self._process.stdin is not None:
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    def end_input(self) -> None:
        """Say that no more input comes."""
        if self._terminal is None and self._process.stdin is not None:
            self._process.stdin.close()

    def resize(self, width: int, height: int) -> None:
        """Tell a terminal its size."""
        if self._terminal is not None:
            size = struct.pack("HHHH", height, width, 0, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    async def wait(self) -> int:
        """Return the exit code; 128 plus the signal for a command that was killed."""
        code = await self._process.wait()
        return code if code >= 0 else 128 - code


@asynccontextmanager
async def session(
    runtime: ContainerRuntime,
    spec: ContainerSpec,
    argv: Sequence[str],
    *,
    stdin: bool,
    tty: bool,
) -> AsyncIterator[Session]:
    """Run a command beside a container while inside; raises ``CannotStart``."""
    run = runtime.beside(spec, argv)
    environment = dict(run.environment)
    terminal, other = pty.openpty() if tty else (None, None)
    if tty:
        environment.setdefault("TERM", "xterm")
    piped = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *run.argv,
            env=environment,
            cwd=run.working_directory,
            stdin=other if tty else piped if stdin else asyncio.subprocess.DEVNULL,
            stdout=other if tty else piped,
            stderr=other if tty else piped,
            start_new_session=not tty,
            preexec_fn=None if other is None else functools.partial(_take_terminal, other),
        )
    except OSError as error:
        if terminal is not None:
            os.close(terminal)
        text = f'exec: "{run.argv[0]}": executable file not found in $PATH'
        raise CannotStart(text if isinstance(error, FileNotFoundError) else str(error)) from error
    finally:
        if other is not None:
            os.close(other)
    try:
        yield Session(process, terminal)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if terminal is not None:
            os.close(terminal)


def _take_terminal(terminal: int) -> None:
    """Begin a session with a terminal, so that shells control jobs and Ctrl-C is a signal.

    Loops differ in what they have done by now, so nothing is taken for granted.
    """
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


async def _terminal_output(terminal: int) -> AsyncIterator[bytes]:
    """Yield what is written, as it is taken: a command that prints without end has to wait."""
    loop = asyncio.get_running_loop()
    while True:
        readable = asyncio.Event()
        loop.add_reader(terminal, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(terminal)
        try:
            chunk = os.read(terminal, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            return  # the other side is closed: the command has ended
        if not chunk:
            return
        yield chunk


async def _written(terminal: int, data: bytes) -> None:
    """Write all of *data*, for as long as the command takes to read it."""
    loop = asyncio.get_running_loop()
    while data:
        try:
            data = data[os.write(terminal, data) :]
        except BlockingIOError:
            writable = asyncio.Event()
            loop.add_writer(terminal, writable.set)
            try:
                await writable.wait()
            finally:
                loop.remove_writer(terminal)
