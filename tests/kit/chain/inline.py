"""Work that a process does in a thread, done at once: virtual time cannot wait for threads."""

from __future__ import annotations

from collections.abc import Callable


async def inline(work: Callable[[], None]) -> None:
    work()
