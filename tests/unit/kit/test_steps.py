from __future__ import annotations

import asyncio
import time

import pytest

from skerry.kit.steps import Steps, finished, give_way, in_turns, pieces


def counting(to: int, seen: list[int]) -> Steps[str]:
    for number in range(to):
        if number:
            yield
        seen.append(number)
    return "done"


def test_steps_are_all_done_at_once_where_nobody_waits() -> None:
    seen: list[int] = []
    assert finished(counting(3, seen)) == "done"
    assert seen == [0, 1, 2]


async def test_others_have_their_turn_between_steps() -> None:
    seen: list[int] = []
    noted: list[int] = []

    async def other() -> None:
        while len(seen) < 3:
            noted.append(len(seen))
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    assert await in_turns(counting(3, seen)) == "done"
    await beside
    assert noted == [1, 2]


async def test_work_of_one_step_does_not_wait() -> None:
    turns: list[int] = []
    asyncio.get_running_loop().call_soon(turns.append, 1)
    await in_turns(counting(1, []))
    assert turns == []


def test_pieces_are_the_whole_in_order() -> None:
    assert list(pieces(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(pieces((), 2)) == []


async def test_long_work_gives_way_to_others_while_they_have_much_to_do() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            until = time.perf_counter() + 0.02
            while time.perf_counter() < until:
                pass
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    await asyncio.sleep(0)
    begun = turns
    for _ in range(5):
        await give_way()
    beside.cancel()
    assert turns - begun >= 5 * 3


async def test_long_work_that_is_alone_only_takes_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 7.0)
    await give_way()
    assert slept == [0]
