"""Copies say which generation of their source they are of, while a placement asks for it."""

from __future__ import annotations

from skerry.api.edge import CUSTOMIZERS, EDGE_PLACEMENTS, SOURCE_GENERATION
from tests.kit.chain.translator_hub import DEPLOYMENTS, Hub, customizer, deployment
from tests.kit.sim.loop import virtual


async def recorded(hub: Hub) -> str | None:
    copy = await hub.found("florin", DEPLOYMENTS, "web", "shop")
    assert copy is not None
    found: str | None = (copy["metadata"].get("annotations") or {}).get(SOURCE_GENERATION)
    return found


@virtual
async def test_a_placement_that_begins_to_ask_has_its_copies_say_their_generation() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(DEPLOYMENTS, deployment("web"), "shop")
        await hub.place("p", "florin")
        await hub.settle()
        assert await recorded(hub) is None
        owner = hub.at("root:wmw")
        await owner.patch(EDGE_PLACEMENTS, "p", {"spec": {"reportedState": "Aggregate"}})
        await hub.settle()
        assert await recorded(hub) == "1"
        await owner.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}}, "shop")
        await hub.settle()
        assert await recorded(hub) == "2"
        await hub.assert_as_expected("florin")


@virtual
async def test_a_change_that_a_customizer_hides_is_recorded_nevertheless() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CUSTOMIZERS, customizer("c", "$.spec.replicas", "7"), "shop")
        web = deployment("web")
        web["metadata"]["annotations"] = {"edge.kcp.io/customizer": "c"}
        await hub.put(DEPLOYMENTS, web, "shop")
        await hub.place("p", "florin", reportedState="Aggregate")
        await hub.settle()
        assert await recorded(hub) == "1"
        before = await hub.mailbox("florin").get(DEPLOYMENTS, "web", "shop")
        await hub.at("root:wmw").patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}}, "shop")
        await hub.settle()
        assert await recorded(hub) == "2"
        after = await hub.mailbox("florin").get(DEPLOYMENTS, "web", "shop")
        # Nothing changes at the edge.
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        await hub.assert_as_expected("florin")
