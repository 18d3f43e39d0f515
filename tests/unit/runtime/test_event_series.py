"""Repetition becomes a series: written at once, then seldom, and anew after a pause."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from skerry.runtime.event_series import EventSeries
from skerry.runtime.events import Occurrence
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import TYPES, Twin, served

ABOUT = {"kind": "Pod", "namespace": "default", "name": "web", "uid": "u1", "apiVersion": "v1"}
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
START = datetime(2030, 1, 1, tzinfo=UTC)


class Stage:
    def __init__(self) -> None:
        self.twin = Twin(types=[*TYPES, served("events.k8s.io", "v1", "events", "Event")])
        self.series = EventSeries(Client(self.twin, clock=LoopClock()), "i" * 200)

    async def happen(self, minutes: float, **fields: Any) -> None:
        moment = START + timedelta(minutes=minutes)
        item = Occurrence(ABOUT, "", "Warning", "Failed", "no room", moment, "gpu", "Scheduling")
        item = replace(item, **fields)
        await self.series.write(self.series.key(item), item)

    def events(self) -> list[dict[str, Any]]:
        return list(self.twin.find("events", "default").values())


async def started() -> Stage:
    stage = Stage()
    await Client(stage.twin).create(NAMESPACES, {"metadata": {"name": "default"}})
    return stage


@virtual
async def test_the_first_time_is_an_event_without_a_series() -> None:
    stage = await started()
    await stage.happen(0)
    (event,) = stage.events()
    assert "series" not in event
    assert event["eventTime"] == "2030-01-01T00:00:00.000000Z"
    assert (event["regarding"], event["note"]) == (ABOUT, "no room")
    assert len(event["reportingInstance"]) == 128


@virtual
async def test_the_second_time_is_written_and_the_next_after_half_an_hour() -> None:
    stage = await started()
    for minute in range(0, 35, 5):
        await stage.happen(minute)
    (event,) = stage.events()
    # The one at 5 minutes was written; those until 30 minutes later were only counted.
    assert event["series"]["count"] == 2
    await stage.happen(35)
    (event,) = stage.events()
    assert event["series"] == {"count": 8, "lastObservedTime": "2030-01-01T00:35:00.000000Z"}


@virtual
async def test_a_series_ends_after_six_idle_minutes() -> None:
    stage = await started()
    await stage.happen(0)
    await stage.happen(5.9)
    await stage.happen(12)
    assert len(stage.events()) == 2


@virtual
async def test_times_before_the_first_write_are_its_series() -> None:
    stage = await started()
    await stage.happen(0, times=3)
    (event,) = stage.events()
    assert event["series"]["count"] == 3


@virtual
async def test_what_differs_in_who_acts_or_how_is_another_event() -> None:
    stage = await started()
    await stage.happen(0)
    await stage.happen(1, controller="x")
    await stage.happen(2, action="Binding")
    await stage.happen(3, reason="R")
    await stage.happen(4, message="another note, the same event")
    events = stage.events()
    assert len(events) == 4
    assert [event["series"]["count"] for event in events if "series" in event] == [2]


@virtual
async def test_what_is_said_of_an_object_at_one_moment_are_events_of_their_own() -> None:
    stage = await started()
    for reason in ("Joined", "Left", "Held"):
        await stage.happen(0, reason=reason)
    assert sorted(event["reason"] for event in stage.events()) == ["Held", "Joined", "Left"]


@virtual
async def test_an_event_that_expired_at_the_server_begins_anew() -> None:
    stage = await started()
    await stage.happen(0)
    for place in [place for place in stage.twin.objects if place.resource == "events"]:
        del stage.twin.objects[place]
    await stage.happen(1)
    (event,) = stage.events()
    assert "series" not in event
