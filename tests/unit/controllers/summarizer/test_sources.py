"""The status a source is given, and by whom it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from skerry.api.edge import REPORTED_REPLICAS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.summarizer.sources import (
    ObservedSource,
    SourceExecutor,
    SourceObserver,
    decide_source,
)
from skerry.controllers.summarizer.watches import Parked
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.summary.freshness import lapsed
from skerry.logic.fleet.summary.gathered import Gathered
from skerry.logic.machinery.plan import Announcement, Create, Patch, Update
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.chain.summarizer_world import WEB_SOURCE, World

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HEALTHY = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
SINGLETON: dict[str, Any] = {"wantSingletonReportedState": True}
AGGREGATE: dict[str, Any] = {"reportedState": "Aggregate"}


async def observed(observer: SourceObserver) -> ObservedSource:
    found = await observer.observe(WEB_SOURCE)
    assert found is not None
    return found


# -- Singleton ---------------------------------------------------------------------------------


async def test_the_status_of_the_only_destination_is_returned_when_asked_for() -> None:
    world = World(**SINGLETON)
    world.report({"replicas": 2})
    live = world.source({})

    found = await observed(world.sources)

    assert (found.source, found.returned) == (live, {"replicas": 2})
    assert world.asked[-1] == WEB_SOURCE
    [update] = decide_source(found, NOW)
    assert isinstance(update, Update)
    assert (update.subresource, update.refusal_is_fine) == ("status", True)
    assert update.object == {**live, "status": {"replicas": 2}}


async def test_no_status_is_returned_that_nobody_asked_for() -> None:
    world = World()
    world.report({"replicas": 2})
    world.source({})

    assert await world.sources.observe(WEB_SOURCE) is None
    assert world.asked == []


async def test_no_status_is_returned_before_one_was_reported() -> None:
    world = World(**SINGLETON)
    world.source({})

    assert await world.sources.observe(WEB_SOURCE) is None


async def test_nothing_is_written_that_is_there_already() -> None:
    world = World(**SINGLETON)
    world.report({"replicas": 2})
    world.source({"replicas": 2})

    assert not decide_source(await observed(world.sources), NOW)


async def test_no_status_is_returned_to_a_source_that_has_gone() -> None:
    for spec in (SINGLETON, AGGREGATE):
        world = World(**spec)
        world.report({"replicas": 2})

        assert await world.sources.observe(WEB_SOURCE) is None


async def test_two_placements_with_one_destination_each_have_two_between_them() -> None:
    world = World(**SINGLETON)
    world.place("q", "b", **SINGLETON)
    world.report({"replicas": 2}, "a")
    world.report({"replicas": 3}, "b")
    world.source({})

    assert await world.sources.observe(WEB_SOURCE) is None
    world.place("q", "a", **SINGLETON)
    assert (await observed(world.sources)).returned == {"replicas": 2}


# -- Aggregate ---------------------------------------------------------------------------------


async def test_a_source_is_observed_with_what_all_its_destinations_come_to() -> None:
    world = World(**AGGREGATE)
    world.place("p", "ab", **AGGREGATE)
    origin = {"owner_workspace": "wmw", "source_generation": "4"}
    world.report(HEALTHY, "a", **origin)
    world.report(HEALTHY, "b", **{**origin, "source_generation": "3"})
    world.source({})

    found = (await observed(world.sources)).gathered

    assert found is not None
    assert (found.destinations, found.unknown, found.generation) == (2, 0, 3)


async def test_destinations_of_all_placements_that_ask_are_united() -> None:
    world = World(**AGGREGATE)
    world.place("q", "ab", **AGGREGATE)
    world.place("r", "b", **SINGLETON)
    world.report(HEALTHY, "a")
    world.source({})

    found = (await observed(world.sources)).gathered

    assert found is not None
    assert found.destinations == 2


async def test_a_destination_that_was_not_heard_of_is_unknown() -> None:
    world = World(**AGGREGATE)
    world.report(HEALTHY)
    world.source({})
    world.inputs.leases_changed({"mb-a": lapsed("2030-01-01T00:00:00Z")})

    found = (await observed(world.sources)).gathered

    assert found is not None
    assert (found.destinations, found.unknown) == (1, 1)


async def test_a_deployment_is_observed_with_the_replica_set_that_reports_on_it() -> None:
    world = World(**AGGREGATE)
    world.report(HEALTHY)
    world.source({})
    # This workspace does not have the kind.
    assert (await observed(world.sources)).replica_set is None

    there = {"metadata": {"name": "web-reported", "annotations": {REPORTED_REPLICAS: "true"}}}
    path = "/clusters/wmw/apis/apps/v1/namespaces/shop/replicasets/web-reported"
    world.hub.objects[path] = there

    assert (await observed(world.sources)).replica_set == there


def test_the_replica_set_follows_the_status_in_the_same_plan() -> None:
    found = source()
    found.source["metadata"]["uid"] = "u1"
    found.source["spec"] = {"replicas": 1, "selector": {}, "template": {}}

    plan = decide_source(replace(found, replica_set={}), NOW)

    assert [type(each) for each in plan] == [Update, Create, Patch]
    assert [type(each) for each in decide_source(found, NOW)] == [Update]


async def test_a_source_waits_until_its_kind_was_read() -> None:
    world = World(read=False, **AGGREGATE)

    assert await world.sources.observe(WEB_SOURCE) is None
    world.watches._complete_everything("wmw")
    assert Parked("sources", WEB_SOURCE) in world.enqueued


# -- writing -----------------------------------------------------------------------------------


class Refusing(AnsweringTransport):
    """A workspace that answers every write with *status*, and counts them."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.writes = 0

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.writes += 1
        if self.status == 200:
            return Answer(200, {"content-type": "application/json"}, body)
        refused = {"kind": "Status", "code": self.status, "reason": "Invalid", "message": "no"}
        return Answer(self.status, {}, orjson.dumps(refused))


