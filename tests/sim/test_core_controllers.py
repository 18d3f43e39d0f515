"""The core controllers under faults: they converge, and delete nothing that has an owner."""

from __future__ import annotations

import asyncio
from contextlib import suppress

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
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import SEEDS, World, make

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
REPLICA_SETS = GroupVersionResource("apps", "v1", "replicasets")
PODS = GroupVersionResource("", "v1", "pods")


def context(world: World) -> ControllerContext:
    return ControllerContext(world.client, world.factory, world.ids)


def reachable(world: World, doomed: set[str]) -> set[str]:
    """The reference: who has no owners, or an owner that stays; computed to a fixed point."""
    nodes = {obj["metadata"]["uid"]: obj["metadata"] for obj in world.server.objects.values()}
    alive = {
        uid
        for uid, metadata in nodes.items()
        if uid not in doomed and not metadata.get("ownerReferences")
    }
    while True:
        more = {
            uid
            for uid, metadata in nodes.items()
            if uid not in doomed
            and any(ref["uid"] in alive for ref in metadata.get("ownerReferences") or ())
        }
        if more <= alive:
            return alive
        alive |= more


@pytest.mark.parametrize("seed", SEEDS)
@virtual
async def test_the_garbage_collector_leaves_exactly_what_has_a_living_owner(seed: int) -> None:
    world = World(seed)
    await world.direct.create(NAMESPACES, {"metadata": {"name": "default"}})
    made: list[Object] = []
    kinds = (DEPLOYMENTS, REPLICA_SETS, PODS, CONFIG_MAPS, SECRETS)
    collector = garbage.build(context(world))
    async with world.running(collector.run):
        for number in range(30):
            count = min(len(made), world.chosen(3))
            owners = [made[world.chosen(len(made))] for _ in range(count)]
            unique = list({owner["metadata"]["uid"]: owner for owner in owners}.values())
            kind = kinds[world.chosen(len(kinds))]
            made.append(await make(world.direct, kind, f"object-{number}", *unique))
        await asyncio.sleep(world.ids.fraction() * 60)
        doomed = [obj for obj in made if world.happens(0.2)]
        expected = reachable(world, {obj["metadata"]["uid"] for obj in doomed})
        for obj in doomed:
            policy: Propagation = "Foreground" if world.happens(0.5) else "Background"
            gvr = next(gvr for gvr in kinds if gvr.resource == _resource(obj))
            with suppress(ApiError):  # it may have gone with its owner already
                await world.direct.delete(
                    gvr, obj["metadata"]["name"], "default", DeleteOptions(propagation=policy)
                )
            await asyncio.sleep(world.ids.fraction())
        await asyncio.sleep(120)
        await world.settle()

    left = {obj["metadata"]["uid"] for obj in world.server.objects.values()}
    assert left == expected
    for obj in world.server.objects.values():
        assert all(ref["uid"] in left for ref in obj["metadata"].get("ownerReferences") or ()), (
            "a reference leads nowhere"
        )


def _resource(obj: Object) -> str:
    return str(obj["kind"]).lower() + "s"


@pytest.mark.parametrize("seed", SEEDS[:20])
@virtual
async def test_orphans_survive_their_owner_and_forget_it(seed: int) -> None:
    world = World(seed)
    await world.direct.create(NAMESPACES, {"metadata": {"name": "default"}})
    collector = garbage.build(context(world))
    async with world.running(collector.run):
        owner = await make(world.direct, DEPLOYMENTS, "web")
        other = await make(world.direct, DEPLOYMENTS, "other")
        await make(world.direct, REPLICA_SETS, "web-1", owner)
        await make(world.direct, REPLICA_SETS, "web-2", owner, other)
        await asyncio.sleep(world.ids.fraction() * 60)
        await world.direct.delete(
            DEPLOYMENTS, "web", "default", DeleteOptions(propagation="Orphan")
        )
        await asyncio.sleep(60)
        await world.settle()

    assert set(world.server.find("deployments", "default")) == {"other"}
    sets = world.server.find("replicasets", "default")
    assert "ownerReferences" not in sets["web-1"]["metadata"]
    (kept,) = sets["web-2"]["metadata"]["ownerReferences"]
    assert kept["uid"] == other["metadata"]["uid"]


