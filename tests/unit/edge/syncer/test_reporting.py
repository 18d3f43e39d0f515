"""What a SyncerConfig says of its edge, asked of a real mailbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import skerry
from skerry.api.edge import OWNER_WORKSPACE, SYNCER_CONFIGS
from skerry.api.objects import Object
from skerry.logic.fleet.syncing.deletion_budget import Budget
from tests.kit.chain.syncer_world import CONFIG_MAPS, SyncerWorld
from tests.kit.sim.loop import virtual

PAGES = [f"page-{number:02}" for number in range(20)]


async def status(world: SyncerWorld) -> Object:
    config = await world.hub.client.get(SYNCER_CONFIGS, "the-one")
    return dict(config.get("status") or {})


async def placed(world: SyncerWorld) -> None:
    await world.configure()
    for name in PAGES:
        await world.put(CONFIG_MAPS, name, {"data": {}})
    world.start()
    await world.settle(20)


@virtual
async def test_numbers_and_the_version_are_reported_and_not_repeated(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        found = await status(world)
        # The namespace is one of them.
        assert found["objects"] == {"wanted": 21, "applied": 21, "refused": 0, "unhealthy": 0}
        assert found["syncerVersion"] == skerry.__version__
        assert "heldDeletions" not in found
        before = (await world.hub.client.get(SYNCER_CONFIGS, "the-one"))["metadata"]
        await world.settle(30)
        after = (await world.hub.client.get(SYNCER_CONFIGS, "the-one"))["metadata"]
        assert after["resourceVersion"] == before["resourceVersion"]


@virtual
async def test_what_the_edge_refuses_and_what_is_held_is_counted_and_named(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    world.settings = replace(world.settings, budget=Budget(5, 25))
    async with world.running():
        theirs = {"metadata": {"name": "theirs", "namespace": "shop"}, "data": {}}
        await placed(world)
        await world.edge.client.create(CONFIG_MAPS, theirs, "shop")
        await world.put(CONFIG_MAPS, "theirs", {"data": {"a": "b"}})
        for name in PAGES[:15]:
            await world.hub.client.delete(CONFIG_MAPS, name, "shop")
        await world.settle(20)
        found = await status(world)
        held = found["heldDeletions"]
        left = await world.names_at_edge(CONFIG_MAPS) & set(PAGES[:15])
        assert held["count"] == len(left)
        assert held["names"] == sorted(f"configmaps/shop/{name}" for name in left)[:10]
        assert found["objects"]["wanted"] == 21 + 1 - 15
        assert found["objects"]["refused"] == 1
        conditions = await world.conditions()
        assert held["approve"] in conditions["DeletionsHeld"]["message"]
        assert "skerry edge approve-deletions florin" in conditions["DeletionsHeld"]["message"]
        assert "adopt florin configmaps/theirs -n shop" in conditions["ObjectsRefused"]["message"]


@virtual
async def test_whose_deletions_are_held_is_reported_where_the_copies_said_it(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    world.settings = replace(world.settings, budget=Budget(5, 25))
    async with world.running():
        await world.configure()
        for name in PAGES:
            notes = {OWNER_WORKSPACE: "tenant-1"}
            await world.put(CONFIG_MAPS, name, {"data": {}}, annotations=notes)
        world.start()
        await world.settle(20)
        page = await world.at_edge(CONFIG_MAPS, PAGES[0])
        assert page is not None
        assert "annotations" not in page["metadata"], "it stays at the hub"
        for name in PAGES:
            await world.hub.client.delete(CONFIG_MAPS, name, "shop")
        await world.settle(20)
        assert (await status(world))["heldDeletions"]["clusters"] == ["tenant-1"]
