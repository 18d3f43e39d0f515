"""What is kept when, and which queries are enqueued."""

from __future__ import annotations

from typing import Any

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.status_queries.events import (
    QueryInputs,
    query_ref,
)
from skerry.logic.fleet.placement.records import lean_location, lean_sync_target
from skerry.runtime.index import Index
from tests.kit.chain.query_feed import DEPLOYMENTS, Feed

DEPLOYED: Object = {"apiGroup": "apps", "resources": ["deployments"]}
SUM: Object = {"name": "n", "function": "Sum", "of": "status.n"}
COUNT: Object = {"name": "edges", "function": "Count"}


def query(name: str, *aggregates: Object, cluster: str = "wmw", **more: Any) -> Object:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}}
    return {
        "metadata": metadata,
        "spec": {"from": DEPLOYED, "aggregates": list(aggregates), **more},
    }


class World:
    def __init__(self) -> None:
        self.feed = Feed()
        self.enqueued: list[ObjectRef] = []
        self.kinds: list[GroupResource] = []
        self.locations, self.targets = Index(), Index()
        self.inputs = QueryInputs(
            self.feed, "espw", self.locations, self.targets,
            self.enqueued.append, self.kinds.append,
        )  # fmt: skip

    async def ask(self, obj: Object) -> ObjectRef:
        self.inputs.query_changed(None, obj)
        for key in list(self.kinds):
            self.kinds.remove(key)
            await self.inputs.read(key)
        return query_ref(obj)

    def rows(self, ref: ObjectRef) -> list[list[Any]]:
        return [row["values"] for row in self.inputs.tables.answer(ref, "").status["rows"]]


async def test_a_query_finds_what_was_there_before_it_and_follows_what_comes() -> None:
    world = World()
    world.feed.place("a", "b")
    world.feed.store("a", n=1)
    ref = await world.ask(query("q", SUM))
    assert world.rows(ref) == [[1]]
    world.enqueued.clear()
    world.feed.put("b", n=5)
    assert world.rows(ref) == [[6]]
    assert world.enqueued == [ref]
    world.feed.drop("a")
    assert world.rows(ref) == [[5]]


async def test_a_query_reports_at_which_revisions_mailboxes_are() -> None:
    world = World()
    world.feed.place("a", "b")
    world.feed.note("a", 1)
    at = {"name": "at", "value": "report.revision"}
    ref = await world.ask(query("q", COUNT, groupBy=[at]))
    for edge in ("a", "b"):
        world.feed.put(edge, n=1)
    assert world.rows(ref) == [[0, 1], [1, 1]]
    world.enqueued.clear()
    world.feed.note("b", 2)
    assert world.rows(ref) == [[1, 1], [2, 1]]
    assert world.enqueued == [ref]


async def test_nothing_is_kept_while_there_is_no_query() -> None:
    world = World()
    world.feed.place("a")
    world.feed.put("a", n=1)
    assert not world.inputs.tables
    ref = await world.ask(query("q", SUM))
    assert DEPLOYMENTS in world.feed.extractions
    world.inputs.query_changed(query("q", SUM), None)
    assert ref not in world.inputs.tables
    assert not world.inputs.tables
    assert not world.feed.extractions


async def test_a_second_query_of_the_same_parts_needs_no_list() -> None:
    world = World()
    world.feed.place("a")
    world.feed.store("a", n=1)
    await world.ask(query("q", SUM))
    ref = await world.ask(query("r", SUM, COUNT))
    assert world.feed.lists == 1
    assert world.rows(ref) == [[1, 1]]
    ref = await world.ask(query("s", {"name": "m", "function": "Sum", "of": "status.m"}))
    assert world.feed.lists == 2


