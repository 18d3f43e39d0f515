"""The loop attempts what is ready, waits for more, and lets others run meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

from skerry.scheduler.loop import flush_loop, run_loop


class Queue:
    """Hands out numbers, and counts how often it was flushed."""

    def __init__(self, *ready: int) -> None:
        self.ready = deque(ready)
        self.flushed = self.flushed_unschedulable = 0

    def pop(self) -> int | None:
        return self.ready.popleft() if self.ready else None

    def flush(self) -> None:
        self.flushed += 1

    def flush_unschedulable(self) -> None:
        self.flushed_unschedulable += 1


class Scheduler:
    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.attempted: list[int] = []
        self.bound: list[int] = []

    async def step(self, queued: int, spawn: Any) -> None:
        self.attempted.append(queued)

        async def bind() -> None:
            self.bound.append(queued)

        spawn(bind())


async def ended(task: asyncio.Future[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_pods_are_attempted_in_order_and_bound_beside() -> None:
    scheduler: Any = Scheduler(Queue(*range(40)))
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = asyncio.ensure_future(run_loop(scheduler, ready, tasks))
        for _ in range(10):
            await asyncio.sleep(0)
        assert scheduler.attempted == list(range(40))
        scheduler.queue.ready.append(99)
        await asyncio.sleep(0)
        assert scheduler.attempted[-1] == 39
        ready.set()
        for _ in range(3):
            await asyncio.sleep(0)
        assert scheduler.attempted[-1] == 99
        await ended(running)
    assert sorted(scheduler.bound) == [*range(40), 99]


async def test_others_run_between_decisions() -> None:
    scheduler: Any = Scheduler(Queue(*range(1000)))
    async with asyncio.TaskGroup() as tasks:
        running = asyncio.ensure_future(run_loop(scheduler, asyncio.Event(), tasks))
        await asyncio.sleep(0)
        assert 0 < len(scheduler.attempted) < 100
        await ended(running)


class Clock:
    """Lets so many sleeps pass at once, and no more."""

    def __init__(self, sleeps: int) -> None:
        self._left = sleeps

    async def sleep(self, seconds: float) -> None:
        assert seconds == 1.0
        self._left -= 1
        if self._left < 0:
            await asyncio.Event().wait()


async def test_what_time_has_ripened_is_asked_for_each_second_and_patience_each_half_minute() -> (
    None
):
    queue: Any = Queue()
    clock: Any = Clock(65)
    running = asyncio.ensure_future(flush_loop(queue, clock))
    await asyncio.sleep(0)
    assert (queue.flushed, queue.flushed_unschedulable) == (65, 2)
    await ended(running)
