"""The summarizer against the real hub engine, in virtual time."""

from __future__ import annotations

import asyncio

from skerry.logic.placement.slices import EDGE_PLACEMENTS
from tests.sim.loop import virtual
from tests.sim.summarizer_hub import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, Hub, deployment, running


@virtual
async def test_a_placed_object_has_a_summary_of_what_its_copies_report() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        await hub.namespace("shop", go="yes")
        await hub.owner.create(DEPLOYMENTS, deployment("web"), "shop")
        placement = await hub.place("p", "florin", "guilder")
        await asyncio.sleep(2)
        (name, first), *_ = (await hub.summaries("shop")).items()
        assert name == "p-deployments-web"
        assert (first["destinations"], first["delivered"], first["reported"]) == (2, 0, 0)
        (reference,) = first["metadata"]["ownerReferences"]
        assert reference["uid"] == placement["metadata"]["uid"]

        for edge, available in (("florin", 1), ("guilder", 0)):
            await hub.project(edge, DEPLOYMENTS, deployment("web"), "shop")
            await hub.applied(edge, DEPLOYMENTS, "web", "shop")
            await hub.report(edge, DEPLOYMENTS, "web", "shop", running(1, available))
        await asyncio.sleep(2)
        summary = (await hub.summaries("shop"))["p-deployments-web"]
        counts = [summary[n] for n in ("destinations", "delivered", "reported", "healthy")]
        assert counts == [2, 2, 2, 1]
        numbers = {each["field"]: each for each in summary["numbers"]}
        assert numbers["replicas"]["sum"] == 2
        assert numbers["availableReplicas"] == {
            "field": "availableReplicas",
            "sum": 1,
            "min": 1,
            "max": 1,
        }
        ill, well = summary["details"]
        assert (ill["syncTarget"], ill["healthy"], ill["reason"]) == (
            "guilder",
            "False",
            "Unavailable",
        )
        assert (well["syncTarget"], well["healthy"]) == ("florin", "True")
        assert summary["newestReportTime"] >= summary["oldestReportTime"]


@virtual
async def test_a_summary_goes_with_its_cause() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await hub.namespace("shop", go="yes")
        for name in ("web", "api"):
            await hub.owner.create(DEPLOYMENTS, deployment(name), "shop")
        await hub.place("p", "florin")
        await asyncio.sleep(2)
        assert set(await hub.summaries("shop")) == {"p-deployments-web", "p-deployments-api"}
        await hub.owner.delete(DEPLOYMENTS, "api", "shop")
        await asyncio.sleep(2)
        assert set(await hub.summaries("shop")) == {"p-deployments-web"}
        await hub.owner.patch(NAMESPACES, "shop", {"metadata": {"labels": {"go": "no"}}})
        await asyncio.sleep(2)
        assert not await hub.summaries("shop")
        await hub.owner.patch(NAMESPACES, "shop", {"metadata": {"labels": {"go": "yes"}}})
        await asyncio.sleep(2)
        assert set(await hub.summaries("shop")) == {"p-deployments-web"}
        await hub.owner.delete(EDGE_PLACEMENTS, "p")
        await asyncio.sleep(2)
        assert not await hub.summaries("shop")


@virtual
async def test_objects_without_status_are_counted_in_the_placement() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        await hub.namespace("shop", go="yes")
        page = {"metadata": {"name": "page"}, "data": {"a": "1"}}
        await hub.owner.create(CONFIG_MAPS, page, "shop")
        await hub.place("p", "florin", "guilder")
        status = {"status": {"specGeneration": 1, "matchingLocationCount": 2}}
        await hub.owner.patch(EDGE_PLACEMENTS, "p", status, subresource="status")
        await asyncio.sleep(2)
        assert (await hub.placement("p"))["status"]["deliveredObjects"] == 0
        for edge in ("florin", "guilder"):
            await hub.project(edge, CONFIG_MAPS, page, "shop")
            await hub.applied(edge, CONFIG_MAPS, "page", "shop")
        await asyncio.sleep(2)
        assert (await hub.placement("p"))["status"]["deliveredObjects"] == 2
        await hub.mailbox("florin").patch(CONFIG_MAPS, "page", {"data": {"a": "2"}}, "shop")
        await asyncio.sleep(2)
        assert (await hub.placement("p"))["status"]["deliveredObjects"] == 1
        assert not await hub.summaries("shop")