async def test_what_is_seen_while_listing_is_newer_than_the_list() -> None:
    world = World()
    world.feed.place("a", "b")
    world.feed.store("a", n=1)
    world.feed.store("b", n=1)

    def meanwhile() -> None:
        world.feed.put("a", n=10)
        world.feed.drop("b")

    world.feed.while_listing = meanwhile
    ref = await world.ask(query("q", SUM))
    assert world.rows(ref) == [[10]]


async def test_parts_that_change_while_listing_are_listed_again() -> None:
    world = World()
    world.feed.place("a")
    world.feed.store("a", n=1, m=2)
    other = query("r", {"name": "m", "function": "Sum", "of": "status.m"})
    world.feed.while_listing = lambda: world.inputs.query_changed(None, other)
    await world.ask(query("q", SUM))
    world.feed.while_listing = lambda: None
    for key in world.kinds:
        await world.inputs.read(key)
    assert world.rows(query_ref(other)) == [[2]]
    assert world.rows(query_ref(query("q"))) == [[1]]


async def test_an_object_kept_under_an_older_layout_is_read_again() -> None:
    world = World()
    world.feed.place("a")
    kept = world.feed.lean(world.feed.copy("a", n=4))
    world.feed.store("a", n=4)
    ref = await world.ask(query("q", SUM))
    assert world.inputs.is_read(DEPLOYMENTS)
    world.feed.put_lean("a", kept)
    assert not world.inputs.is_read(DEPLOYMENTS)
    assert world.kinds == [GroupResource("apps", "deployments")]
    await world.inputs.read(world.kinds.pop())
    assert world.rows(ref) == [[4]]


async def test_a_query_of_the_provider_sees_all_and_one_of_a_stranger_nothing() -> None:
    world = World()
    world.feed.place("a")
    world.feed.store("a", n=1)
    assert world.rows(await world.ask(query("q", SUM, cluster="espw"))) == [[1]]
    assert world.rows(await world.ask(query("q", SUM, cluster="bank"))) == []


async def test_labels_of_locations_and_targets_are_followed() -> None:
    world = World()
    world.feed.place("a")
    world.feed.store("a", n=1)
    key = {"name": "k", "value": "location.labels[?'r'].orValue('-') + string(syncTarget.ready)"}
    ref = await world.ask(query("q", COUNT, groupBy=[key]))
    assert world.rows(ref) == [["-false", 1]]
    annotations = {CLUSTER_ANNOTATION: "inv", "other": "x"}
    location = {"metadata": {"name": "loc-a", "labels": {"r": "n"}, "annotations": annotations}}
    world.inputs.location_changed(None, lean_location(location))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    target = {"metadata": {"name": "st-a", "uid": "a"}, "status": ready}
    world.inputs.target_changed(None, lean_sync_target(target))
    assert world.rows(ref) == [["ntrue", 1]]
    world.inputs.location_changed(lean_location(location), None)
    world.inputs.target_changed(lean_sync_target(target), None)
    assert world.rows(ref) == [["-false", 1]]


async def test_a_query_that_makes_no_sense_asks_for_nothing() -> None:
    world = World()
    ref = await world.ask(query("q", SUM, filter="1 +"))
    assert world.inputs.known[ref].errors
    assert not world.feed.extractions


async def test_an_edited_query_starts_anew() -> None:
    world = World()
    world.feed.place("a")
    world.feed.store("a", n=1)
    ref = await world.ask(query("q", SUM))
    world.inputs.query_changed(None, query("q", COUNT, SUM, filter="status.n > 1"))
    assert ref not in world.inputs.tables
    for key in world.kinds:
        await world.inputs.read(key)
    assert world.rows(ref) == []


async def test_what_a_workspace_serves_concerns_its_queries_and_those_that_see_all() -> None:
    world = World()
    own, all_, _ = [
        await world.ask(query("q", COUNT, cluster=cluster)) for cluster in ("wmw", "espw", "bank")
    ]
    world.enqueued.clear()
    world.feed.notified("wmw")
    assert sorted(world.enqueued) == sorted([own, all_])
