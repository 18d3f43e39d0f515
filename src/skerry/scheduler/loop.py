"""The loop: pods from the queue, one decision after the other, bindings beside."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from skerry.kit.clock import Clock
from skerry.scheduler.queue import SchedulingQueue
from skerry.scheduler.scheduler import PodScheduler


async def run_loop(scheduler: PodScheduler, ready: asyncio.Event, tasks: asyncio.TaskGroup) -> None:
    """Attempt pods as they become ready, for ever.

    Lets others run now and then: decisions alone could keep the loop busy for seconds.
    """

    def spawn(work: Coroutine[None, None, None]) -> None:
        tasks.create_task(work)

    made = 0
    while True:
        queued = scheduler.queue.pop()
        if queued is None:
            ready.clear()
            await ready.wait()
            continue
        await scheduler.step(queued, spawn)
        made += 1
        if made % _YIELD_EVERY == 0:
            await asyncio.sleep(0)


# Decisions between two turns of the loop; about a millisecond of work.
_YIELD_EVERY = 16


# How often the queue is asked what time has ripened; kube-scheduler's own intervals.
_BACKOFF_SECONDS = 1.0
_UNSCHEDULABLE_EVERY = 30


async def flush_loop(queue: SchedulingQueue, clock: Clock) -> None:
    """Move pods on whose back-off or patience has ended, for ever."""
    rounds = 0
    while True:
        await clock.sleep(_BACKOFF_SECONDS)
        queue.flush()
        rounds += 1
        if rounds % _UNSCHEDULABLE_EVERY == 0:
            queue.flush_unschedulable()
