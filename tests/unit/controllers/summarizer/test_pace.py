"""Looks at one summary are spaced out; nothing is forgotten."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from skerry.controllers.summarizer.keys import SHORTEST_INTERVAL_SECONDS, Pace
from skerry.kit.clock import LoopClock
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue
from tests.kit.sim.loop import virtual

KEY = Key("c", "shop", "p-deployments-web")


@virtual
async def test_a_key_is_looked_at_at_once_and_then_no_more_often_than_allowed() -> None:
    queue: WorkQueue[Key] = WorkQueue("q")
    pace = Pace(queue, LoopClock())
    looks: list[float] = []

    async def look() -> None:
        while True:
            key = await queue.get()
            pace.looking(key)
            looks.append(asyncio.get_running_loop().time())
            queue.done(key)

    async with asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(look())
        for _ in range(100):
            pace.wake(KEY)
            await asyncio.sleep(0.02)
        await asyncio.sleep(5)
        looking.cancel()
    assert looks[0] == 0
    gaps = [later - earlier for earlier, later in pairwise(looks)]
    assert min(gaps) >= SHORTEST_INTERVAL_SECONDS
    # The last wake at 1.98 s was not lost.
    assert looks[-1] >= 1.98
    assert len(looks) == 5
