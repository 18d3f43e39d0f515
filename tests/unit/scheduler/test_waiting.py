"""Pods that permit plugins hold back: all must allow, one may refuse, and time passes."""

from __future__ import annotations

import asyncio

from skerry.kit.clock import LoopClock
from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.status import Status
from skerry.scheduler.waiting import WaitingPods
from tests.kit.scheduler.fixtures import pod
from tests.kit.sim.loop import virtual


def info() -> PodInfo:
    return Cluster().reader.read(pod("p"))


async def outcome(waiting: asyncio.Task[Status | None]) -> str:
    status = await waiting
    return "" if status is None else f"{status.plugin}: {status.message}"


@virtual
async def test_a_pod_goes_when_the_last_plugin_allows_it() -> None:
    held = WaitingPods().hold(info(), {"A": 10, "B": 20})
    waiting = asyncio.create_task(held.wait(LoopClock()))
    await asyncio.sleep(1)
    held.allow("A")
    await asyncio.sleep(12)
    assert held.pending == ["B"]
    assert not waiting.done()
    held.allow("B")
    assert await outcome(waiting) == ""


@virtual
async def test_one_refusal_turns_it_down_and_what_comes_later_does_not_count() -> None:
    pods = WaitingPods()
    held = pods.hold(info(), {"A": 10, "B": 20})
    waiting = asyncio.create_task(held.wait(LoopClock()))
    await asyncio.sleep(1)
    assert pods.reject("p", "B", "no room")
    held.allow("A")
    held.allow("B")
    held.reject("A", "late")
    assert await outcome(waiting) == "B: no room"


@virtual
async def test_a_plugin_that_does_not_decide_in_time_turns_it_down() -> None:
    held = WaitingPods().hold(info(), {"A": 10, "B": 20})
    waiting = asyncio.create_task(held.wait(LoopClock()))
    found = await outcome(waiting)
    assert found == "A: rejected due to timeout after waiting 10s at plugin A"


@virtual
async def test_a_pod_that_is_not_held_cannot_be_turned_down() -> None:
    pods = WaitingPods()
    pods.hold(info(), {"A": 10})
    pods.release("p")
    assert pods.get("p") is None
    assert not pods.reject("p")
