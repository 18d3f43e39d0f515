"""Guards and mailboxes: many objects do not go at once unless a person says so."""

from __future__ import annotations

import asyncio
from typing import Any

from skerry.api.edge import CONFIRM, EDGE_PLACEMENTS, PLACEMENT_GUARDS
from skerry.api.objects import Object
from tests.kit.chain.translator_hub import CONFIG_MAPS, NAMESPACES, Hub, config_map
from tests.kit.sim.loop import virtual

WMW = "root:wmw"


async def furnish(hub: Hub, count: int = 4) -> None:
    await hub.namespace("a")
    for number in range(count):
        await hub.put(CONFIG_MAPS, config_map(f"x{number}", {"k": "1"}), "a")
    await hub.place("p", "florin", "guilder")
    await hub.settle()


async def guard(hub: Hub, **spec: Any) -> None:
    body = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "PlacementGuard"}
    obj = {**body, "metadata": {"name": "own"}, "spec": spec}
    await hub.at(WMW).create(PLACEMENT_GUARDS, obj)


async def there(hub: Hub, edge: str = "florin") -> set[str]:
    return {item.name for item in await hub.copies(edge) if item.resource == "configmaps"}


async def held(hub: Hub) -> Object | None:
    obj = await hub.at(WMW).get(EDGE_PLACEMENTS, "p")
    found: Object | None = (obj["status"].get("removals") or {}).get("heldObjects")
    return found


async def deselect(hub: Hub, go: str = "no") -> None:
    await hub.at(WMW).patch(NAMESPACES, "a", {"metadata": {"labels": {"go": go}}})
    await hub.settle()


@virtual
async def test_objects_beyond_the_budget_stay_until_exactly_they_are_confirmed() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]):
        async with hub.translating():
            await guard(hub, budgets=[{"of": "ObjectsRemoved", "max": 2}])
            await furnish(hub)
            everything = await there(hub)
            await hub.remove(CONFIG_MAPS, "x0", "a")
            await hub.settle()
            assert await there(hub) == everything - {"x0"}, "one is within the budget"
            await deselect(hub)
            waiting = await held(hub)
            assert waiting is not None
            # Three ConfigMaps, the one that every namespace has, and the Namespace.
            assert waiting["guards"] == ["./own"]
            assert "objects in one decision (budget 2)" in waiting["why"]
            assert await there(hub) == await there(hub, "guilder") == everything - {"x0"}
        async with hub.translating():
            # Another process, and no guard any more: what it asked stays asked.
            await hub.at(WMW).delete(PLACEMENT_GUARDS, "own")
            await hub.settle()
            assert await held(hub) == waiting
            assert await there(hub) == everything - {"x0"}
            patch = {"metadata": {"annotations": {CONFIRM: waiting["name"]}}}
            await hub.at(WMW).patch(EDGE_PLACEMENTS, "p", patch)
            await hub.settle()
            assert await there(hub) == await there(hub, "guilder") == set()
            assert await held(hub) is None


@virtual
async def test_a_script_that_deletes_objects_one_by_one_is_stopped_within_the_window() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]):
        async with hub.translating():
            await guard(hub, budgets=[{"of": "ObjectsRemoved", "max": 2, "window": "10m"}])
            await furnish(hub, 6)
            everything = await there(hub)
            await hub.remove(CONFIG_MAPS, "x0", "a")
            await hub.settle(20)
            await hub.remove(CONFIG_MAPS, "x1", "a")
            await hub.settle(20)
            assert await there(hub) == await there(hub, "guilder") == everything - {"x0", "x1"}
        async with hub.translating():
            # Another process knows what the first has let go.
            await hub.remove(CONFIG_MAPS, "x2", "a")
            await hub.settle(20)
            waiting = await held(hub)
            assert waiting is not None
            assert waiting["removed"] == 1
            assert "objects within 10m (budget 2)" in waiting["why"]
            assert await there(hub) == await there(hub, "guilder") == everything - {"x0", "x1"}
            patch = {"metadata": {"annotations": {CONFIRM: waiting["name"]}}}
            await hub.at(WMW).patch(EDGE_PLACEMENTS, "p", patch)
            await hub.settle(20)
            gone = {"x0", "x1", "x2"}
            assert await there(hub) == await there(hub, "guilder") == everything - gone
            # When the window is over, as many may go again.
            await asyncio.sleep(600)
            await hub.remove(CONFIG_MAPS, "x3", "a")
            await hub.settle(20)
            assert await there(hub) == everything - gone - {"x3"}
            assert await held(hub) is None


@virtual
async def test_what_is_selected_again_is_held_no_more_and_destinations_go_unasked() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        await guard(hub, budgets=[{"of": "ObjectsRemoved", "max": 0}])
        await furnish(hub, 2)
        everything = await there(hub)
        await deselect(hub)
        assert await held(hub) is not None
        await deselect(hub, "yes")
        assert await held(hub) is None
        assert await there(hub) == everything
        await hub.reslice("p", "guilder")
        await hub.settle()
        assert await there(hub) == set()
        assert await there(hub, "guilder") == everything
        assert await held(hub) is None


@virtual
async def test_a_protected_namespace_asks_before_it_is_deselected() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        protect = [{"kind": "Namespace", "names": ["a"], "against": ["Deselect"]}]
        await guard(hub, protect=protect)
        await furnish(hub, 1)
        await deselect(hub)
        waiting = await held(hub)
        assert waiting is not None
        assert waiting["why"] == "PlacementGuard ./own protects Namespace a"
        assert "x0" in await there(hub)


@virtual
async def test_a_guard_that_observes_keeps_nothing() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        await guard(hub, mode="Observe", budgets=[{"of": "ObjectsRemoved", "max": 0}])
        await furnish(hub, 1)
        await deselect(hub)
        assert await held(hub) is None
        assert await there(hub) == set()
