"""Home workspaces: everybody's own, made when first asked for, and nobody else's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.kit.server.hub import CONFIG_MAPS, Hub, HubPlace, config_map, in_hub
from tests.kit.server.tenants import HOME, home, robot


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


@in_hub
async def test_a_home_is_made_at_the_first_look_and_is_its_users_alone(hub: Hub) -> None:
    cluster = await home(hub, "alice")
    assert await home(hub, "alice") == cluster
    assert await home(hub, "bob") != cluster
    await hub.create(cluster, CONFIG_MAPS, config_map("mine"), "alice")
    assert (await hub.ask("bob", "GET", f"/clusters/{cluster}{CONFIG_MAPS}")).status == 403
    found = await hub.ask("alice", "GET", HOME)
    assert (found.body["kind"], found.body["status"]["phase"]) == ("Workspace", "Ready")


@in_hub
async def test_one_who_asks_several_times_at_once_gets_one_home(hub: Hub) -> None:
    replies = await asyncio.gather(*(hub.ask("alice", "GET", HOME) for _ in range(8)))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.body["spec"]["cluster"] for reply in replies}) == 1


@in_hub
async def test_a_home_is_asked_for_in_root_and_by_users_of_the_hub_only(hub: Hub) -> None:
    cluster = await home(hub, "alice")
    elsewhere = HOME.replace("/clusters/root/", f"/clusters/{cluster}/")
    assert (await hub.ask("alice", "GET", elsewhere)).status == 404
    token = await robot(hub, cluster, "alice")
    assert (await hub.ask(token, "GET", HOME)).status == 401
    assert (await hub.ask("", "GET", HOME)).status in (401, 403)


@in_hub
async def test_there_is_no_such_object_to_be_listed_or_deleted(hub: Hub) -> None:
    await home(hub, "alice")
    listed = await hub.ask("kcp-admin", "GET", HOME.removesuffix("/~"))
    assert "~" not in [item["metadata"]["name"] for item in listed.body["items"]]
    assert (await hub.ask("kcp-admin", "DELETE", HOME)).status == 404
