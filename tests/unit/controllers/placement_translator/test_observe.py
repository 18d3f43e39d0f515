"""Observing a mailbox: what is read, and that nothing changes by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from skerry.api.refs import namespace_ref
from skerry.controllers.placement_translator.guards import Judgement
from skerry.controllers.placement_translator.observe import Observer
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.dirty import CONFIG
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.chain.translator_world import (
    CLUSTERS,
    CONFIG_MAPS,
    NAMESPACES,
    A,
    B,
    World,
    cluster_object,
)


class Reading(AnsweringTransport):
    """Notes what is read; has only what it was given."""

    def __init__(self, **objects: object) -> None:
        self.objects = objects
        self.asked: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        name = path.rpartition("/")[2]
        self.asked.append(f"{method} {name}")
        if name in self.objects:
            return Answer(200, {}, json.dumps(self.objects[name]).encode())
        status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "none"}
        return Answer(404, {}, json.dumps(status).encode())


def _world() -> World:
    world = World()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
    for name in ("x", "y"):
        world.put(CONFIG_MAPS, cluster_object("one", name, "n", data={"k": "1"}))
    go = {"matchLabels": {"go": "yes"}}
    world.slice(world.place("one", "p", namespaceSelector=go), (A, "florin"))
    return world


def _observer(world: World, server: Reading) -> Observer:
    tables = world.tables
    return Observer(
        Client(server),
        world.difference,
        tables.dirty,
        tables.mailboxes,
        lambda m, _, r: Judgement(m, tuple(r)),
    )


async def test_what_is_to_be_made_is_not_read_and_observing_twice_observes_the_same() -> None:
    world, server = _world(), Reading()
    observer = _observer(world, server)
    first, second = await observer.observe(A), await observer.observe(A)
    assert first is not None
    assert second is not None
    assert (first.judgement.mailbox, first.cluster) == (A, CLUSTERS[A])
    assert [row.item for row in first.rows] == [row.item for row in second.rows]
    assert {CONFIG, namespace_ref("n")} < {row.item for row in first.rows}
    assert {row.verdict for row in first.rows} == {Verdict.CREATE}
    assert first.numbers == world.tables.dirty.of(A)
    assert server.asked == []


def test_only_what_is_to_be_changed_is_read_afresh() -> None:
    # No coroutine itself: the world runs loops of its own.

    world = _world()
    world.reconcile()
    for name in ("x", "y"):
        world.put(CONFIG_MAPS, cluster_object("one", name, "n", data={"k": "2"}))
    live = {"metadata": {"name": "x", "resourceVersion": "7"}}
    server = Reading(x=live)
    observed = asyncio.run(_observer(world, server).observe(A))
    assert observed is not None
    assert sorted(server.asked) == ["GET x", "GET y"]
    # What has gone meanwhile has no newest version.
    assert {item.name: obj for item, obj in observed.live.items()} == {"x": live}


async def test_a_mailbox_that_is_not_there_or_needs_nothing_is_not_observed() -> None:
    world, server = _world(), Reading()
    assert await _observer(world, server).observe(B._replace(uid="other")) is None
    world.tables.dirty.forget(A)
    assert await _observer(world, server).observe(A) is None
