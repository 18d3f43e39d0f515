"""Deletions in numbers at an edge: churn that is never held, and accidents that are."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

from skerry.api.edge import APPROVE_DELETIONS, SYNCER_CONFIGS
from skerry.logic.fleet.syncing.deletion_budget import Budget
from tests.kit.chain.syncer_world import CONFIG_MAPS, NAMESPACES, SyncerWorld
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import SEEDS

# Two minutes of it in `make sim`.
OPERATIONS = 5000 if len(SEEDS) >= 1000 else 1500
NAMES = 200
RATE = 40

LIMIT = 5
PLACED = 20


def _placed(folder: Path) -> SyncerWorld:
    """Return a world in which a quarter of twenty objects may go within ten minutes."""
    world = SyncerWorld(folder)
    world.settings = replace(world.settings, budget=Budget(LIMIT, 25))
    return world


async def _filled(world: SyncerWorld, *names: str) -> None:
    for name in names:
        await world.put(CONFIG_MAPS, name, {"data": {"n": "1"}})


async def _removed(world: SyncerWorld, *names: str, seconds: float = 0.0) -> None:
    for name in names:
        await world.hub.client.delete(CONFIG_MAPS, name, "shop")
        await asyncio.sleep(seconds)


async def _approved(world: SyncerWorld) -> None:
    message = (await world.conditions())["DeletionsHeld"]["message"]
    patch = {"metadata": {"annotations": {APPROVE_DELETIONS: message.rpartition("=")[2]}}}
    await world.hub.client.patch(SYNCER_CONFIGS, "the-one", patch)


async def _is_held(world: SyncerWorld) -> bool:
    return bool((await world.conditions())["DeletionsHeld"]["status"] == "True")


def pages(count: int, since: int = 0) -> list[str]:
    return [f"page-{number:02}" for number in range(since, since + count)]


async def _toggled(world: SyncerWorld, there: set[str], name: str, round_: int) -> None:
    """Delete what is there, place what is not."""
    if name in there:
        there.remove(name)
        await world.hub.client.delete(CONFIG_MAPS, name, "shop")
    else:
        there.add(name)
        await world.put(CONFIG_MAPS, name, {"data": {"n": str(round_)}})


@virtual
async def test_ordinary_churn_converges_and_is_never_held(tmp_path: Path) -> None:
    world, chance = SyncerWorld(tmp_path), random.Random(6)
    async with world.running():
        await world.configure()
        world.start()
        await world.settle(20)
        there: set[str] = set()
        for number in range(OPERATIONS):
            await _toggled(world, there, f"page-{chance.randrange(NAMES)}", number)
            await asyncio.sleep(1 / RATE)
        await world.settle(5)
        assert await world.names_at_edge(CONFIG_MAPS) == there
        assert (await world.conditions())["DeletionsHeld"]["status"] == "False"


@virtual
async def test_sweeps_that_place_everything_and_delete_everything_end_as_they_should(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.configure()
        world.start()
        await world.settle(20)
        for _ in range(5):
            await _filled(world, *pages(120))
            await asyncio.sleep(3)
            await _removed(world, *pages(120), seconds=1 / RATE)
        await _filled(world, *pages(120))
        await world.settle(5)
        assert await world.names_at_edge(CONFIG_MAPS) == set(pages(120))
        assert not await _is_held(world)


@virtual
async def test_an_accident_in_any_portions_costs_no_more_than_the_limit_and_stays_held(
    tmp_path: Path,
) -> None:
    world = _placed(tmp_path)
    async with world.running():
        await world.configure()
        await _filled(world, *pages(PLACED))
        world.start()
        await world.settle(20)
        # One after the other, with something else placed meanwhile, over restarts, and at last all.
        await _removed(world, *pages(LIMIT - 1), seconds=20)
        await world.kill()
        world.start()
        await world.settle(20)
        await _removed(world, *pages(PLACED - LIMIT + 1, since=LIMIT - 1))
        await world.settle(5)
        left = await world.names_at_edge(CONFIG_MAPS)
        assert len(left) >= PLACED - LIMIT
        await world.kill()
        world.start()
        await world.settle(7200)
        assert await world.names_at_edge(CONFIG_MAPS) == left
        assert await _is_held(world)
        await _approved(world)
        await world.settle(60)
        assert await world.names_at_edge(CONFIG_MAPS) == set()
        assert not await _is_held(world)


@virtual
async def test_what_is_held_for_what_was_deleted_before_goes_when_the_window_has_passed(
    tmp_path: Path,
) -> None:
    world = _placed(tmp_path)
    async with world.running():
        await world.configure()
        await _filled(world, *pages(PLACED))
        world.start()
        await world.settle(20)
        await _removed(world, *pages(LIMIT), seconds=30)
        await _removed(world, "page-10")
        await world.settle(5)
        assert await world.at_edge(CONFIG_MAPS, "page-10") is not None
        assert await _is_held(world)
        await world.settle(620)
        assert await world.at_edge(CONFIG_MAPS, "page-10") is None
        assert not await _is_held(world)


@virtual
async def test_everything_may_be_exchanged_for_as_much_that_is_new(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    world.settings = replace(world.settings, budget=Budget(LIMIT, 50))
    async with world.running():
        await world.configure()
        await _filled(world, *pages(PLACED))
        world.start()
        await world.settle(20)
        world.to_edge.sever()
        await _removed(world, *pages(PLACED))
        await _filled(world, *pages(PLACED, since=50))
        await world.settle(60)
        world.to_edge.restore()
        await world.settle(300)
        assert await world.names_at_edge(CONFIG_MAPS) == set(pages(PLACED, since=50))
        assert not await _is_held(world)


@virtual
async def test_a_namespace_is_not_deleted_over_the_heads_of_what_is_wanted_inside(
    tmp_path: Path,
) -> None:
    world = _placed(tmp_path)
    async with world.running():
        await world.configure()
        await _filled(world, *pages(PLACED))
        world.start()
        await world.settle(20)
        # It counts as one object, and would take twenty along.
        await world.hub.client.delete(NAMESPACES, "shop")
        await world.settle(300)
        place = await world.edge.client.get(NAMESPACES, "shop")
        assert "deletionTimestamp" not in place["metadata"]
        assert "page-" in (await world.conditions())["namespaces/shop"]["message"]
