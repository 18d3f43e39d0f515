"""A session: everything connected, and its end when one side is not the one it was."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from skerry.app.syncer import hub_client
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.session import Session
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.logic.fleet.syncing.delivery import is_delivered
from skerry.runtime.client import Client
from tests.kit.chain.inline import inline
from tests.kit.chain.syncer_place import CONTENT
from tests.kit.chain.syncer_world import CONFIG_MAPS, NAMESPACES, SyncerWorld
from tests.kit.sim.loop import virtual


def session(world: SyncerWorld, journal: Journal) -> Session:
    return Session(
        world.settings,
        hub_client(world.hub_faults, world.clock),
        Client(world.to_edge, clock=world.clock),
        SyncRecords(journal),
        world.ids,
        SyncerMetrics(),
    )


@virtual
async def test_one_session_brings_an_object_down_and_its_mark_up(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        with closing(Journal(tmp_path / "journal", offload=inline)) as journal:
            working = session(world, journal)
            task = asyncio.get_running_loop().create_task(working.run())
            await world.configure()
            await world.put(CONFIG_MAPS, "page", {"data": CONTENT["data"]})
            await asyncio.sleep(20)
            live = await world.at_edge(CONFIG_MAPS, "page")
            assert live is not None
            assert live["data"] == CONTENT["data"]
            copy = await world.in_hub(CONFIG_MAPS, "page")
            assert copy is not None
            assert is_delivered(copy)
            assert working.state.outcomes.applied == 2, "the page and its Namespace"
            task.cancel()
            await asyncio.wait([task])


@virtual
async def test_a_session_is_over_when_the_edge_has_become_another_cluster(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        system = {"metadata": {"name": "kube-system"}}
        for server in (world.edge, other := await world.another_edge()):
            if "kube-system" not in {
                item["metadata"]["name"] for item in (await server.client.list(NAMESPACES)).items
            }:
                await server.client.create(NAMESPACES, system)
        with closing(Journal(tmp_path / "journal", offload=inline)) as journal:
            task = asyncio.get_running_loop().create_task(session(world, journal).run())
            await asyncio.sleep(5)
            assert not task.done()
            world.to_edge.lead_to(other.transport)
            await asyncio.wait_for(task, 2 * world.settings.heartbeat_seconds)


@virtual
async def test_what_was_not_done_is_done_by_the_next_session_of_the_journal(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.configure()
        await world.put(CONFIG_MAPS, "page", {"data": CONTENT["data"]})
        with closing(Journal(tmp_path / "journal", offload=inline)) as journal:
            for seconds in (0.2, 20.0):
                task = asyncio.get_running_loop().create_task(session(world, journal).run())
                await asyncio.sleep(seconds)
                task.cancel()
                await asyncio.wait([task])
        assert await world.at_edge(CONFIG_MAPS, "page") is not None
