"""Informers under faults: the cache equals the server once quiet, and handlers missed nothing."""

from __future__ import annotations

import asyncio

import pytest

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.runtime.client import EVERYTHING, EVERYWHERE, Selection
from skerry.runtime.index import key_of
from tests.kit.sim.loop import virtual
from tests.kit.sim.witness import Witness, version
from tests.kit.sim.world import SEEDS, World

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")


async def disturb(world: World, steps: int) -> None:
    """Make, change, delete and remake a few config maps; forget history now and then."""
    for step in range(steps):
        client = world.direct.for_cluster(f"c{world.chosen(2)}")
        name = f"cm-{world.chosen(6)}"
        body = {"metadata": {"name": name}, "data": {"step": str(step)}}
        try:
            match world.chosen(4):
                case 0:
                    await client.delete(CONFIG_MAPS, name, "default")
                case 1:
                    await client.patch(CONFIG_MAPS, name, {"data": {"step": str(step)}}, "default")
                case _:
                    await client.create(CONFIG_MAPS, body, "default")
        except ApiError:
            pass  # not there, or already there
        if world.happens(0.1):
            world.server.compact()
        if world.happens(0.7):
            await asyncio.sleep(world.ids.fraction() * 3)


@pytest.mark.parametrize("seed", SEEDS)
@virtual
async def test_an_informer_reaches_the_servers_state_and_misses_nothing(seed: int) -> None:
    world = World(seed)
    world.server.minor = "32" if seed % 2 else "20"  # with and without streaming lists
    for cluster in ("c0", "c1"):
        await world.direct.for_cluster(cluster).create(
            NAMESPACES, {"metadata": {"name": "default"}}
        )
    world.factory.client = world.client.for_cluster(EVERYWHERE)
    selection = Selection(metadata_only=True) if seed % 3 == 0 else EVERYTHING
    informer = world.factory.informer(CONFIG_MAPS, selection, packed=seed % 5 == 0)
    witness = Witness()
    informer.add_handler(witness)

    async with world.running():
        await disturb(world, 60)
        await world.settle()

    truth = {
        key_of(obj): version(obj)
        for place, obj in world.server.objects.items()
        if place.resource == "configmaps"
    }
    assert {key_of(obj): version(obj) for obj in informer.index.objects()} == truth
    assert {key: version(obj) for key, obj in witness.state.items()} == truth


@virtual
async def test_a_run_repeats_exactly_for_the_same_seed() -> None:
    async def transcript() -> list[tuple[str, str, str]]:
        world = World(7)
        for cluster in ("c0", "c1"):
            await world.direct.for_cluster(cluster).create(
                NAMESPACES, {"metadata": {"name": "default"}}
            )
        world.factory.client = world.client.for_cluster(EVERYWHERE)
        world.factory.informer(CONFIG_MAPS)
        async with world.running():
            await disturb(world, 30)
            await world.settle()
        return world.server.requests

    assert await transcript() == await transcript()
