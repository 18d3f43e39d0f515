"""Events about pods, against the real API engine and its wire format."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from skerry.api.errors import AlreadyExists
from skerry.api.kinds import GroupVersionResource
from skerry.runtime.event_series import EVENTS
from skerry.runtime.metrics import RuntimeMetrics
from skerry.scheduler.pod_events import PodEvents
from tests.kit.sim.engine import EngineWorld

pytestmark = pytest.mark.looptime

NAMESPACES = GroupVersionResource("", "v1", "namespaces")


@asynccontextmanager
async def recording(
    world: EngineWorld, buffer: int = 1000, metrics: RuntimeMetrics | None = None
) -> AsyncIterator[PodEvents]:
    """Run a server and a recorder of events."""
    async with world.running():
        with suppress(AlreadyExists):
            await world.direct.create(NAMESPACES, {"metadata": {"name": "default"}})
        events = PodEvents(world.direct, "here_1", metrics, buffer=buffer)
        task = asyncio.get_running_loop().create_task(events.run())
        yield events
        task.cancel()
        await asyncio.wait([task])


def about(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"}, "spec": {}}


async def recorded_events(world: EngineWorld) -> list[dict[str, Any]]:
    return (await world.direct.list(EVENTS)).items


async def test_repeated_events_become_a_series() -> None:
    world = EngineWorld(8)
    async with recording(world) as events:
        for _ in range(3):
            events.event(about("p"), "Warning", "FailedScheduling", "Scheduling", "no room")
            await events.flush()
        (found,) = await recorded_events(world)
        # Written at the second occurrence; the third waits for the next refresh.
        assert found["series"]["count"] == 2
        assert (found["action"], found["regarding"]["name"]) == ("Scheduling", "p")
        await asyncio.sleep(7 * 60)
        events.event(about("p"), "Warning", "FailedScheduling", "Scheduling", "no room")
        await events.flush()
        assert len(await recorded_events(world)) == 2


async def test_repetition_before_the_first_write_is_one_write() -> None:
    world = EngineWorld(21)
    async with recording(world) as events:
        for note in ("no room", "no room", "still no room"):
            events.event(about("p"), "Warning", "FailedScheduling", "Scheduling", note)
        await events.flush()
        (found,) = await recorded_events(world)
        assert (found["series"]["count"], found["note"]) == (3, "still no room")


async def test_a_burst_of_events_is_written_whole() -> None:
    world = EngineWorld(22)
    async with recording(world, buffer=200) as events:
        for number in range(200):
            events.event(about(f"p{number}"), "Normal", "Scheduled", "Binding", "assigned")
        await events.flush()
        assert len(await recorded_events(world)) == 200


async def test_events_beyond_the_buffer_are_dropped_and_counted() -> None:
    world, metrics = EngineWorld(23), RuntimeMetrics()
    async with recording(world, 2, metrics) as events:
        for number in range(5):
            events.event(about(f"p{number}"), "Normal", "Scheduled", "Binding", "assigned")
        await events.flush()
        assert [item["regarding"]["name"] for item in await recorded_events(world)] == ["p0", "p1"]
    name = "skerry_events_dropped_total"
    assert metrics.registry.get_sample_value(name, {"reason": "buffer full"}) == 3


async def test_an_event_names_the_profile_the_process_and_the_pod() -> None:
    world = EngineWorld(24)
    async with recording(world) as events:
        pod = about("p") | {"spec": {"schedulerName": "gpu"}}
        events.event(pod, "Normal", "Scheduled", "Binding", "assigned")
        events.event(about("q"), "Normal", "Scheduled", "Binding", "assigned")
        await events.flush()
        first, second = sorted(await recorded_events(world), key=lambda e: e["regarding"]["name"])
    assert (first["reportingController"], first["reportingInstance"]) == ("gpu", "here_1")
    assert second["reportingController"] == "default-scheduler"
    assert (first["regarding"]["kind"], first["regarding"]["apiVersion"]) == ("Pod", "v1")
