"""What is selected by name is known by its key alone."""

from __future__ import annotations

from tests.kit.server.harness import serving
from tests.kit.server.objects import CORE, config_map
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"


@virtual
async def test_a_watch_of_one_name_shows_no_object_whose_name_ends_alike() -> None:
    async with serving() as server:
        path = f"{MAPS}?watch=true&fieldSelector=metadata.name%3Db"
        async with server.watch(path) as sender:
            for name in ("a-b", "b", "b.c", "c"):
                await server.create(MAPS, config_map(name))
            await server.delete(f"{MAPS}/a-b")
            await server.delete(f"{MAPS}/b")
            events = [await sender.lines.get() for _ in range(2)]
            await server.sleep(1)
            assert sender.lines.empty()
    found = [(each["type"], each["object"]["metadata"]["name"]) for each in events]
    assert found == [("ADDED", "b"), ("DELETED", "b")]
