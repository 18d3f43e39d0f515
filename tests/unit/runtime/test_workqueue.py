from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.runtime.backoff import Backoff
from skerry.runtime.workqueue import QueueFull, WorkQueue
from tests.kit.sim.loop import virtual


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual
async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


@virtual
async def test_a_key_added_while_worked_on_comes_again_after_done() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await queue.get() == "a"


@virtual
async def test_the_earliest_of_several_times_counts() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 5)
    assert queue.delayed == 1
    assert await queue.get() == "a"
    assert now() == pytest.approx(3)


@virtual
async def test_a_failed_key_is_retried_after_a_doubling_time_until_forgotten() -> None:
    queue: WorkQueue[str] = WorkQueue("q", backoff=Backoff(1.0, 4.0))
    assert [queue.retry("a") for _ in range(4)] == [1.0, 2.0, 4.0, 4.0]
    assert queue.failures("a") == 4
    queue.forget("a")
    assert queue.retry("a") == 1.0


@virtual
async def test_a_cancelled_getter_passes_its_call_on() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(queue.get())
        second = tasks.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
    assert second.result() == "a"


@virtual
async def test_more_keys_than_the_capacity_stop_loudly() -> None:
    queue: WorkQueue[int] = WorkQueue("q", capacity=2)
    queue.add(1)
    queue.add(2)
    with pytest.raises(QueueFull):
        queue.add(3)


@virtual
async def test_idle_means_nothing_waits_and_nothing_is_worked_on() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    queue.add("a")

    async def work() -> None:
        key = await queue.get()
        await asyncio.sleep(2)
        queue.done(key)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(work())
        await queue.wait_idle()
        assert now() == pytest.approx(2)


steps = st.lists(st.tuples(st.integers(0, 5), st.floats(0, 3), st.floats(0, 3)), max_size=60)


@settings(max_examples=100, deadline=None)
@given(steps=steps, workers=st.integers(1, 4))
@virtual
async def test_no_key_is_lost_nor_worked_on_twice_at_once(
    steps: list[tuple[int, float, float]], workers: int
) -> None:
    queue: WorkQueue[int] = WorkQueue("q")
    busy: Counter[int] = Counter()
    last_work: dict[int, float] = {}
    last_add: dict[int, float] = {}

    async def work() -> None:
        while True:
            key = await queue.get()
            assert busy[key] == 0
            busy[key] += 1
            last_work[key] = now()
            await asyncio.sleep(0.5)
            busy[key] -= 1
            queue.done(key)

    async with asyncio.TaskGroup() as tasks:
        working = [tasks.create_task(work()) for _ in range(workers)]
        for key, pause, delay in steps:
            queue.add_after(key, delay)
            last_add[key] = max(now(), last_add.get(key, 0.0))
            await asyncio.sleep(pause)
        await asyncio.sleep(100)
        for each in working:
            each.cancel()
    assert last_work.keys() == last_add.keys()
    assert all(last_work[key] >= last_add[key] for key in last_add)


@virtual
async def test_what_is_delayed_can_be_hastened_and_comes_once() -> None:
    queue: WorkQueue[str] = WorkQueue("q")
    queue.add_after("a", 60)
    queue.add_after("b", 5)
    queue.add("c")
    queue.hasten()
    queue.hasten()
    found = [await queue.get() for _ in range(3)]
    assert sorted(found) == ["a", "b", "c"]
    for key in found:
        queue.done(key)
    await asyncio.sleep(120)
    assert (queue.idle, queue.delayed) == (True, 0)