def source(version: str = "7", **status: Any) -> ObservedSource:
    metadata = {"name": "web", "namespace": "shop", "resourceVersion": version, "generation": 2}
    obj: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    found = Gathered(destinations=1, delivered=1, healthy=1, generation=2)
    gvr = GroupVersionResource("apps", "v1", "deployments")
    live = {**obj, "status": status}
    return ObservedSource(WEB_SOURCE, gvr, "Deployment", live, gathered=found)


@pytest.mark.parametrize("status", [422, 200])
async def test_what_a_workspace_does_not_take_is_not_sent_again_before_something_changes(
    status: int,
) -> None:
    workspace = Refusing(status)
    client = Client(workspace)
    ids = SeededIds(1)
    recorder = EventRecorder(client, "summarizer")
    hub = ControllerContext(client, InformerFactory(client, ids=ids), ids, recorder=recorder)
    executor = SourceExecutor(hub, client, "summarizer")
    for _ in range(3):
        await executor.execute(decide_source(source(), NOW))
    assert workspace.writes == 1
    await executor.execute(decide_source(source("8"), NOW))
    assert workspace.writes == 2


class Announced(EventRecorder):
    """Keeps what is announced, in place of writing it."""

    def __init__(self, client: Client, component: str) -> None:
        super().__init__(client, component)
        self.announced: list[str] = []

    def announce(self, announcement: Announcement) -> None:
        self.announced.append(f"{announcement.type} {announcement.reason}")


async def test_a_status_that_is_refused_is_announced_to_the_owner_of_the_object() -> None:
    client, ids = Client(Refusing(422)), SeededIds(1)
    recorder = Announced(client, "summarizer")
    hub = ControllerContext(client, InformerFactory(client, ids=ids), ids, recorder=recorder)
    executor = SourceExecutor(hub, client, "summarizer")
    for _ in range(2):
        await executor.execute(decide_source(source(), NOW))
    assert recorder.announced == ["Warning StatusRefused"], "once, as it is written once"


async def test_a_copy_that_went_meanwhile_has_no_status_to_return() -> None:
    world = World(**SINGLETON)
    world.report({"replicas": 2})
    world.source({})
    path = next(path for path in world.hub.objects if path.startswith("/clusters/mb-a/"))
    del world.hub.objects[path]

    assert await world.sources.observe(WEB_SOURCE) is None
