"""Observations of one summary are spaced out; nothing is forgotten."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from skerry.kit.clock import LoopClock
from skerry.runtime.index import Key
from skerry.runtime.pace import MIN_INTERVAL_SECONDS, Pace
from skerry.runtime.workqueue import WorkQueue
from tests.kit.sim.loop import virtual

KEY = Key("c", "shop", "p-deployments-web")


@virtual
async def test_a_key_is_observed_at_once_and_then_no_more_often_than_allowed() -> None:
    queue: WorkQueue[Key] = WorkQueue("q")
    pace = Pace(queue, LoopClock())
    times: list[float] = []

    async def observe() -> None:
        while True:
            key = await queue.get()
            pace.observing(key)
            times.append(asyncio.get_running_loop().time())
            queue.done(key)

    async with asyncio.TaskGroup() as tasks:
        observing = tasks.create_task(observe())
        for _ in range(100):
            pace.enqueue(KEY)
            await asyncio.sleep(0.02)
        await asyncio.sleep(5)
        observing.cancel()
    assert times[0] == 0
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) >= MIN_INTERVAL_SECONDS
    # The last one at 1.98 s was not lost.
    assert times[-1] >= 1.98
    assert len(times) == 5
