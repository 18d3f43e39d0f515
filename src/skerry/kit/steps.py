"""Work that can be interrupted: a generator that yields wherever others may have their turn.

Pure code says where a step ends and knows no event loop. Who runs it decides what happens in
between: nothing (``finished``), or whatever else waits for the loop (``in_turns``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

# A turn of the loop that is longer has others in it, who wait for theirs.
_LONG_TURN_SECONDS = 0.01
# How much longer than such a turn others have the loop to themselves, at the most so long.
_TURNS_OF_OTHERS = 3
_MAX_PAUSE_SECONDS = 0.25

T = TypeVar("T")
Steps = Generator[None, None, T]


def finished(steps: Steps[T]) -> T:
    """Do all steps at once; return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result


async def in_turns(steps: Steps[T]) -> T:
    """Do the steps, each at a turn of the loop of its own; return the result.

    Work of a single step does not wait at all.
    """
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        await asyncio.sleep(0)


async def give_way() -> None:
    """Let others have the loop, and most of it while they have much to do.

    Between pieces of long work that nobody waits for.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    turn = loop.time() - began
    if turn > _LONG_TURN_SECONDS:
        await asyncio.sleep(min(_TURNS_OF_OTHERS * turn, _MAX_PAUSE_SECONDS))


def pieces(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield *values* in order, at most *size* at a time."""
    left = iter(values)
    while piece := list(islice(left, size)):
        yield piece
