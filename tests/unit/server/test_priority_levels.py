"""How many requests of a priority level run at once: its share, what it borrows, and who waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skerry.api.errors import TooManyRequests
from skerry.server.flow import FairFlow, FlowSettings
from skerry.server.lanes import READY, Lane, LaneSettings, Seat
from skerry.server.priority_levels import LevelLane, PriorityLevels, SeatOfBoth

_QUEUE = {"type": "Queue", "queuing": {"queues": 8, "handSize": 1, "queueLengthLimit": 2}}


def level(shares: int, response: Any = None, **more: int) -> Any:
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response or {"type": "Reject"}}
    return {"spec": {"type": "Limited", "limited": {**limited, **more}}}


def lane_of(levels: PriorityLevels, name: str) -> LevelLane:
    found = levels.lane(name)
    assert found is not None
    return found


def levels_of(seats: int, **levels: Any) -> PriorityLevels:
    made = PriorityLevels(seats)
    made.settle(levels)
    return made


async def waits(lane: Lane, flow: str) -> asyncio.Task[None]:
    async def take() -> None:
        await lane.take(flow)

    task = asyncio.ensure_future(take())
    await asyncio.sleep(0)
    return task


async def test_a_level_has_its_share_and_refuses_what_is_beyond() -> None:
    levels = levels_of(8, small=level(1, borrowingLimitPercent=0), large=level(3))
    small = lane_of(levels, "small")
    assert small.take("a") is READY
    assert small.take("b") is READY
    with pytest.raises(TooManyRequests, match="please try again later"):
        await small.take("c")
    assert (small.rejected, levels.rejected) == (1, 1)
    small.release("a")
    assert small.take("c") is READY


async def test_an_exempt_level_has_no_seats_to_count() -> None:
    levels = levels_of(4, exempt={"spec": {"type": "Exempt", "exempt": {}}}, other=level(1))
    assert levels.lane("exempt") is None
    assert levels.lane("nobody") is None
    assert lane_of(levels, "other").nominal == 4


async def test_idle_seats_are_borrowed_of_what_others_lend() -> None:
    levels = levels_of(8, small=level(1), large=level(3, lendablePercent=50))
    small, large = lane_of(levels, "small"), lane_of(levels, "large")
    assert [small.take(str(number)) is READY for number in range(5)] == [True] * 5
    with pytest.raises(TooManyRequests):
        await small.take("5")
    assert [large.take(str(number)) is READY for number in range(6)] == [True] * 6, "its own"
    with pytest.raises(TooManyRequests):
        await large.take("6")


async def test_a_level_borrows_no_more_than_it_may() -> None:
    levels = levels_of(
        8, small=level(1, borrowingLimitPercent=50), large=level(3, lendablePercent=100)
    )
    small = lane_of(levels, "small")
    assert [small.take(str(number)) is READY for number in range(3)] == [True] * 3
    with pytest.raises(TooManyRequests):
        await small.take("3")


async def test_flows_wait_and_take_turns() -> None:
    levels = levels_of(1, only=level(1, _QUEUE))
    only = lane_of(levels, "only")
    assert only.take("a") is READY
    first, second, other = [await waits(only, flow) for flow in ("a", "a", "b")]
    with pytest.raises(TooManyRequests):
        await only.take("a")
    only.release("a")
    await first
    only.release("a")
    await other
    assert not second.done()
    only.release("b")
    await second


async def test_who_waits_to_borrow_has_a_seat_that_another_level_frees() -> None:
    levels = levels_of(2, small=level(1, _QUEUE), large=level(1, lendablePercent=100))
    small, large = lane_of(levels, "small"), lane_of(levels, "large")
    assert large.take("x") is READY
    assert small.take("a") is READY
    waiting = await waits(small, "a")
    assert not waiting.done()
    large.release("x")
    await waiting


async def test_a_changed_level_counts_at_once_and_who_has_a_seat_keeps_it() -> None:
    levels = levels_of(4, small=level(1, borrowingLimitPercent=0), large=level(1))
    small = lane_of(levels, "small")
    assert small.take("a") is READY
    assert small.take("a") is READY
    levels.settle({"small": level(1, borrowingLimitPercent=0), "large": level(3)})
    assert lane_of(levels, "small") is small
    small.release("a")
    with pytest.raises(TooManyRequests):
        await small.take("a")
    small.release("a")
    assert small.take("a") is READY


async def test_who_waits_is_let_in_when_a_level_is_enlarged_or_others_lend_more() -> None:
    levels = levels_of(8, none=level(0, _QUEUE), large=level(3))
    lane = lane_of(levels, "none")
    large = lane_of(levels, "large")
    assert [large.take(str(number)) is READY for number in range(8)] == [True] * 8
    first = await waits(lane, "a")
    second = await waits(lane, "b")
    levels.settle({"none": level(1, _QUEUE), "large": level(7)})
    await asyncio.gather(first)
    assert not second.done()
    levels.settle({"none": level(1, _QUEUE), "large": level(3)})
    await asyncio.gather(second)


async def test_a_seat_of_both_gives_back_the_first_where_the_second_is_not_to_be_had() -> None:
    only = lane_of(levels_of(2, only=level(1, _QUEUE)), "only")
    lane = Lane(LaneSettings(seats=1, share=1, queue=0))
    async with SeatOfBoth(only, "a", Seat(lane, "ann", "")):
        assert (only.in_flight, lane.in_flight) == (1, 1)
        with pytest.raises(TooManyRequests):
            async with SeatOfBoth(only, "a", Seat(lane, "ann", "")):
                raise AssertionError("there is but one seat")
        assert (only.in_flight, lane.in_flight) == (1, 1)
    assert (only.in_flight, lane.in_flight) == (0, 0)


async def test_a_seat_of_both_is_waited_for() -> None:
    only = lane_of(levels_of(1, only=level(1, _QUEUE)), "only")
    lane = Lane(LaneSettings(seats=4))

    async def use() -> tuple[int, int]:
        async with SeatOfBoth(only, "a", Seat(lane, "ann", "")):
            return only.in_flight, lane.in_flight

    async with SeatOfBoth(only, "a", Seat(lane, "ann", "")):
        later = asyncio.create_task(use())
        await asyncio.sleep(0)
        assert only.waiting == 1
    assert await later == (1, 1)


async def test_the_server_s_seats_are_what_levels_have_shares_of() -> None:
    flow = FairFlow(FlowSettings(reading=LaneSettings(30), mutating=LaneSettings(10)))
    flow.classes.priority_levels.settle({"a": level(1), "b": level(3)})
    assert lane_of(flow.classes.priority_levels, "a").nominal == 10
