"""One of several syncers works for an edge; the others stand by."""

from __future__ import annotations

from pathlib import Path

from tests.kit.chain.syncer_place import CONTENT
from tests.kit.chain.syncer_world import CONFIG_MAPS, SyncerWorld
from tests.kit.sim.loop import virtual


@virtual
async def test_only_the_elected_syncer_has_a_session_and_another_takes_over(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.configure()
        first = world.start("one")
        await world.settle(10)
        second = world.start("two")
        await world.settle(60)
        assert first.session is not None
        assert second.session is None
        await world.kill("one")
        assert first.session is None
        await world.settle(60)
        assert second.session is not None
        await world.put(CONFIG_MAPS, "page", {"data": CONTENT["data"]})
        await world.settle(20)
        assert await world.at_edge(CONFIG_MAPS, "page") is not None


@virtual
async def test_a_syncer_that_restarts_as_itself_does_not_wait_for_its_own_lease(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.configure()
        world.start("one")
        await world.settle(10)
        await world.kill("one")
        again = world.start("one")
        await world.settle(2)
        assert again.session is not None


@virtual
async def test_a_session_that_ended_is_followed_by_a_fresh_one(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.configure()
        syncer = world.start("one")
        await world.settle(10)
        before = syncer.session
        assert before is not None
        before._over.set()
        await world.settle(10)
        assert syncer.session is not None
        assert syncer.session is not before
