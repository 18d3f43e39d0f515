"""What takes its time: deletions end, and bindings follow what they are bound to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    CONFIG_MAPS,
    EXPORTS,
    SCHEMAS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    config_map,
    export,
    in_hub,
    provider,
    schema,
    widget,
)

MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


async def bound(hub: Hub) -> tuple[str, str]:
    """Return a workspace that offers widgets and one that has bound them."""
    await hub.workspace("root", "org")
    shop = await hub.workspace("root:org", "shop")
    await provider(hub, shop)
    user = await hub.workspace("root:org", "user")
    await hub.create(user, BINDINGS, binding("w", "root:org:shop", "widgets"))
    return shop, user


async def patch(hub: Hub, where: str, path: str, change: Any) -> None:
    reply = await hub.ask("kcp-admin", "PATCH", f"/clusters/{where}{path}", change, **MERGE)
    assert reply.status == 200, reply.body


@in_hub
async def test_a_workspace_goes_with_everything_in_it_and_below_it_and_with_nothing_else(
    hub: Hub,
) -> None:
    org = await hub.workspace("root", "org")
    inner = await hub.workspace("root:org", "inner")
    other = await hub.workspace("root", "other")
    for cluster in (org, inner, other):
        await hub.create(cluster, CONFIG_MAPS, config_map("m"))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/root{WORKSPACES}/org")
    await hub.gone("root", f"{WORKSPACES}/org")
    keys = await hub.keys()
    assert not [key for key in keys if f"/{org}/" in key or f"/{inner}/" in key]
    assert [key for key in keys if f"/{other}/" in key and key.endswith("/m")]


@in_hub
async def test_a_finalizer_holds_a_workspace_until_it_is_taken_off(hub: Hub) -> None:
    cluster = await hub.workspace("root", "org")
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.org/wait"]
    await hub.create(cluster, CONFIG_MAPS, held)
    await hub.ask("kcp-admin", "DELETE", f"/clusters/root{WORKSPACES}/org")
    marked = await hub.ask("kcp-admin", "GET", f"/clusters/root{WORKSPACES}/org")
    assert "deletionTimestamp" in marked.body["metadata"]
    refused = await hub.ask(
        "kcp-admin", "POST", f"/clusters/{cluster}{CONFIG_MAPS}", config_map("late")
    )
    assert refused.status == 403
    await patch(hub, cluster, f"{CONFIG_MAPS}/held", {"metadata": {"finalizers": None}})
    await hub.gone("root", f"{WORKSPACES}/org")


@in_hub
async def test_a_binding_goes_with_its_objects_and_a_kept_schema_with_the_last_binding(
    hub: Hub,
) -> None:
    shop, user = await bound(hub)
    await hub.create(user, WIDGETS, widget("x"))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{shop}{SCHEMAS}/v1.widgets.example.io")
    assert [key for key in await hub.keys() if key.startswith("/kept/")]
    await hub.get(user, f"{WIDGETS}/x")
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{user}{BINDINGS}/w")
    await hub.gone(user, f"{BINDINGS}/w")
    assert not [key for key in await hub.keys() if "/widgets:" in key]
    while [key for key in await hub.keys() if key.startswith("/kept/")]:
        await hub.settled()


@in_hub
async def test_a_binding_that_came_too_early_is_bound_when_its_export_comes(hub: Hub) -> None:
    await hub.workspace("root", "org")
    shop = await hub.workspace("root:org", "shop")
    user = await hub.workspace("root:org", "user")
    await hub.create(shop, EXPORTS, export("widgets", "v1.widgets.example.io"))
    reply = await hub.ask(
        "kcp-admin", "POST", f"/clusters/{user}{BINDINGS}", binding("w", "root:org:shop", "widgets")
    )
    assert reply.status == 201, reply.body
    assert not reply.body["status"].get("boundResources")
    await hub.create(shop, SCHEMAS, schema())
    while not (await hub.get(user, f"{BINDINGS}/w"))["status"].get("boundResources"):
        await hub.settled()
    await hub.create(user, WIDGETS, widget("x"))


@in_hub
async def test_an_export_that_offers_more_is_followed_by_its_bindings(hub: Hub) -> None:
    shop, user = await bound(hub)
    await hub.create(shop, SCHEMAS, schema("gadgets"))
    offered = ["v1.widgets.example.io", "v1.gadgets.example.io"]
    await patch(hub, shop, f"{EXPORTS}/widgets", {"spec": {"latestResourceSchemas": offered}})
    while len((await hub.get(user, f"{BINDINGS}/w"))["status"]["boundResources"]) < 2:
        await hub.settled()
    assert (await hub.get(user, "/apis/example.io/v1/gadgets"))["items"] == []
