"""Scheduler and mailboxes on a real hub: they converge whatever happens, and then rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE,
    HEARTBEAT_NAMESPACE,
    SINGLE_PLACEMENT_SLICES,
    SYNC_TARGET_NAME,
    edge_placement_ref,
    mailbox_named,
)
from skerry.api.errors import ApiError
from skerry.api.kcp.resources import API_BINDINGS, API_EXPORTS, LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from skerry.app.edge_controllers import provider_near, run_tenancy_controllers
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.placement.heartbeat import LEASES
from skerry.logic.fleet.placement.records import is_ready
from skerry.runtime.client import Client
from tests.kit.chain.edge_scheduler_hub import PROVIDER, SMALL_SLICES, Hub, People, equal
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import seeds_of

# Each seed is a whole hub; the budget of one file is a few seconds.
_FEW = seeds_of(6, least=6)


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_slices_say_what_a_scan_says_after_any_history(seed: int) -> None:
    hub = Hub(seed, Rates())
    people = People(hub)
    async with hub.running("imw1", "imw2", "a", "b"):
        for _ in range(3):  # each time by a new process
            async with hub.controlled("edge-scheduler"):
                for _ in range(12):
                    await people.act()
                    await asyncio.sleep(hub.ids.fraction() * 2)
        async with hub.controlled("edge-scheduler"):
            await hub.settle()
            await hub.collect_garbage()
            await hub.settle()
            await hub.assert_scheduled()
        revision = await hub.store.revision()
        async with hub.controlled("edge-scheduler"):
            await hub.settle()
        assert await hub.store.revision() == revision, "a second pass writes nothing"


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_many_destinations_are_spread_over_slices_that_never_collide(seed: int) -> None:
    hub = Hub(seed, Rates())
    people = People(hub, "x", "x-2", "x-3")
    async with hub.running("imw1", "imw2", "a"):
        async with hub.controlled(SMALL_SLICES):
            for number in range(6):
                await hub.target("root:imw1", f"t{number}", people.labels())
            for _ in range(25):
                await people.act()
                with suppress(ApiError):
                    await people.vandalise("root:a", people.one_of("x", "x-2", "x-3", "x-4"))
                await asyncio.sleep(hub.ids.fraction() * 2)
            await hub.settle()
            await hub.collect_garbage()
            await hub.settle()
            await hub.assert_scheduled()
        revision = await hub.store.revision()
        async with hub.controlled(SMALL_SLICES):
            await hub.settle()
        assert await hub.store.revision() == revision, "a second pass writes nothing"


_STAYING = [f"stay-{number}" for number in range(7)]


# With these the answer to the removal of a page is lost, and its name free again at once.
@pytest.mark.parametrize("seed", sorted({*_FEW, 13, 69}))
@virtual
async def test_a_destination_that_stays_is_in_some_slice_after_every_single_write(
    seed: int,
) -> None:
    hub = Hub(seed, Rates())
    people = People(hub)
    # They sort before, between and behind those that stay.
    passing = [f"{head}-{number}" for head in ("a", "stay-3", "z") for number in range(3)]
    async with hub.running("imw", "wmw"):
        for name in _STAYING:
            await hub.target("root:imw", name, {})
        for _ in range(3):  # each time by a new process, that the last one left at any point
            async with hub.controlled(SMALL_SLICES):
                with suppress(ApiError):
                    await hub.place("root:wmw", "web", {})
                await asyncio.sleep(people.one_of(0.01, 1, 5))
                for _ in range(12):
                    name, namesake = people.one_of(*passing), people.one_of("web-2", "web-3")
                    deed = people.one_of(
                        lambda name=name: hub.target("root:imw", name, {}),
                        lambda name=name: hub.remove("root:imw", SYNC_TARGETS, name),
                        lambda name=namesake: hub.place("root:wmw", name, {}),
                        lambda name=namesake: hub.remove("root:wmw", EDGE_PLACEMENTS, name),
                    )
                    with suppress(ApiError):
                        await deed()
                    await asyncio.sleep(hub.ids.fraction() * people.one_of(0.01, 2))
        async with hub.controlled(SMALL_SLICES):
            await hub.settle()
            await hub.collect_garbage()
            await hub.settle()
            await hub.assert_scheduled()
        cluster = (await hub.at("root").get(WORKSPACES, "wmw"))["spec"]["cluster"]
        await hub.assert_never_missing(edge_placement_ref(cluster, "web"), set(_STAYING))


@virtual
async def test_one_more_location_rewrites_one_slice_and_an_upgrade_none() -> None:
    hub = Hub()
    async with hub.running("imw", "wmw"):
        for number in range(9):
            await hub.target("root:imw", f"t{number}", {})
        async with hub.controlled("edge-scheduler"):  # all of them in one slice
            await hub.place("root:wmw", "web", {})
            await asyncio.sleep(10)
        before = await hub.everything(SINGLE_PLACEMENT_SLICES)
        async with hub.controlled(SMALL_SLICES):
            await asyncio.sleep(10)
            assert await hub.everything(SINGLE_PLACEMENT_SLICES) == before
            for name, slices in (("a", ["web-2"]), ("b", ["web-2"]), ("c", ["web-3"])):
                known = {each["metadata"]["resourceVersion"] for each in before}
                await hub.target("root:imw", name, {})
                await asyncio.sleep(10)
                before = await hub.everything(SINGLE_PLACEMENT_SLICES)
                written = [
                    each["metadata"]["name"]
                    for each in before
                    if each["metadata"]["resourceVersion"] not in known
                ]
                assert written == slices
            await hub.assert_scheduled()


@virtual
async def test_a_further_slice_restored_without_its_owner_is_adopted() -> None:
    hub = Hub()
    ownerless = {"metadata": {"ownerReferences": None}}
    async with hub.running("imw", "wmw"):
        for name in ("a", "b", "c"):
            await hub.target("root:imw", name, {})
        async with hub.controlled(SMALL_SLICES):
            await hub.place("root:wmw", "web", {})
            await asyncio.sleep(10)
        await hub.at("root:wmw").patch(SINGLE_PLACEMENT_SLICES, "web-2", ownerless)
        await hub.remove("root:imw", SYNC_TARGETS, "c")
        async with hub.controlled(SMALL_SLICES):
            await asyncio.sleep(10)
            # To the translator it is web's, so what it holds must not stay for ever.
            await hub.assert_scheduled()
            names = [
                each["metadata"]["name"] for each in await hub.everything(SINGLE_PLACEMENT_SLICES)
            ]
            assert names == ["web"]


@virtual
async def test_a_further_slice_taken_from_its_owner_is_taken_back() -> None:
    hub = Hub()
    ownerless = {"metadata": {"ownerReferences": None, "labels": None}}
    async with hub.running("imw", "wmw"):
        for name in ("a", "b", "c"):
            await hub.target("root:imw", name, {})
        async with hub.controlled(SMALL_SLICES):
            await hub.place("root:wmw", "web", {})
            await asyncio.sleep(10)
            await hub.assert_scheduled()
            await hub.at("root:wmw").patch(SINGLE_PLACEMENT_SLICES, "web-2", ownerless)
            await asyncio.sleep(10)
            await hub.assert_scheduled()
        await hub.at("root:wmw").patch(SINGLE_PLACEMENT_SLICES, "web-2", ownerless)
        async with hub.controlled(SMALL_SLICES):
            await asyncio.sleep(10)
            await hub.assert_scheduled()


@virtual
async def test_a_slice_edited_or_deleted_by_hand_is_restored() -> None:
    hub = Hub()
    async with hub.running("imw", "wmw"), hub.controlled("edge-scheduler"):
        await hub.target("root:imw", "t", {})
        await hub.place("root:wmw", "web", {})
        await asyncio.sleep(1)
        wanted = await hub.destinations()
        assert [len(found) for found in wanted.values()] == [1]
        await hub.at("root:wmw").patch(SINGLE_PLACEMENT_SLICES, "web", {"destinations": []})
        await asyncio.sleep(1)
        assert await hub.destinations() == wanted
        await hub.remove("root:wmw", SINGLE_PLACEMENT_SLICES, "web")
        await asyncio.sleep(1)
        assert await hub.destinations() == wanted


@virtual
async def test_an_invalid_selector_keeps_the_slice_and_reports() -> None:
    hub = Hub()
    async with hub.running("imw", "wmw"), hub.controlled("edge-scheduler"):
        await hub.target("root:imw", "t", {})
        await hub.place("root:wmw", "web", {})
        await asyncio.sleep(1)
        wanted = await hub.destinations()
        # A key too long is beyond what the schema's keywords of that time can say.
        await hub.place("root:wmw", "web", equal(**{"x" * 70: "y"}))
        await asyncio.sleep(6)
        assert await hub.destinations() == wanted
        status = (await hub.at("root:wmw").get(EDGE_PLACEMENTS, "web"))["status"]
        (reported,) = [each for each in status["conditions"] if each["type"] == "Scheduled"]
        assert reported["reason"] == "InvalidSelector"
        assert "spec.locationSelectors[0].matchLabels" in reported["message"]


@virtual
async def test_a_number_of_locations_is_chosen_and_kept_over_a_restart() -> None:
    hub = Hub()
    strategy = {"numberOfLocations": 2}
    async with hub.running("imw", "wmw"):
        for name in ("b", "c", "d"):
            await hub.target("root:imw", name, {"id": name})
            await hub.locate("root:imw", name, {"env": "a"}, equal(id=name))
        async with hub.controlled("edge-scheduler"):
            await hub.place("root:wmw", "web", equal(env="a"), strategy=strategy)
            await asyncio.sleep(1)
            (found,) = (await hub.destinations()).values()
            assert [each.location for each in found] == ["b", "c"]
        await hub.target("root:imw", "a", {"id": "a"})
        await hub.locate("root:imw", "a", {"env": "a"}, equal(id="a"))
        async with hub.controlled("edge-scheduler"):
            await asyncio.sleep(1)
            (found,) = (await hub.destinations()).values()
            assert [each.location for each in found] == ["b", "c"], "who is there stays"
            await hub.remove("root:imw", LOCATIONS, "b")
            await asyncio.sleep(1)
            (found,) = (await hub.destinations()).values()
            assert [each.location for each in found] == ["a", "c"]


@virtual
async def test_who_leads_again_keeps_what_was_chosen_by_who_led_meanwhile() -> None:
    hub = Hub()

    async def there() -> list[str]:
        await asyncio.sleep(1)
        (found,) = (await hub.destinations()).values()
        return [each.location for each in found]

    async with hub.running("imw", "wmw"), hub.standing_by("edge-scheduler") as lead:
        for name in ("a", "b", "c", "d"):
            await hub.target("root:imw", name, {"id": name})
            await hub.locate("root:imw", name, {"env": "a"}, equal(id=name))
        first = lead()
        await hub.place("root:wmw", "web", equal(env="a"), strategy={"numberOfLocations": 2})
        assert await there() == ["a", "b"]
        first.cancel()
        async with hub.controlled("edge-scheduler"):
            for name in ("a", "b"):
                await hub.remove("root:imw", LOCATIONS, name)
            assert await there() == ["c", "d"]
        for name in ("a", "b"):
            await hub.locate("root:imw", name, {"env": "a"}, equal(id=name))
        await asyncio.sleep(1)
        lead()
        assert await there() == ["c", "d"]


async def mailboxes(hub: Hub) -> dict[str, Object]:
    """Return the mailbox workspaces by the SyncTarget they are marked with."""
    spaces = (await hub.at(PROVIDER).list(WORKSPACES)).items
    return {
        space["metadata"]["annotations"].get(SYNC_TARGET_NAME, ""): space
        for space in spaces
        if mailbox_named(space["metadata"]["name"])
    }


async def assert_mailboxes(hub: Hub) -> None:
    targets = {
        f"{obj['metadata']['annotations']['kcp.io/cluster']}-mb-{obj['metadata']['uid']}"
        for obj in await hub.everything(SYNC_TARGETS)
    }
    spaces = (await hub.at(PROVIDER).list(WORKSPACES)).items
    assert {s["metadata"]["name"] for s in spaces} == targets | {"somebody-mb-elses"}
    for space in spaces:
        if space["metadata"]["name"] in targets:
            bound = await hub.at(space["spec"]["cluster"]).get(API_BINDINGS, "bind-edge")
            assert bound["spec"]["reference"]["export"] == {
                "path": PROVIDER,
                "name": "edge.kcp.io",
            }


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_every_sync_target_has_its_mailbox_after_any_history(seed: int) -> None:
    hub = Hub(seed, Rates())
    people = People(hub)
    async with hub.running("imw1", "imw2"):
        await hub.make_workspace(PROVIDER, "somebody-mb-elses")
        for _ in range(2):
            async with hub.controlled("mailbox"):
                for _ in range(8):
                    await vandalise_mailboxes(hub, people)
                    await asyncio.sleep(hub.ids.fraction() * 2)
        async with hub.controlled("mailbox"):
            await hub.settle()
            await assert_mailboxes(hub)
        revision = await hub.store.revision()
        async with hub.controlled("mailbox"):
            await hub.settle()
        assert await hub.store.revision() == revision, "a second pass writes nothing"


async def vandalise_mailboxes(hub: Hub, people: People) -> None:
    inventory, name = people.one_of("root:imw1", "root:imw2"), people.one_of("x", "y", "z")
    found = list((await mailboxes(hub)).values())
    space = people.one_of(*found) if found else None
    deeds: list[Callable[[], Awaitable[Any]]] = [
        lambda: hub.target(inventory, name, {}),
        lambda: hub.target(inventory, name, {}),
        lambda: hub.remove(inventory, SYNC_TARGETS, name),
    ]
    if space is not None:
        workspace, content = space["metadata"]["name"], space["spec"]["cluster"]
        unmark = {"metadata": {"annotations": {SYNC_TARGET_NAME: None}}}
        deeds += [
            lambda: hub.remove(PROVIDER, WORKSPACES, workspace),
            lambda: hub.remove(content, API_BINDINGS, "bind-edge"),
            lambda: hub.at(PROVIDER).patch(WORKSPACES, workspace, unmark),
        ]
    with suppress(ApiError):
        await people.one_of(*deeds)()


async def heard_of(hub: Hub) -> tuple[Client, str]:
    """Have an edge send its first heartbeat; return its mailbox, and the time it sent."""
    await hub.target("root:imw", "florin", {})
    await asyncio.sleep(1)
    client = hub.at((await mailboxes(hub))["florin"]["spec"]["cluster"])
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": HEARTBEAT_LEASE, "namespace": HEARTBEAT_NAMESPACE},
        "spec": {"renewTime": rfc3339_micro(hub.clock.now())},
    }
    return client, (await client.create(LEASES, lease))["spec"]["renewTime"]


@virtual
async def test_a_heartbeat_reaches_the_sync_target() -> None:
    hub = Hub()
    async with hub.running("imw"), hub.controlled("mailbox"):
        client, first = await heard_of(hub)
        await asyncio.sleep(1)
        assert await heartbeat(hub) == first[:19] + "Z"
        await asyncio.sleep(30)
        renewed = rfc3339_micro(hub.clock.now())
        patch = {"spec": {"renewTime": renewed}}
        await client.patch(LEASES, HEARTBEAT_LEASE, patch, HEARTBEAT_NAMESPACE)
        await asyncio.sleep(1)
        assert await heartbeat(hub) == renewed[:19] + "Z"


@pytest.mark.parametrize("restarts", [False, True])
@virtual
async def test_the_last_heartbeat_of_an_edge_reaches_its_sync_target(restarts: bool) -> None:
    hub = Hub()
    async with hub.running("imw"):
        async with hub.controlled("mailbox"):
            client, first = await heard_of(hub)
            await asyncio.sleep(3)
            patch = {"spec": {"renewTime": rfc3339_micro(hub.clock.now())}}
            last = await client.patch(LEASES, HEARTBEAT_LEASE, patch, HEARTBEAT_NAMESPACE)
            await asyncio.sleep(1 if restarts else 5)
            assert await heartbeat(hub) == first[:19] + "Z", "it is held back"
            if not restarts:
                await asyncio.sleep(6)
                assert await heartbeat(hub) == last["spec"]["renewTime"][:19] + "Z"
        async with hub.controlled("mailbox"):
            await asyncio.sleep(11)
            assert await heartbeat(hub) == last["spec"]["renewTime"][:19] + "Z"
            revision = await hub.store.revision()
            await asyncio.sleep(3600)
            assert await hub.store.revision() == revision


@virtual
async def test_a_target_is_ready_for_as_long_as_its_lease_lasts() -> None:
    hub = Hub()
    async with hub.running("imw"), hub.controlled("mailbox"), asyncio.TaskGroup() as tasks:
        tenancy = tasks.create_task(run_tenancy_controllers(hub.api, hub.clock, hub.ids))
        await hub.target("root:imw", "florin", {})
        await asyncio.sleep(1)
        content = (await mailboxes(hub))["florin"]["spec"]["cluster"]
        renewed = {"renewTime": rfc3339_micro(hub.clock.now()), "leaseDurationSeconds": 300}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": HEARTBEAT_LEASE, "namespace": HEARTBEAT_NAMESPACE},
            "spec": renewed,
        }
        await hub.at(content).create(LEASES, lease)
        seen = []
        for seconds in (1, 278, 22):
            await asyncio.sleep(seconds)
            seen.append(is_ready(await hub.at("root:imw").get(SYNC_TARGETS, "florin")))
        assert seen == [True, True, False]
        tenancy.cancel()


async def heartbeat(hub: Hub) -> str:
    target = await hub.at("root:imw").get(SYNC_TARGETS, "florin")
    return str(target["status"]["lastSyncerHeartbeatTime"])


@virtual
async def test_the_worked_case_of_the_documentation() -> None:
    hub = Hub()
    async with hub.running("imw", "wmw"), hub.controlled("edge-scheduler"):
        for name in ("prod", "dev"):
            await hub.locate("root:imw", name, {"env": name}, equal(env=name))
            await hub.target("root:imw", name, {"env": name})
        await hub.place("root:wmw", "all2all", {})
        await hub.place("root:wmw", "dev", equal(env="dev"))
        await asyncio.sleep(1)
        found = {ref.name: each for ref, each in (await hub.destinations()).items()}
        pairs = [(each.location, each.sync_target) for each in found["all2all"]]
        assert pairs == [("default", "dev"), ("default", "prod"), ("dev", "dev"), ("prod", "prod")]
        assert [(each.location, each.sync_target) for each in found["dev"]] == [("dev", "dev")]
        await asyncio.sleep(6)
        await hub.assert_scheduled()


@virtual
async def test_the_usual_provider_is_taken_when_the_current_workspace_is_none() -> None:
    hub = Hub()
    async with hub.running("wmw"):
        client = hub.at("")
        assert await provider_near(client, "root:wmw") == PROVIDER
        assert await provider_near(client, PROVIDER) == PROVIDER
        await hub.remove(PROVIDER, API_EXPORTS, "edge.kcp.io")
        assert await provider_near(client, "root:wmw") == "root:wmw", "it may come yet"
