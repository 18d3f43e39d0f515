from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import TooManyRequests
from skerry.server.flow import FairFlow, FlowSettings
from skerry.server.http.message import Sender, User
from skerry.server.request_info import RequestInfo

GET = RequestInfo("/api/v1/pods", "get", is_resource=True)
CREATE = RequestInfo("/api/v1/pods", "create", is_resource=True)
WATCH = RequestInfo("/api/v1/pods", "watch", is_resource=True)
ALICE, BOB, CAROL = User("alice"), User("bob"), User("carol")
MASTER = User("root", groups=("system:masters",))


class Held:
    """A request that runs until it is let go."""

    def __init__(self, flow: FairFlow, info: RequestInfo, user: User) -> None:
        self.running = False
        self._done = asyncio.Event()
        self.task = asyncio.ensure_future(self._run(flow, info, user))

    async def _run(self, flow: FairFlow, info: RequestInfo, user: User) -> None:
        async with flow.admitted(info, user):
            self.running = True
            await self._done.wait()

    async def finish(self) -> None:
        self._done.set()
        await self.task


async def begun(flow: FairFlow, user: User, count: int, info: RequestInfo = GET) -> list[Held]:
    held = [Held(flow, info, user) for _ in range(count)]
    await settle()
    return held


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def end(*held: Held) -> None:
    for one in held:
        one.task.cancel()
    await asyncio.gather(*(one.task for one in held), return_exceptions=True)


async def test_one_user_cannot_take_every_seat() -> None:
    flow = FairFlow(FlowSettings(reading=4, user_share=0.5))
    greedy = await begun(flow, ALICE, 10)
    assert sum(one.running for one in greedy) == 2
    (other,) = await begun(flow, BOB, 1)
    assert other.running
    await end(*greedy, other)
    assert (flow.reading.in_flight, flow.reading.waiting) == (0, 0)


async def test_reading_and_changing_do_not_hinder_each_other() -> None:
    flow = FairFlow(FlowSettings(reading=1, mutating=1, user_share=1))
    readers = await begun(flow, ALICE, 2)
    (writer,) = await begun(flow, ALICE, 1, CREATE)
    assert writer.running
    await end(*readers, writer)


async def test_freed_seats_go_round_the_waiting_users() -> None:
    flow = FairFlow(FlowSettings(reading=1, user_share=1))
    (first,) = await begun(flow, CAROL, 1)
    alices = await begun(flow, ALICE, 3)
    bobs = await begun(flow, BOB, 1)
    await first.finish()
    await settle()
    assert [one.running for one in alices] == [True, False, False]
    await alices[0].finish()
    await settle()
    assert bobs[0].running
    await bobs[0].finish()
    await settle()
    assert alices[1].running
    await end(*alices, *bobs)


async def test_a_full_queue_is_told_to_come_back() -> None:
    flow = FairFlow(FlowSettings(reading=1, user_share=1, queue=2))
    held = await begun(flow, ALICE, 3)
    with pytest.raises(TooManyRequests) as error:
        async with flow.admitted(GET, ALICE):
            pass
    assert error.value.headers["Retry-After"] == "1"
    assert flow.reading.rejected == 1
    await end(*held)


@pytest.mark.looptime
async def test_a_wait_that_is_too_long_is_told_to_come_back() -> None:
    flow = FairFlow(FlowSettings(reading=1, user_share=1, queue_seconds=15))
    (held,) = await begun(flow, ALICE, 1)
    with pytest.raises(TooManyRequests):
        async with flow.admitted(GET, BOB):
            pass
    await end(held)
    assert flow.reading.in_flight == flow.reading.waiting == 0
    assert not flow.reading._queues


async def test_masters_and_probes_pass_a_full_server() -> None:
    flow = FairFlow(FlowSettings(reading=1, user_share=1, queue=0))
    held = await begun(flow, ALICE, 1)
    async with flow.admitted(GET, MASTER):
        pass
    async with flow.admitted(RequestInfo("/readyz", "get"), ALICE):
        pass
    await end(*held)


async def test_watches_of_a_user_are_counted_while_they_last() -> None:
    flow = FairFlow(FlowSettings(watches=1))
    release = asyncio.Event()

    async def run(_: Sender) -> None:
        await release.wait()

    watching = asyncio.ensure_future(flow.counted_watch("alice", run)(None))  # type: ignore[arg-type]
    await settle()
    assert flow.watches == 1
    with pytest.raises(TooManyRequests, match="too many watches"):
        flow.admitted(WATCH, ALICE)
    async with flow.admitted(WATCH, BOB):
        pass
    release.set()
    await watching
    assert flow.watches == 0
    async with flow.admitted(WATCH, ALICE):
        pass


async def test_a_failing_request_gives_its_seat_back() -> None:
    flow = FairFlow()
    with pytest.raises(KeyError):
        async with flow.admitted(GET, ALICE):
            raise KeyError
    assert flow.reading.in_flight == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "finish", "cancel"]), st.sampled_from("abc"), st.integers(0)
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
async def test_seats_are_never_exceeded_nor_lost(steps: list[tuple[str, str, int]]) -> None:
    flow = FairFlow(FlowSettings(reading=3, user_share=0.7, queue=4))
    held: list[Held] = []
    for step, name, index in steps:
        if step == "begin":
            held.append(Held(flow, GET, User(name)))
        elif held:
            one = held[index % len(held)]
            if step == "cancel" or one.task.done():
                one.task.cancel()
            elif one.running:
                await one.finish()
        await settle()
        running = [one for one in held if one.running and not one.task.done()]
        assert len(running) == flow.reading.in_flight <= 3
        waiting = [one for one in held if not one.running and not one.task.done()]
        assert len(waiting) == flow.reading.waiting
        if waiting:
            # Whoever waits does so because the seats or the user's share are taken.
            assert flow.reading.in_flight == 3 or all(
                flow.reading._held.get(user, 0) >= 2 for user in flow.reading._queues
            )
    await end(*held)
    assert (flow.reading.in_flight, flow.reading.waiting) == (0, 0)
    assert not flow.reading._queues
    assert not flow.reading._held
