"""Controllers that are killed at any moment and started again elsewhere still converge.

Also: over all logical clusters at once, nothing crosses from one into another.
"""

from __future__ import annotations

import asyncio

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.core import service_account
from skerry.controllers.core.garbage import controller as garbage
from skerry.controllers.core.namespace import controller as namespace
from skerry.runtime.client import EVERYWHERE, DeleteOptions
from skerry.runtime.context import ControllerContext
from skerry.runtime.informer import InformerFactory
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import World, make, seeds_of

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
REPLICA_SETS = GroupVersionResource("apps", "v1", "replicasets")
PODS = GroupVersionResource("", "v1", "pods")


async def life(world: World) -> None:
    """One process: informers and controllers, from nothing."""
    client = world.client.for_cluster(world.factory.client.cluster)
    factory = InformerFactory(client, ids=world.ids, mutation_check=True)
    shared = ControllerContext(client, factory, world.ids)
    parts = (
        garbage.build(shared).run,
        namespace.build(shared).run,
        service_account.build(shared).run,
        factory.run,
    )
    async with asyncio.TaskGroup() as tasks:
        for part in parts:
            tasks.create_task(part())


async def lives(world: World, count: int) -> None:
    """Kill a process at a random moment and start the next, *count* times; the last one stays."""
    for _ in range(count):
        try:
            async with asyncio.timeout(world.ids.fraction() * 8):
                await life(world)
        except TimeoutError:
            continue
    await life(world)


@pytest.mark.parametrize("seed", seeds_of(4))
@virtual
async def test_a_cascade_survives_the_death_of_its_controllers(seed: int) -> None:
    world = World(seed)
    await world.direct.create(NAMESPACES, {"metadata": {"name": "default"}})
    await world.direct.create(NAMESPACES, {"metadata": {"name": "doomed"}})
    for number in range(3):
        owner = await make(world.direct, DEPLOYMENTS, f"web-{number}")
        middle = await make(world.direct, REPLICA_SETS, f"web-{number}", owner)
        for replica in range(3):
            await make(world.direct, PODS, f"web-{number}-{replica}", middle)
    await make(world.direct, PODS, "bystander")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(lives(world, 12))
        await asyncio.sleep(world.ids.fraction() * 5)
        await world.direct.delete(
            DEPLOYMENTS, "web-0", "default", DeleteOptions(propagation="Foreground")
        )
        await world.direct.delete(DEPLOYMENTS, "web-1", "default")
        await world.direct.delete(NAMESPACES, "doomed")
        await asyncio.sleep(300)
        await world.settle()
        running.cancel()
    assert set(world.server.find("namespaces")) == {"default"}
    assert set(world.server.find("deployments", "default")) == {"web-2"}
    assert set(world.server.find("replicasets", "default")) == {"web-2"}
    assert set(world.server.find("pods", "default")) == {
        "bystander",
        *(f"web-2-{replica}" for replica in range(3)),
    }
    assert "default" in world.server.find("serviceaccounts", "default")


@pytest.mark.parametrize("seed", seeds_of(5))
@virtual
async def test_one_set_of_controllers_serves_every_cluster_and_mixes_none(seed: int) -> None:
    world = World(seed)
    world.factory.client = world.client.for_cluster(EVERYWHERE)
    for cluster in ("one", "two"):
        client = world.direct.for_cluster(cluster)
        for name in ("default", "doomed"):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        owner = await make(client, DEPLOYMENTS, "web")
        await make(client, REPLICA_SETS, "web", owner)
        await make(client, PODS, "inside", place="doomed")
    first = world.direct.for_cluster("one")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(life(world))
        await asyncio.sleep(world.ids.fraction() * 30)
        await first.delete(DEPLOYMENTS, "web", "default")
        await first.delete(NAMESPACES, "doomed")
        await asyncio.sleep(120)
        await world.settle()
        running.cancel()
    assert not world.server.find("replicasets", "default", "one")
    assert set(world.server.find("replicasets", "default", "two")) == {"web"}
    assert set(world.server.find("namespaces", "", "one")) == {"default"}
    assert set(world.server.find("namespaces", "", "two")) == {"default", "doomed"}
    assert set(world.server.find("pods", "doomed", "two")) == {"inside"}
    for cluster in ("one", "two"):
        assert "default" in world.server.find("serviceaccounts", "default", cluster)


@virtual
async def test_an_owner_in_another_cluster_is_no_owner() -> None:
    world = World(3)
    world.factory.client = world.client.for_cluster(EVERYWHERE)
    for cluster in ("one", "two"):
        await world.direct.for_cluster(cluster).create(
            NAMESPACES, {"metadata": {"name": "default"}}
        )
    owner = await make(world.direct.for_cluster("one"), DEPLOYMENTS, "web")
    await make(world.direct.for_cluster("two"), PODS, "stray", owner)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(life(world))
        await asyncio.sleep(60)
        await world.settle()
        running.cancel()
    assert not world.server.find("pods", "default", "two")
    assert set(world.server.find("deployments", "default", "one")) == {"web"}
