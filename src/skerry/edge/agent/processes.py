"""Processes by pid and start time, so that a pid used again is never taken for ours."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import NamedTuple


class Process(NamedTuple):
    """One process, for as long as it lives."""

    pid: int
    start: int


def start_time(pid: int) -> int | None:
    """Return when a process began, in clock ticks; None when there is none, or only its remains."""
    found = _state_and_start(pid)
    return None if found is None or found[0] in (b"Z", b"X") else found[1]


def _state_and_start(pid: int) -> tuple[bytes, int] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return (fields[0], int(fields[19])) if len(fields) > 19 else None


def opened(process: Process) -> int | None:
    """Return a descriptor that becomes readable when a process has ended; None when it has.

    Also for one whose first thread is gone already: the others may still hold its files and
    ports, and only the descriptor tells when the last of them has ended.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return None
    # Opened before it is compared: what the descriptor names cannot change any more.
    found = _state_and_start(process.pid)
    if found is None or found[1] != process.start:
        os.close(descriptor)
        return None
    return descriptor


def alive(process: Process) -> bool:
    """Tell whether exactly this process still runs."""
    return process.pid > 0 and start_time(process.pid) == process.start


def signal_group(process: Process, number: int) -> bool:
    """Send a signal to the group a process leads; False when it has gone.

    The group may outlive its leader only under another parent's care, which the shim is not; so
    the leader's identity vouches for the group.
    """
    if not alive(process):
        return False
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A group that has only zombies left, or a program that changed its user.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
    return True


def end_group(process: Process) -> bool:
    """Kill the group a process leads."""
    return signal_group(process, signal.SIGKILL)


async def wait_gone(process: Process) -> None:
    """Wait until a process, ours or not, has ended."""
    descriptor = opened(process)
    if descriptor is None:
        return
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()

    def ended() -> None:
        loop.remove_reader(descriptor)
        if not gone.done():
            gone.set_result(None)

    try:
        loop.add_reader(descriptor, ended)
        await gone
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
