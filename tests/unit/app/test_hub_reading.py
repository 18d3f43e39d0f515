"""What is read from a hub, and what may not be."""

from __future__ import annotations

from skerry.api.edge import EDGE_PLACEMENTS
from skerry.api.kcp.resources import LOCATIONS
from skerry.api.kinds import ResourceInfo
from tests.kit.chain.asked_town import Town
from tests.kit.sim.loop import virtual

SPACES = ResourceInfo("", "v1", "namespaces", "Namespace", False)


@virtual
async def test_paths_are_read_and_one_that_is_not_there_has_none() -> None:
    town = Town()
    async with town.furnished() as hub:
        own = await hub.cluster()
        assert await hub.paths([own, "nobody"]) == {own: "root:wmw", "nobody": "?"}
        assert (await hub.inventory([])).paths() == {town.imw: "root:imw"}


@virtual
async def test_a_kind_that_a_workspace_does_not_serve_has_no_objects() -> None:
    town = Town()
    async with town.furnished() as hub:
        elsewhere = hub.elsewhere("root:imw")
        assert elsewhere.workspace == "root:imw"
        assert await elsewhere.edge_kind(EDGE_PLACEMENTS) == []
        assert [
            each["metadata"]["name"] for each in await elsewhere.everywhere(EDGE_PLACEMENTS)
        ] == ["p"]
        assert len(await elsewhere.edge_kind(LOCATIONS)) >= 2


@virtual
async def test_what_the_server_makes_of_an_object_is_not_written() -> None:
    town = Town()
    async with town.furnished() as hub:
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
        made = await hub.completed(SPACES, document, exists=False)
        assert made["metadata"]["labels"]["kubernetes.io/metadata.name"] == "new"
        assert await hub.live(SPACES, document) is None
    assert not town.writes
