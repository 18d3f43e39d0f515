"""How a container ends: asked first, made to then, and what it says at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.process_container import LOG
from skerry.edge.agent.runtime import Container, Exit

TERMINATION_LOG = "termination-log"
TERMINATION_PATH = "/dev/termination-log"
# kubelet's bounds on what a container says at its end.
_MESSAGE_BYTES = 4096
_MESSAGE_LINES = 80


def last_words(container: Object, place: Path, result: Exit) -> str:
    """Return what a container left in its termination log, or at the end of its output."""
    text = _end_of(place / TERMINATION_LOG, _MESSAGE_BYTES)
    fallback = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    if text or not fallback or result.code == 0:
        return text
    lines = _end_of(place / LOG, 4 * _MESSAGE_BYTES).splitlines()
    texts = [line.split(" ", 3)[-1] for line in lines[-_MESSAGE_LINES:]]
    return "\n".join(texts)[-_MESSAGE_BYTES:]


def _end_of(path: Path, size: int) -> str:
    """Return the end of a file that a container writes: no link, no pipe, and no more than that."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        opened = os.open(path, flags)
    except OSError:
        return ""
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            return ""
        file.seek(max(0, status.st_size - size))
        return file.read(size).decode(errors="replace")


async def ended_within(container: Container, grace: float) -> Exit:
    """Ask a container to end, and make it end once *grace* seconds are over."""
    if grace > 0:
        container.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                return await container.wait()
    container.signal(signal.SIGKILL)
    return await container.wait()


def restarting(policy: str) -> Callable[[Exit], bool]:
    """Return whether a container is started again after an exit, under a restart policy."""
    rules: Mapping[str, Callable[[Exit], bool]] = {
        "Always": lambda _: True,
        "OnFailure": lambda result: result.code != 0,
        "Never": lambda _: False,
    }
    return rules[policy]
