"""A command's terminal keeps nobody waiting: neither what it does not read, nor what it prints."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
import tty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from skerry.edge.agent.execute import Session


@asynccontextmanager
async def terminal() -> AsyncIterator[tuple[Session, int]]:
    """Yield a session with a terminal, and the command's side of that."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    ours, its = pty.openpty()
    tty.setraw(its)
    try:
        yield Session(process, ours), its
    finally:
        await process.wait()
        os.close(ours)
        os.close(its)


def read(descriptor: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += os.read(descriptor, size - len(found))
    return found


async def test_input_that_nobody_reads_waits_alone_and_arrives_whole() -> None:
    text = bytes(range(256)) * 512
    async with terminal() as (session, its), asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(session.write(text))
        await asyncio.sleep(0)
        assert not writing.done()
        assert await asyncio.to_thread(read, its, len(text)) == text


async def test_a_command_that_prints_without_end_has_to_wait_until_somebody_takes_it() -> None:
    async with terminal() as (session, its):
        os.set_blocking(its, False)
        output = session.output()
        printed = 0
        for _ in range(1000):
            try:
                printed += os.write(its, b"x" * 4096)
            except BlockingIOError:
                break
            await asyncio.sleep(0)
        assert 0 < printed < 1000 * 4096
        taken = 0
        while taken < printed:
            taken += len(await anext(output))
        assert taken == printed
        await output.aclose()  # type: ignore[attr-defined]
