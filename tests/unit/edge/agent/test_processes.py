"""Processes are known by pid and start time, and waited for whoever started them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

from skerry.edge.agent.processes import (
    Process,
    alive,
    end_group,
    opened,
    signal_group,
    start_time,
    wait_gone,
)


def started(*words: str) -> tuple[subprocess.Popen[bytes], Process]:
    child = subprocess.Popen(words, start_new_session=True)
    start = start_time(child.pid)
    assert start is not None
    return child, Process(child.pid, start)


async def test_a_process_is_waited_for_to_its_end() -> None:
    child, process = started("sleep", "100")
    waiting = asyncio.ensure_future(wait_gone(process))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert end_group(process)
    async with asyncio.timeout(60):
        await waiting
    assert child.wait() == -signal.SIGKILL
    assert not alive(process)
    assert opened(process) is None
    await wait_gone(process)


async def test_another_process_of_the_same_pid_is_nobody() -> None:
    child, process = started("sleep", "100")
    former = Process(process.pid, process.start - 1)
    assert not alive(former)
    assert not signal_group(former, signal.SIGKILL)
    await wait_gone(former)
    assert alive(process), "it was not touched"
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def test_no_process_is_no_process() -> None:
    assert not alive(Process(0, 0))
    assert start_time(2**22 + 1) is None
