"""The runtime and the core controllers on the real engine, under faults and compaction."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.core import root_ca, service_account
from skerry.controllers.core.garbage import controller as garbage
from skerry.controllers.core.namespace import controller as namespace
from skerry.controllers.core.quota import controller as quota
from skerry.runtime.client import DeleteOptions, Propagation
from skerry.runtime.context import ControllerContext
from skerry.runtime.index import key_of
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.loop import virtual
from tests.kit.sim.witness import Witness, version
from tests.kit.sim.world import seeds_of

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WIDGETS = GroupVersionResource("example.com", "v1", "widgets")

# The engine costs ten times the twin; a sixth of the seeds keeps `make test` within its time.
ENGINE_SEEDS = seeds_of(6)

DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


def context(world: EngineWorld) -> ControllerContext:
    return ControllerContext(world.client, world.factory, world.ids)


async def make(
    world: EngineWorld,
    gvr: GroupVersionResource,
    name: str,
    *owners: Object,
    place: str = "default",
    **metadata: Any,
) -> Object:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": index % 2 == 0,
        }
        for index, owner in enumerate(owners)
    ]
    body: Object = {"metadata": {"name": name, "ownerReferences": references, **metadata}}
    if gvr == WIDGETS:
        body |= {"apiVersion": "example.com/v1", "kind": "Widget"}
    return await world.direct.create(gvr, body, place)


@pytest.mark.parametrize("seed", ENGINE_SEEDS)
@virtual
async def test_an_informer_follows_the_engine_through_faults_and_compaction(seed: int) -> None:
    world = EngineWorld(seed)
    informer = world.factory.informer(CONFIG_MAPS)
    witness = Witness()
    informer.add_handler(witness)
    async with world.running():
        for step in range(50):
            name = f"cm-{world.chosen(6)}"
            with suppress(ApiError):  # not there, or already there
                match world.chosen(4):
                    case 0:
                        await world.direct.delete(CONFIG_MAPS, name, "default")
                    case 1:
                        data = {"data": {"step": str(step)}}
                        await world.direct.patch(CONFIG_MAPS, name, data, "default")
                    case _:
                        await make(world, CONFIG_MAPS, name)
            if world.happens(0.1):
                await world.compact()
            await asyncio.sleep(world.ids.fraction() * 3)
        await world.settle()
        truth = {key_of(obj): version(obj) for obj in (await world.direct.list(CONFIG_MAPS)).items}
    assert {key_of(obj): version(obj) for obj in informer.index.objects()} == truth
    assert {key: version(obj) for key, obj in witness.state.items()} == truth


@pytest.mark.parametrize("seed", ENGINE_SEEDS)
@virtual
async def test_garbage_is_collected_in_every_type_old_and_new(seed: int) -> None:
    world = EngineWorld(seed)
    collector = garbage.build(context(world))
    kinds = (CONFIG_MAPS, SECRETS, WIDGETS)
    async with world.running(collector.run):
        await world.direct.create(DEFINITIONS, DEFINITION)
        made: list[tuple[GroupVersionResource, Object]] = []
        for number in range(15):
            owners = [
                made[world.chosen(len(made))][1] for _ in range(min(len(made), world.chosen(3)))
            ]
            unique = list({owner["metadata"]["uid"]: owner for owner in owners}.values())
            kind = kinds[world.chosen(len(kinds))]
            made.append((kind, await make(world, kind, f"object-{number}", *unique)))
        await asyncio.sleep(world.ids.fraction() * 60)
        doomed = {obj["metadata"]["uid"] for _, obj in made if world.happens(0.3)}
        expected = living([obj for _, obj in made], doomed)
        for kind, obj in made:
            if obj["metadata"]["uid"] in doomed:
                policy: Propagation = "Foreground" if world.happens(0.5) else "Background"
                with suppress(ApiError):  # it may have gone with its owner already
                    await world.direct.delete(
                        kind, obj["metadata"]["name"], "default", DeleteOptions(propagation=policy)
                    )
        await asyncio.sleep(120)
        await world.settle()
        left = [
            obj["metadata"]["name"]
            for kind in kinds
            for obj in (await world.found(kind, "default")).values()
        ]
    assert sorted(left) == sorted(expected)


def living(objects: list[Object], doomed: set[str]) -> set[str]:
    """The reference: objects are made after their owners, so one pass finds who stays."""
    alive: dict[str, str] = {}
    for obj in objects:
        metadata = obj["metadata"]
        owners = metadata.get("ownerReferences") or ()
        if metadata["uid"] not in doomed and (
            not owners or any(ref["uid"] in alive for ref in owners)
        ):
            alive[metadata["uid"]] = metadata["name"]
    return set(alive.values())


@pytest.mark.parametrize("seed", ENGINE_SEEDS)
@virtual
async def test_namespaces_come_with_their_own_and_go_with_everything(seed: int) -> None:
    world = EngineWorld(seed)
    shared = context(world)
    parts = (
        namespace.build(shared).run,
        service_account.build(shared).run,
        root_ca.build(shared, lambda: "PEM").run,
    )
    async with world.running(*parts):
        for name in ("doomed", "kept"):
            await world.direct.create(NAMESPACES, {"metadata": {"name": name}})
            await make(world, SECRETS, "held", place=name, finalizers=["example.com/hold"])
        await asyncio.sleep(120)
        assert await world.exists(ACCOUNTS, "default", "doomed")
        assert await world.exists(CONFIG_MAPS, "kube-root-ca.crt", "doomed")
        await world.direct.delete(NAMESPACES, "doomed")
        await asyncio.sleep(60)
        assert await world.exists(NAMESPACES, "doomed")
        await world.direct.patch(SECRETS, "held", {"metadata": {"finalizers": None}}, "doomed")
        await asyncio.sleep(60)
        await world.settle()
        assert not await world.exists(NAMESPACES, "doomed")
        assert not await world.found(SECRETS, "doomed")
        assert set(await world.found(SECRETS, "kept")) == {"held"}
        assert await world.exists(ACCOUNTS, "default", "kept")


@pytest.mark.parametrize("seed", ENGINE_SEEDS)
@virtual
async def test_a_quota_admits_exactly_its_limit_while_objects_come_and_go(seed: int) -> None:
    world = EngineWorld(seed)
    controller = quota.build(context(world))
    peak = 0
    async with world.running(controller.run):
        hard = {"count/secrets": "3"}
        await world.direct.create(
            QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}}, "default"
        )
        for _ in range(40):
            name = f"s-{world.chosen(8)}"
            with suppress(ApiError):  # refused, not there, or already there
                if world.happens(0.4):
                    await world.direct.delete(SECRETS, name, "default")
                else:
                    await make(world, SECRETS, name)
            peak = max(peak, len(await world.found(SECRETS, "default")))
            await asyncio.sleep(world.ids.fraction())
        await asyncio.sleep(60)
        await world.settle()
        status = (await world.direct.get(QUOTAS, "q", "default"))["status"]
        count = len(await world.found(SECRETS, "default"))
    assert peak <= 3
    assert status == {"hard": hard, "used": {"count/secrets": str(count)}}
