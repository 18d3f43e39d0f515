"""Seats and who waits for them: shares, turns, and seats that are never lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import TooManyRequests
from skerry.server.lanes import READY, Lane, LaneSettings, Seat, add


async def waits(lane: Lane, principal: str, workspace: str = "") -> asyncio.Task[None]:
    async def take() -> None:
        await lane.take(principal, workspace)

    task = asyncio.ensure_future(take())
    await asyncio.sleep(0)
    return task


async def test_a_free_seat_costs_nothing() -> None:
    lane = Lane(LaneSettings(seats=4))
    assert lane.take("a") is READY
    await READY
    assert lane.in_flight == 1


async def test_one_principal_holds_a_share_and_others_find_the_rest() -> None:
    lane = Lane(LaneSettings(seats=4, share=0.5))
    assert lane.take("a") is READY
    assert lane.take("a") is READY
    third = await waits(lane, "a")
    assert not third.done()
    assert lane.take("b") is READY
    lane.release("a")
    await third
    assert (lane.in_flight, lane.waiting) == (3, 0)


async def test_principals_of_one_workspace_share_its_share() -> None:
    lane = Lane(LaneSettings(seats=4, share=1, workspace_share=0.5))
    assert lane.take("a", "w") is READY
    assert lane.take("b", "w") is READY
    third = await waits(lane, "c", "w")
    assert not third.done()
    assert lane.take("d", "other") is READY
    lane.release("b", "w")
    await third


async def test_freed_seats_go_round() -> None:
    lane = Lane(LaneSettings(seats=1, share=1))
    assert lane.take("x") is READY
    first, second, other = [await waits(lane, name) for name in ("a", "a", "b")]
    lane.release("x")
    await first
    lane.release("a")
    await asyncio.sleep(0)
    assert other.done()
    assert not second.done()
    lane.release("b")
    await second


async def test_queues_are_short_and_a_refusal_says_when_to_come_again() -> None:
    lane = Lane(LaneSettings(seats=1, share=1, queue=1, max_waiting=2, retry_after_seconds=3))
    assert lane.take("x") is READY
    kept = [await waits(lane, "a")]
    with pytest.raises(TooManyRequests):
        await lane.take("a")
    kept.append(await waits(lane, "b"))
    with pytest.raises(TooManyRequests) as refused:
        await lane.take("c")
    assert refused.value.details["retryAfterSeconds"] == 3
    assert lane.rejected == 2
    for each in kept:
        each.cancel()


async def test_who_waits_too_long_is_refused_and_leaves_the_queue() -> None:
    lane = Lane(LaneSettings(seats=1, share=1, queue_seconds=0.01))
    assert lane.take("x") is READY
    with pytest.raises(TooManyRequests):
        await lane.take("a")
    lane.release("x")
    assert (lane.in_flight, lane.waiting) == (0, 0)


async def test_a_seat_given_to_one_who_just_left_goes_to_the_next() -> None:
    lane = Lane(LaneSettings(seats=1, share=1))
    assert lane.take("x") is READY
    first, second = await waits(lane, "a"), await waits(lane, "b")
    lane.release("x")
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    await second
    assert lane.in_flight == 1


async def test_a_seat_lasts_as_long_as_its_context() -> None:
    lane = Lane(LaneSettings(seats=1, share=1))
    async with Seat(lane, "a", "w"):
        assert lane.in_flight == 1
    assert lane.in_flight == 0


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["take", "release", "cancel"]))))
def test_no_seat_is_lost_or_made_up(steps: list[tuple[str, str]]) -> None:
    async def run() -> None:
        lane = Lane(LaneSettings(seats=3, share=0.7))
        tasks: list[tuple[str, asyncio.Task[None]]] = []

        for name, step in steps:
            if step == "take":
                tasks.append((name, await waits(lane, name)))
            elif step == "cancel":
                for _, task in tasks:
                    if not task.done():
                        task.cancel()
                        break
            else:
                seated = [e for e in tasks if e[1].done() and not e[1].cancelled()]
                if seated:
                    tasks.remove(seated[0])
                    lane.release(seated[0][0])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            holding = sum(1 for _, t in tasks if t.done() and not t.cancelled())
            assert lane.in_flight == holding <= 3
        for _, task in tasks:
            task.cancel()

    asyncio.run(run())


def test_numbers_that_come_to_nothing_are_not_kept() -> None:
    counts: dict[str, int] = {}
    add(counts, "a", 1)
    add(counts, "a", 1)
    add(counts, "a", -2)
    assert counts == {}
