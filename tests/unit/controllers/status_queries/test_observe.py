"""What a query waits for, and when it is looked at again."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.status_queries.events import QueryInputs, query_ref
from skerry.controllers.status_queries.observe import Observed, QueryObserver
from skerry.kit.ids import SeededIds
from skerry.kit.timestamps import parse_rfc3339
from skerry.runtime.index import Index, Key
from skerry.runtime.pace import Pace
from skerry.runtime.workqueue import WorkQueue
from tests.kit.chain.query_feed import Feed

COUNT: Object = {"name": "edges", "function": "Count"}


class HandClock:
    """Says what it was set to."""

    def __init__(self) -> None:
        self.time = "2030-01-01T00:00:00Z"

    def now(self) -> datetime:
        return parse_rfc3339(self.time)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


class World:
    def __init__(self, max_bytes: int = 1 << 30) -> None:
        self.feed, self.clock = Feed(), HandClock()
        self.later: list[float] = []
        self.queries = Index()
        self.kinds: list[Any] = []
        self.inputs = QueryInputs(
            self.feed, "espw", Index(), Index(), lambda _: None, self.kinds.append
        )
        queue: WorkQueue[ObjectRef] = WorkQueue("queries", ids=SeededIds(1))
        self.observer = QueryObserver(
            self.inputs, self.feed, self.queries, Pace(queue, self.clock), self.clock,
            lambda _, seconds: self.later.append(seconds), max_bytes,
        )  # fmt: skip

    async def ask(
        self, resource: str = "deployments", cluster: str = "wmw", name: str = "q",
        status: Object | None = None, **spec: Any,
    ) -> ObjectRef:  # fmt: skip
        metadata = {
            "name": name,
            "annotations": {CLUSTER_ANNOTATION: cluster},
            "creationTimestamp": "2030-01-01T00:00:00Z",
        }
        source = {"apiGroup": "apps", "resources": [resource]}
        whole = {"from": source, "aggregates": [COUNT], **spec}
        obj = {"metadata": metadata, "spec": whole, "status": status or {}}
        self.queries.put(Key(cluster, "", name), obj)
        self.inputs.query_changed(None, obj)
        return query_ref(obj)

    async def read(self) -> None:
        for key in self.kinds:
            await self.inputs.read(key)
        self.kinds.clear()

    async def observe(self, ref: ObjectRef) -> Observed:
        found = await self.observer.observe(ref)
        assert found is not None
        return found


def waiting(observed: Observed) -> str:
    return "" if observed.waiting is None else observed.waiting[0]


async def test_a_query_waits_until_its_kind_was_read() -> None:
    world = World()
    ref = await world.ask()
    world.feed.read = False
    assert waiting(await world.observe(ref)) == "Reading"
    assert world.feed.parked == [ref]
    world.feed.read = True
    assert waiting(await world.observe(ref)) == "Reading"
    await world.read()
    observed = await world.observe(ref)
    assert (waiting(observed), observed.revision) == ("", 7)
    assert observed.answer is not None


@pytest.mark.parametrize("cluster", ["wmw", "espw"])
async def test_a_kind_that_is_not_served_is_said_so(cluster: str) -> None:
    world = World()
    ref = await world.ask("nothings", cluster)
    await world.read()
    assert waiting(await world.observe(ref)) == "KindNotServed"


async def test_a_kind_that_was_served_once_is_gone() -> None:
    world = World()
    complete = {"type": "Complete", "status": "True", "reason": "Read"}
    ref = await world.ask(status={"conditions": [complete]})
    await world.read()
    world.feed.served = False
    assert waiting(await world.observe(ref)) == "KindGone"


async def test_a_workspace_that_places_nothing_has_an_answer_without_rows() -> None:
    world = World()
    ref = await world.ask("nothings", "empty")
    await world.read()
    observed = await world.observe(ref)
    assert observed.answer is not None
    assert observed.answer.status["sources"]["destinations"] == 0


async def test_an_answer_over_an_interrupted_watch_is_not_complete() -> None:
    world = World()
    ref = await world.ask()
    await world.read()
    world.feed.followed = False
    observed = await world.observe(ref)
    assert (waiting(observed), observed.answer is None) == ("WatchInterrupted", False)


async def test_queries_beyond_the_memory_for_all_of_them_are_not_kept() -> None:
    world = World(max_bytes=250)
    world.feed.place("a", "b")
    first, second = await world.ask(name="a"), await world.ask(name="b")
    await world.read()
    assert waiting(await world.observe(first)) == ""
    observed = await world.observe(second)
    assert waiting(observed) == "NotKept"
    assert observed.waiting is not None
    assert "--query-memory" in observed.waiting[1]
    assert second not in world.inputs.tables
    assert waiting(await world.observe(second)) == "NotKept"
    world.inputs.query_changed(world.queries.remove(Key("wmw", "", "a")), None)
    assert waiting(await world.observe(second)) == ""


async def test_a_query_is_looked_at_again_when_its_time_is_over() -> None:
    world = World()
    ref = await world.ask(ttlSeconds=60)
    world.clock.time = "2030-01-01T00:00:20Z"
    assert not (await world.observe(ref)).expired
    assert world.later == [40.0]
    world.clock.time = "2030-01-01T00:01:00Z"
    assert (await world.observe(ref)).expired


async def test_errors_of_a_query_are_observed() -> None:
    world = World()
    ref = await world.ask(filter="1 +")
    assert "spec.filter" in (await world.observe(ref)).errors[0]


async def test_what_is_not_there_is_nothing() -> None:
    world = World()
    assert await world.observer.observe(ObjectRef("x", "", "", "", "y")) is None
