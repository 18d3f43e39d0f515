"""The syncer between a real engine as hub and one as edge, in virtual time."""

from __future__ import annotations

from pathlib import Path

from tests.sim.loop import virtual
from tests.sim.syncer_world import CONFIG_MAPS, DEPLOYMENTS, SyncerWorld, deployment


@virtual
async def test_objects_of_the_mailbox_appear_at_the_edge_and_their_status_returns(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.configure()
        await world.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
        await world.put(DEPLOYMENTS, "web", deployment())
        world.start()
        await world.settle(20)
        page = await world.at_edge(CONFIG_MAPS, "page")
        assert page is not None
        assert page["data"] == {"index.html": "hello"}
        web = await world.at_edge(DEPLOYMENTS, "web")
        assert web is not None
        web["status"] = {"replicas": 1, "observedGeneration": 1}
        await world.edge.client.update_status(DEPLOYMENTS, web)
        await world.settle(5)
        told = await world.in_hub(DEPLOYMENTS, "web")
        assert told is not None
        assert told["status"]["replicas"] == 1
        conditions = await world.conditions()
        assert conditions["Synced"]["status"] == "True"
