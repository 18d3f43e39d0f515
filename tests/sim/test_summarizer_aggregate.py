"""The status of a source as all its destinations come to, against the real hub engine."""

from __future__ import annotations

import asyncio
from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS, OWNER_WORKSPACE, SOURCE_GENERATION
from skerry.api.objects import Object
from tests.kit.chain.summarizer_hub import DEPLOYMENTS, Hub, deployment, running
from tests.kit.judges.argo import argo_health
from tests.kit.judges.kstatus import kstatus
from tests.kit.sim.loop import virtual

EDGES = ("florin", "guilder")


async def furnished(hub: Hub, *edges: str, **spec: Any) -> None:
    """One Deployment, placed on *edges*, with its copies there."""
    await hub.namespace("shop", go="yes")
    await hub.owner.create(DEPLOYMENTS, deployment("web"), "shop")
    await hub.place("p", *edges, reportedState="Aggregate", **spec)
    for edge in edges:
        await hub.project(edge, DEPLOYMENTS, deployment("web"), "shop")
        await delivered(hub, edge, 1)


async def delivered(hub: Hub, edge: str, generation: int) -> None:
    """Have an edge apply the copy of a generation, as translator and syncer would."""
    cluster = await hub.cluster_of("root:wmw")
    notes = {OWNER_WORKSPACE: cluster, SOURCE_GENERATION: str(generation)}
    note = {"metadata": {"annotations": notes}}
    await hub.mailbox(edge).patch(DEPLOYMENTS, "web", note, "shop")
    await hub.applied(edge, DEPLOYMENTS, "web", "shop")


async def source(hub: Hub) -> Object:
    await asyncio.sleep(2)
    return await hub.owner.get(DEPLOYMENTS, "web", "shop")


@virtual
async def test_a_source_is_finished_when_the_last_destination_is() -> None:
    hub = Hub()
    async with hub.running(EDGES), hub.summarizing():
        await furnished(hub, *EDGES)
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(1))
        obj = await source(hub)
        assert obj["status"]["observedGeneration"] == 1
        assert obj["status"]["readyReplicas"] == 0
        assert (kstatus(obj), argo_health(obj)) == ("InProgress", "Progressing")
        await hub.report("guilder", DEPLOYMENTS, "web", "shop", running(1))
        obj = await source(hub)
        assert obj["status"]["readyReplicas"] == 1
        assert (kstatus(obj), argo_health(obj)) == ("Current", "Healthy")
        before = obj["metadata"]["resourceVersion"]
        await hub.report("guilder", DEPLOYMENTS, "web", "shop", running(1) | {"collisionCount": 0})
        assert (await source(hub))["metadata"]["resourceVersion"] == before


@virtual
async def test_a_change_is_not_finished_before_its_copies_are_of_its_generation() -> None:
    hub = Hub()
    async with hub.running(EDGES), hub.summarizing():
        await furnished(hub, *EDGES)
        for edge in EDGES:
            await hub.report(edge, DEPLOYMENTS, "web", "shop", running(1))
        assert kstatus(await source(hub)) == "Current"
        await hub.owner.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}}, "shop")
        # One copy was written; the other looks as if all were well.
        await delivered(hub, "florin", 2)
        obj = await source(hub)
        assert (obj["metadata"]["generation"], obj["status"]["observedGeneration"]) == (2, 1)
        assert kstatus(obj) == "InProgress"
        await delivered(hub, "guilder", 2)
        assert kstatus(await source(hub)) == "Current"


@virtual
async def test_an_edge_that_was_lost_holds_nothing_back_and_is_counted() -> None:
    hub = Hub()
    async with hub.running(EDGES), hub.summarizing():
        await furnished(hub, *EDGES)
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(1))
        await hub.report("guilder", DEPLOYMENTS, "web", "shop", running(1, 0))
        assert kstatus(await source(hub)) == "InProgress"
        await hub.beat("guilder", seconds=1)
        await asyncio.sleep(60)
        obj = await source(hub)
        assert kstatus(obj) == "Current"
        assert "1 of 1 destinations, 1 unknown" in str(obj["status"]["conditions"])
        await hub.beat("florin", seconds=1)
        await asyncio.sleep(60)
        assert kstatus(await source(hub)) == "InProgress"


@virtual
async def test_when_nobody_asks_any_more_the_last_status_stays() -> None:
    hub = Hub()
    async with hub.running(EDGES), hub.summarizing():
        await furnished(hub, "florin")
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(1))
        before = (await source(hub))["status"]
        assert before["readyReplicas"] == 1
        await hub.owner.patch(EDGE_PLACEMENTS, "p", {"spec": {"reportedState": "None"}})
        await asyncio.sleep(2)
        down = {"availableReplicas": 0, "readyReplicas": 0}
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(1) | down)
        assert (await source(hub))["status"] == before
        await hub.owner.patch(EDGE_PLACEMENTS, "p", {"spec": {"reportedState": "Aggregate"}})
        assert (await source(hub))["status"]["readyReplicas"] == 0


@virtual
async def test_whoever_overwrites_the_status_is_corrected() -> None:
    hub = Hub()
    async with hub.running(EDGES), hub.summarizing():
        await furnished(hub, "florin")
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(1))
        before = (await source(hub))["status"]
        forged = {"status": {"readyReplicas": 0}}
        await hub.owner.patch(DEPLOYMENTS, "web", forged, "shop", subresource="status")
        assert (await source(hub))["status"] == before
