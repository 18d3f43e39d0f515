"""What edges live through: hubs that are away, empty, restored or lying; crashes; full disks.

After each: what was placed still is, nothing went without evidence, and the hub shows the truth.
"""

from __future__ import annotations

import asyncio
import copy
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.errors import ApiError
from skerry.logic.fleet.syncing.deletion_budget import Budget
from skerry.runtime.client import Client
from tests.kit.chain.syncer_world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SPEC,
    SyncerWorld,
    deployment,
)
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual

SEEDS = range(int(os.environ.get("SKERRY_SYNCER_SEEDS", "6")))


async def placed(world: SyncerWorld, count: int = 3) -> None:
    await world.configure()
    for index in range(count):
        await world.put(CONFIG_MAPS, f"page-{index}", {"data": {"n": str(index)}})
    await world.put(DEPLOYMENTS, "web", deployment())
    world.start()
    await world.settle(20)
    assert len(await world.names_at_edge(CONFIG_MAPS)) == count


async def annotate(client: Client, **notes: str) -> None:
    patch = {"metadata": {"annotations": {f"edge.kcp.io/{k}": v for k, v in notes.items()}}}
    await client.patch(SYNCER_CONFIGS, "the-one", patch)


@virtual
async def test_an_edge_restarted_without_its_hub_restores_what_it_should_run(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        world.to_hub.sever()
        await world.kill()
        await world.edge.client.delete(CONFIG_MAPS, "page-0", "shop")
        await world.edge.client.patch(CONFIG_MAPS, "page-1", {"data": {"n": "vandal"}}, "shop")
        world.start()
        await asyncio.sleep(60)
        missing = await world.at_edge(CONFIG_MAPS, "page-0")
        drifted = await world.at_edge(CONFIG_MAPS, "page-1")
        assert missing is not None
        assert missing["data"] == {"n": "0"}
        assert drifted is not None
        assert drifted["data"] == {"n": "1"}


@virtual
async def test_an_hour_without_the_hub_changes_nothing_and_the_rest_follows(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        world.to_hub.sever()
        await world.hub.client.delete(CONFIG_MAPS, "page-0", "shop")
        await world.put(CONFIG_MAPS, "page-1", {"data": {"n": "new"}})
        await world.put(CONFIG_MAPS, "page-9", {"data": {"n": "9"}})
        await asyncio.sleep(3600)
        assert await world.names_at_edge(CONFIG_MAPS) == {"page-0", "page-1", "page-2"}
        world.to_hub.restore()
        await world.settle(90)
        assert await world.names_at_edge(CONFIG_MAPS) == {"page-1", "page-2", "page-9"}
        changed = await world.at_edge(CONFIG_MAPS, "page-1")
        assert changed is not None
        assert changed["data"] == {"n": "new"}


@virtual
async def test_history_compacted_during_a_partition_loses_no_deletion(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        world.to_hub.sever()
        await world.hub.client.delete(CONFIG_MAPS, "page-0", "shop")
        await world.hub.store.compact(await world.hub.store.revision())
        await asyncio.sleep(60)
        world.to_hub.restore()
        await world.settle(90)
        assert await world.names_at_edge(CONFIG_MAPS) == {"page-1", "page-2"}


@virtual
@pytest.mark.parametrize("configured", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_hub_replaced_by_an_empty_one_deletes_nothing(
    tmp_path: Path, configured: bool, restarted: bool
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        empty = await world.another_hub()
        if configured:
            await world.configure(hub=empty)
        if restarted:
            await world.kill()
        world.to_hub.lead_to(empty.transport)
        world.hub = empty
        if restarted:
            world.start()
        await world.settle(900)
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 3
        await world.edge.client.delete(CONFIG_MAPS, "page-0", "shop")
        await world.settle(30)
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 3
        if configured:
            reported = (await world.conditions())["HubIdentityChanged"]
            assert reported["status"] == "True"
            assert empty.store.identity in reported["message"]


@virtual
async def test_a_new_hub_that_a_person_accepted_is_believed(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        other = await world.another_hub()
        await world.configure(hub=other)
        await world.put(CONFIG_MAPS, "page-1", {"data": {"n": "1"}}, server=other)
        world.to_hub.lead_to(other.transport)
        world.hub = other
        await world.settle(300)
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 3
        await annotate(other.client, **{"accept-store-identity": other.store.identity})
        await world.settle(60)
        assert await world.names_at_edge(CONFIG_MAPS) == {"page-1"}
        assert (await world.conditions())["HubIdentityChanged"]["status"] == "False"


@virtual
async def test_a_restored_hub_that_wants_everything_we_have_needs_no_person(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        other = await world.another_hub()
        await world.configure(hub=other)
        for index in range(3):
            await world.put(CONFIG_MAPS, f"page-{index}", {"data": {"n": str(index)}}, server=other)
        await world.put(DEPLOYMENTS, "web", deployment(), server=other)
        world.to_hub.lead_to(other.transport)
        world.hub = other
        await world.settle(120)
        assert (await world.conditions())["HubIdentityChanged"]["status"] == "False"
        await other.client.delete(CONFIG_MAPS, "page-0", "shop")
        await world.settle(30)
        assert await world.names_at_edge(CONFIG_MAPS) == {"page-1", "page-2"}


@virtual
async def test_a_restored_hub_needs_no_person_once_it_wants_everything_again(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        other = await world.another_hub()
        # A scope may name types that the mailbox does not have.
        spec = copy.deepcopy(SPEC)
        widgets = {"group": "example.org", "apiVersion": "v1", "resource": "widgets"}
        spec["namespaceScope"]["resources"].append(widgets)
        await world.configure(spec, hub=other)
        for index in (0, 1):
            await world.put(CONFIG_MAPS, f"page-{index}", {"data": {"n": str(index)}}, server=other)
        await world.put(DEPLOYMENTS, "web", deployment(), server=other)
        world.to_hub.lead_to(other.transport)
        world.hub = other
        await world.settle(120)
        assert (await world.conditions())["HubIdentityChanged"]["status"] == "True"
        # What it lacks goes and comes; it is the last missing one that counts.
        await other.client.delete(CONFIG_MAPS, "page-1", "shop")
        await world.put(CONFIG_MAPS, "page-2", {"data": {"n": "2"}}, server=other)
        await world.settle(30)
        assert (await world.conditions())["HubIdentityChanged"]["status"] == "True"
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 3
        await world.put(CONFIG_MAPS, "page-1", {"data": {"n": "1"}}, server=other)
        await world.settle(30)
        assert (await world.conditions())["HubIdentityChanged"]["status"] == "False"
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 3


@virtual
async def test_too_many_deletions_are_held_until_a_person_approves_them(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    world.settings = replace(world.settings, budget=Budget(5, 50))
    async with world.running():
        await placed(world, 20)
        await world.configure({"namespaceScope": {}})
        await world.settle(60)
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 20
        reported = (await world.conditions())["DeletionsHeld"]
        assert reported["status"] == "True"
        name = reported["message"].rpartition("=")[2]
        await annotate(world.hub.client, **{"approve-deletions": "something-else"})
        await world.settle(30)
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 20
        await annotate(world.hub.client, **{"approve-deletions": name})
        await world.settle(60)
        assert await world.names_at_edge(CONFIG_MAPS) == set()
        assert (await world.conditions())["DeletionsHeld"]["status"] == "False"


@virtual
async def test_a_held_mass_deletion_ends_when_the_objects_are_wanted_again(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    world.settings = replace(world.settings, budget=Budget(5, 50))
    async with world.running():
        await placed(world, 20)
        await world.configure({"namespaceScope": {}})
        await world.settle(60)
        await world.configure()
        await world.settle(60)
        assert (await world.conditions())["DeletionsHeld"]["status"] == "False"
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 20


@virtual
async def test_a_wiped_edge_gets_everything_again(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        fresh = await world.another_edge()
        world.to_edge.lead_to(fresh.transport)
        world.edge = fresh
        await world.settle(300)
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 3
        assert (await world.conditions())["Synced"]["status"] == "True"


@virtual
async def test_a_lost_journal_costs_nothing_that_is_wanted_and_deletes_nothing(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        await world.kill()
        (tmp_path / "one.journal").unlink()
        await world.hub.client.delete(CONFIG_MAPS, "page-0", "shop")
        world.start()
        await world.settle(60)
        assert len(await world.names_at_edge(CONFIG_MAPS)) == 3
        assert (await world.conditions())["configmaps/shop.page-0"]["reason"] == "NotRecorded"
        await world.hub.client.delete(CONFIG_MAPS, "page-1", "shop")
        await world.settle(60)
        # What is in the mailbox was recognised as ours and recorded anew, so it can go later.
        assert await world.names_at_edge(CONFIG_MAPS) == {"page-0", "page-2"}


@virtual
async def test_a_full_disk_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await placed(world)
        journal = world.journals["one"]
        real = journal._offload

        async def full(_: Callable[[], None]) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        journal._offload = full
        await world.put(CONFIG_MAPS, "page-7", {"data": {"n": "7"}})
        await world.settle(20)
        assert await world.at_edge(CONFIG_MAPS, "page-7") is not None
        reported = (await world.conditions())["DiskFailing"]
        assert reported["status"] == "True"
        journal._offload = real
        await world.put(CONFIG_MAPS, "page-8", {"data": {"n": "8"}})
        await world.settle(20)
        assert (await world.conditions())["DiskFailing"]["status"] == "False"


@pytest.mark.parametrize("seed", SEEDS)
def test_under_faults_and_crashes_the_edge_converges_and_loses_nothing_wanted(
    tmp_path: Path, seed: int
) -> None:
    @virtual
    async def run() -> None:
        world = SyncerWorld(tmp_path, seed, Rates(0.05, 0.05, 0.03, 0.03, 0.2))
        async with world.running():
            wanted = await _disturbed(world)
            await world.settle(400)
            assert await world.names_at_edge(CONFIG_MAPS) == set(wanted)
            for name, number in wanted.items():
                live = await world.at_edge(CONFIG_MAPS, name)
                assert live is not None
                assert live["data"] == {"n": str(number)}, (seed, name)

    run()


async def _disturbed(world: SyncerWorld) -> dict[str, int]:
    """Change the mailbox and the edge at random while everything fails; return what is wanted."""
    await world.configure()
    wanted: dict[str, int] = {}
    always = {"steady": 0}
    await world.put(CONFIG_MAPS, "steady", {"data": {"n": "0"}})
    world.start()
    await asyncio.sleep(60)
    for step in range(40):
        await asyncio.sleep(world.ids.fraction() * 3)
        name = f"page-{int(world.ids.fraction() * 5)}"
        await _one_change(world, wanted, name, step)
        # Never wanted away, so never away for longer than it takes to repair.
    return wanted | always


async def _one_change(world: SyncerWorld, wanted: dict[str, int], name: str, step: int) -> None:
    chance = world.ids.fraction()
    if chance < 0.4:
        await world.put(CONFIG_MAPS, name, {"data": {"n": str(step)}})
        wanted[name] = step
    elif chance < 0.6 and name in wanted:
        await world.hub.client.delete(CONFIG_MAPS, name, "shop")
        del wanted[name]
    elif chance < 0.75:
        await _vandalised(world, name)
    elif chance < 0.85:
        await world.kill()
        world.start()
    elif chance < 0.95:
        world.to_hub.sever()
        await asyncio.sleep(world.ids.fraction() * 20)
        world.to_hub.restore()
    else:
        await world.hub.store.compact(await world.hub.store.revision())


async def _vandalised(world: SyncerWorld, name: str) -> None:
    change: Any = {"data": {"n": "vandal"}}
    with suppress(ApiError):
        if world.ids.fraction() < 0.5:
            await world.edge.client.delete(CONFIG_MAPS, name, "shop")
        else:
            await world.edge.client.patch(CONFIG_MAPS, name, change, "shop")