@pytest.mark.parametrize("seed", SEEDS)
@virtual
async def test_a_deleted_namespace_goes_with_its_content_and_no_other_does(seed: int) -> None:
    world = World(seed)
    controller = namespace.build(context(world))
    for name in ("doomed", "kept"):
        await world.direct.create(NAMESPACES, {"metadata": {"name": name}})
        await make(world.direct, CONFIG_MAPS, "plain", place=name)
        await make(world.direct, PODS, "held", place=name, finalizers=["example.com/hold"])
    async with world.running(controller.run):
        await asyncio.sleep(world.ids.fraction() * 30)
        await world.direct.delete(NAMESPACES, "doomed")
        await asyncio.sleep(120)
        rates = world.faults.rates
        await world.settle(60)
        conditions = {
            condition["type"]: condition
            for condition in world.server.find("namespaces")["doomed"]["status"]["conditions"]
        }
        world.faults.rates = rates
        await world.direct.patch(PODS, "held", {"metadata": {"finalizers": None}}, "doomed")
        await asyncio.sleep(120)
        await world.settle()

    remaining = conditions["NamespaceContentRemaining"]
    assert remaining["message"] == "Some resources are remaining: pods. has 1 resource instances"
    assert conditions["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: "
        "example.com/hold in 1 resource instances"
    )
    assert set(world.server.find("namespaces")) == {"kept"}
    assert not world.server.find("pods", "doomed")
    assert set(world.server.find("configmaps", "kept")) == {"plain"}
    assert set(world.server.find("pods", "kept")) == {"held"}


@virtual
async def test_a_namespace_is_not_let_go_while_a_group_cannot_be_discovered() -> None:
    world = World(1)
    controller = namespace.build(context(world))
    await world.direct.create(NAMESPACES, {"metadata": {"name": "doomed"}})
    await make(world.direct, DEPLOYMENTS, "web", place="doomed")
    world.server.stale_groups.add("apps")
    async with world.running(controller.run):
        await world.direct.delete(NAMESPACES, "doomed")
        await asyncio.sleep(300)
        assert set(world.server.find("deployments", "doomed")) == {"web"}
        conditions = world.server.find("namespaces")["doomed"]["status"]["conditions"]
        assert conditions[0]["reason"] == "DiscoveryFailed"
        world.server.stale_groups.clear()
        await asyncio.sleep(60)
        await world.settle()
    assert not world.server.find("namespaces")
    assert not world.server.find("deployments", "doomed")


@pytest.mark.parametrize("seed", SEEDS[:20])
@virtual
async def test_every_namespace_has_its_account_and_the_root_ca(seed: int) -> None:
    world = World(seed)
    accounts = service_account.build(context(world))
    publisher = root_ca.build(context(world), lambda: "PEM")
    async with world.running(accounts.run, publisher.run):
        for number in range(5):
            await world.direct.create(NAMESPACES, {"metadata": {"name": f"ns-{number}"}})
            await asyncio.sleep(world.ids.fraction())
        await asyncio.sleep(60)
        await world.direct.delete(CONFIG_MAPS, "kube-root-ca.crt", "ns-1")
        await world.direct.patch(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "x"}}, "ns-2")
        await asyncio.sleep(60)
        await world.settle()

    for number in range(5):
        assert "default" in world.server.find("serviceaccounts", f"ns-{number}")
        published = world.server.find("configmaps", f"ns-{number}")["kube-root-ca.crt"]
        assert published["data"] == {"ca.crt": "PEM"}


@pytest.mark.parametrize("seed", SEEDS[:20])
@virtual
async def test_quota_status_reports_what_is_there(seed: int) -> None:
    world = World(seed)
    await world.direct.create(NAMESPACES, {"metadata": {"name": "default"}})
    controller = quota.build(context(world))
    hard = {"configmaps": "10", "count/deployments.apps": "5", "requests.cpu": "4"}
    async with world.running(controller.run):
        await world.direct.create(
            QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}}, "default"
        )
        for number in range(6):
            await make(world.direct, CONFIG_MAPS, f"cm-{number}")
            await world.direct.create(
                PODS,
                {
                    "metadata": {"name": f"p-{number}"},
                    "spec": {
                        "containers": [{"name": "c", "resources": {"requests": {"cpu": "300m"}}}]
                    },
                },
                "default",
            )
            await asyncio.sleep(world.ids.fraction() * 5)
        await make(world.direct, DEPLOYMENTS, "web")
        await world.direct.delete(CONFIG_MAPS, "cm-0", "default")
        await asyncio.sleep(60)
        await world.settle()

    status = world.server.find("resourcequotas", "default")["q"]["status"]
    assert status == {
        "hard": hard,
        "used": {"configmaps": "5", "count/deployments.apps": "1", "requests.cpu": "1800m"},
    }
