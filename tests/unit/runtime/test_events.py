from __future__ import annotations

import asyncio
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.plan import Announcement
from skerry.runtime.client import Client
from skerry.runtime.events import EventRecorder, reference
from skerry.runtime.metrics import RuntimeMetrics
from tests.kit.sim.faults import FaultyTransport, Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
}


class Stage:
    """A recorder on a twin, with faults to inject."""

    def __init__(self) -> None:
        self.twin = Twin()
        self.faults = FaultyTransport(self.twin, SeededIds(1), Rates(0, 0, 0, 0, 0))
        self.metrics = RuntimeMetrics()
        client = Client(self.faults, clock=LoopClock())
        self.recorder = EventRecorder(client, "scheduler", metrics=self.metrics)

    async def play(self, *recorded: tuple[str, str], pause: float = 1.0) -> list[dict[str, Any]]:
        await Client(self.twin).create(NAMESPACES, {"metadata": {"name": "default"}})
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self.recorder.run())
            for reason, message in recorded:
                self.recorder.record(POD, "Normal", reason, message)
                await asyncio.sleep(pause)
            await self.recorder.flush()
            running.cancel()
        return list(self.twin.find("events", "default").values())

    def dropped(self, reason: str) -> float:
        name = "skerry_events_dropped_total"
        return self.metrics.registry.get_sample_value(name, {"reason": reason}) or 0.0


@virtual
async def test_an_event_names_its_object_and_its_source() -> None:
    (event,) = await Stage().play(("Scheduled", "assigned to node-1"))
    assert event["involvedObject"] == reference(POD)
    assert event["source"] == {"component": "scheduler"}
    assert (event["count"], event["type"]) == (1, "Normal")
    assert event["metadata"]["name"].startswith("web.")
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2030-01-01T00:00:00Z"


@virtual
async def test_the_same_event_again_is_counted() -> None:
    (event,) = await Stage().play(*[("Failed", "no room")] * 3, pause=5)
    assert event["count"] == 3
    assert event["firstTimestamp"] == "2030-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2030-01-01T00:00:10Z"


@virtual
async def test_many_similar_events_become_one() -> None:
    events = await Stage().play(*[("Failed", f"no room on {n}") for n in range(15)])
    combined = [event for event in events if event["message"].startswith("(combined from")]
    assert len(events) == 10
    (one,) = combined
    assert one["message"] == "(combined from similar events): no room on 14"
    assert one["count"] == 6


@virtual
async def test_one_object_cannot_flood_the_server() -> None:
    stage = Stage()
    await stage.play(*[("Failed", "again")] * 40, pause=0.1)
    assert stage.dropped("too many") == 15
    assert next(iter(stage.twin.find("events", "default").values()))["count"] == 25


@virtual
async def test_repetition_before_the_first_write_is_one_write_with_its_count() -> None:
    stage = Stage()
    for _ in range(3):
        stage.recorder.record(POD, "Normal", "Failed", "no room")
    (event,) = await stage.play()
    assert event["count"] == 3


@virtual
async def test_of_many_times_at_once_only_the_burst_counts() -> None:
    stage = Stage()
    for _ in range(40):
        stage.recorder.record(POD, "Normal", "Failed", "again")
    (event,) = await stage.play()
    assert event["count"] == 25
    assert stage.dropped("too many") == 15


@virtual
async def test_recording_never_waits_and_drops_what_does_not_fit() -> None:
    stage = Stage()
    for number in range(1100):
        stage.recorder.record(POD, "Normal", "R", str(number))
    assert stage.dropped("buffer full") == 100


@virtual
async def test_an_event_outlasts_a_short_absence_of_the_server() -> None:
    stage = Stage()
    stage.faults.rates = Rates(1.0, 0, 0, 0, 0)
    asyncio.get_running_loop().call_later(25, stage.faults.heal)
    (event,) = await stage.play(("Scheduled", "at last"))
    assert event["message"] == "at last"


@virtual
async def test_a_refused_event_is_dropped() -> None:
    stage = Stage()
    stage.recorder.announce(
        Announcement({"metadata": {"name": "x", "namespace": "absent"}}, "Warning", "R", "m")
    )
    assert await stage.play() == []
    assert stage.dropped("refused") == 1


@virtual
async def test_an_expired_event_begins_anew() -> None:
    stage = Stage()

    def expire() -> None:
        for place in [place for place in stage.twin.objects if place.resource == "events"]:
            del stage.twin.objects[place]

    asyncio.get_running_loop().call_later(1.5, expire)
    (event,) = await stage.play(*[("Failed", "no room")] * 3)
    assert event["count"] == 1
