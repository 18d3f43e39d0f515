"""Statuses follow the slices: gathered in gusts, late but not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.status_pace import (
    AFTER_SECONDS,
    LATEST_SECONDS,
    StatusPace,
)
from skerry.kit.clock import LoopClock
from skerry.runtime.workqueue import WorkQueue
from tests.kit.sim.loop import virtual

P, Q = edge_placement_ref("wmw", "p"), edge_placement_ref("wmw", "q")
BURST = [edge_placement_ref("wmw", f"b-{number}") for number in range(1000)]


class Queues:
    """The queue of slices, that of statuses, and what comes out of the second."""

    def __init__(self) -> None:
        self.slices: WorkQueue[ObjectRef] = WorkQueue("slices")
        self.statuses: WorkQueue[ObjectRef] = WorkQueue("statuses")
        self.pace = StatusPace(self.slices, self.statuses, LoopClock())
        self.taken: list[tuple[float, ObjectRef]] = []

    async def take(self) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            ref = await self.statuses.get()
            self.taken.append((round(loop.time() - begun, 3), ref))
            self.statuses.done(ref)


@asynccontextmanager
async def running() -> AsyncIterator[Queues]:
    queues = Queues()
    async with asyncio.TaskGroup() as tasks:
        loops = [tasks.create_task(each) for each in (queues.pace.run(), queues.take())]
        await asyncio.sleep(0)
        yield queues
        for loop in loops:
            loop.cancel()


@virtual
async def test_a_burst_is_enqueued_together_each_placement_once_and_in_order() -> None:
    async with running() as here:
        for ref in [*BURST, *BURST[:10]]:
            here.pace.enqueue(ref)
        await asyncio.sleep(1)
        assert here.taken == [(AFTER_SECONDS, ref) for ref in BURST]


@virtual
async def test_a_status_waits_until_no_slice_is_to_be_written() -> None:
    async with running() as here:
        here.slices.add(P)
        here.pace.enqueue(P)
        await asyncio.sleep(3)
        assert here.taken == [], "its slice is still being written"
        here.slices.done(await here.slices.get())
        await asyncio.sleep(0.01)
        assert [ref for _, ref in here.taken] == [P]


@virtual
async def test_what_becomes_due_while_others_wait_goes_with_them() -> None:
    async with running() as here:
        here.slices.add(P)
        here.pace.enqueue(P)
        await asyncio.sleep(3)
        here.pace.enqueue(Q)
        here.slices.done(await here.slices.get())
        await asyncio.sleep(0.01)
        assert [ref for _, ref in here.taken] == [P, Q]


@virtual
async def test_slices_that_are_never_quiet_hold_statuses_up_for_a_while_only() -> None:
    async with running() as here:
        here.slices.add(Q)
        here.pace.enqueue(P)
        await asyncio.sleep(60)
        assert here.taken == [(AFTER_SECONDS + LATEST_SECONDS, P)]
        here.pace.enqueue(P)
        await asyncio.sleep(60)
        assert len(here.taken) == 2, "it can be due again"


@virtual
async def test_who_waits_for_quiet_slices_does_not_wait_where_they_are() -> None:
    queues = Queues()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await queues.pace.wait_quiet()
    assert loop.time() - begun == pytest.approx(0, abs=0.01)
    queues.slices.add(P)
    await queues.pace.wait_quiet()
    assert loop.time() - begun == pytest.approx(LATEST_SECONDS, abs=0.01)
