"""Why pods could not be made is said on their owner, and the failure stays one."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.errors import Conflict, Forbidden
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.event_recording import (
    EventRecordingExecutor,
    event_recording_executor,
)
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.plan import Announcement, Create, Delete, Plan, Target
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.events import EventRecorder
from skerry.runtime.execute import Executor
from skerry.runtime.informer import InformerFactory
from tests.kit.caches import owned
from tests.kit.sim.twin import Twin

PODS = GroupVersionResource("", "v1", "pods")
OWNER = owned("web")
NEWS = Announcement(OWNER, "Normal", "SuccessfulCreate", "Created pod: web-1")
CREATE = Create(Target(PODS, "web-1", "shop"), owned("web-1"), reason="R")


class Refusing(Twin):
    """A server that refuses every write."""

    error: Exception

    async def request(self, method: str, *args: Any, **more: Any) -> Any:
        if method != "GET":
            raise self.error
        return await super().request(method, *args, **more)


def context(error: Exception, *, recorder: bool = True) -> ControllerContext:
    twin = Refusing()
    twin.error = error
    client = Client(twin)
    factory = InformerFactory(client, ids=SeededIds(0))
    return ControllerContext(
        client, factory, SeededIds(0), recorder=EventRecorder(client, "c") if recorder else None
    )


async def said_of(error: Exception, plan: Plan) -> list[Announcement]:
    """Return what is announced when *plan* fails with *error*."""
    said: list[Announcement] = []
    executor = EventRecordingExecutor(context(error), "c", said.append, None)
    with pytest.raises(type(error)):
        await executor.execute(plan)
    return [each for each in said if each.type == "Warning"]


async def test_a_refused_creation_is_said_on_the_owner() -> None:
    [event] = await said_of(Forbidden("exceeded quota"), Plan([CREATE], [NEWS]))
    assert (event.about, event.reason) == (OWNER, "FailedCreate")
    assert event.message == "Error creating: exceeded quota"


async def test_a_lost_race_and_what_creates_nothing_are_not() -> None:
    assert await said_of(Conflict("somebody was faster"), Plan([CREATE], [NEWS])) == []
    gone = Delete(Target(PODS, "web-1", "shop"), reason="R")
    assert await said_of(Forbidden("no"), Plan([gone], [NEWS])) == []
    assert await said_of(Forbidden("no"), Plan([CREATE])) == [], "about nobody in particular"


async def test_an_owner_with_a_condition_for_it_gets_that_too() -> None:
    asked: list[tuple[str, str]] = []

    def refused(about: Object, why: str) -> Plan:
        asked.append((about["metadata"]["name"], why))
        return Plan()

    error = Forbidden("exceeded quota")
    executor = EventRecordingExecutor(context(error), "c", lambda _: None, None, refused)
    with pytest.raises(Forbidden):
        await executor.execute(Plan([CREATE], [NEWS]))
    assert asked == [("web", "exceeded quota")]


def test_without_a_recorder_the_ordinary_executor_does() -> None:
    plain = event_recording_executor(context(Forbidden("no"), recorder=False), "c")
    assert type(plain) is Executor
    assert isinstance(event_recording_executor(context(Forbidden("no")), "c"), Executor)
