"""Whether the edge answers, and the moment it is another cluster."""

from __future__ import annotations

import asyncio
from typing import Any

from skerry.api.errors import Forbidden, ServiceUnavailable
from skerry.api.kinds import GroupVersionResource
from skerry.edge.syncer.edge_witness import EdgeWitness
from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin

NAMESPACES = GroupVersionResource("", "v1", "namespaces")


class Edge(Twin):
    """An edge that may fail in its own way."""

    failure: Exception | None = None

    async def request(self, *args: Any, **more: Any) -> Any:
        if self.failure is not None:
            raise self.failure
        return await super().request(*args, **more)

    def become_another(self) -> None:
        for obj in self.objects.values():
            obj["metadata"]["uid"] = "another"


async def edge_with_system() -> Edge:
    edge = Edge(clock=LoopClock())
    await Client(edge).create(NAMESPACES, {"metadata": {"name": "kube-system"}})
    return edge


class Watch:
    """A witness at work, and how often it said that the edge changed."""

    def __init__(self, edge: Edge) -> None:
        self.witness = EdgeWitness(Client(edge, clock=LoopClock()), 30.0)
        self.changes = 0
        self.witness.changed.connect(self._changed)
        self.task = asyncio.get_running_loop().create_task(self.witness.run())

    def _changed(self) -> None:
        self.changes += 1

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


@virtual
async def test_an_edge_that_stays_itself_is_looked_at_again_and_again() -> None:
    edge = await edge_with_system()
    watch = Watch(edge)
    await asyncio.sleep(95)
    assert len([path for _, path, _ in edge.requests if "kube-system" in path]) == 4
    assert (watch.changes, watch.witness.answers) == (0, True)
    await watch.end()


@virtual
async def test_another_cluster_in_its_place_is_reported_once() -> None:
    edge = await edge_with_system()
    watch = Watch(edge)
    await asyncio.sleep(1)
    edge.become_another()
    await asyncio.wait_for(watch.task, 60)
    assert watch.changes == 1


@virtual
async def test_an_edge_that_is_away_does_not_answer_and_is_not_another_one() -> None:
    edge = await edge_with_system()
    watch = Watch(edge)
    await asyncio.sleep(1)
    edge.failure = TransportError("cut")
    await asyncio.sleep(60)
    assert (watch.changes, watch.witness.answers) == (0, False)
    edge.failure = None
    await asyncio.sleep(60)
    assert (watch.changes, watch.witness.answers) == (0, True)
    await watch.end()


@virtual
async def test_an_edge_in_trouble_answers_nevertheless() -> None:
    edge = await edge_with_system()
    edge.failure = ServiceUnavailable("starting")
    watch = Watch(edge)
    await asyncio.sleep(60)
    assert (watch.changes, watch.witness.answers) == (0, True)
    await watch.end()


@virtual
async def test_who_may_not_look_stops_looking() -> None:
    edge = await edge_with_system()
    edge.failure = Forbidden("no")
    watch = Watch(edge)
    await asyncio.wait_for(watch.task, 1)
    assert (watch.changes, watch.witness.answers) == (0, True)
    without = Edge(clock=LoopClock())
    await asyncio.wait_for(Watch(without).task, 1)
