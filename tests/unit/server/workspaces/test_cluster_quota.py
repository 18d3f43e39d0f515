"""A quota in the namespace ``admin`` may count all of its workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    CONFIG_MAPS,
    WORKSPACES,
    Hub,
    HubPlace,
    config_map,
    in_hub,
    workspace,
)

QUOTAS = "/api/v1/namespaces/admin/resourcequotas"
WIDE = "experimental.quota.kcp.io/cluster-scoped"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path, controllers=True)


def quota(name: str, wide: str, **hard: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "annotations": {WIDE: wide}},
        "spec": {"hard": hard},
    }


async def limited(hub: Hub, name: str, wide: str = "true", **hard: str) -> str:
    """Make a workspace with a quota that has been counted; return its cluster."""
    cluster = await hub.workspace("root", name)
    await hub.create(cluster, "/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "admin"}
    })  # fmt: skip
    await hub.create(cluster, QUOTAS, quota("q", wide, **hard))
    await hub.until(cluster, f"{QUOTAS}/q", "status", "hard", hard)
    return cluster


@in_hub
async def test_workspaces_can_be_limited_in_number(hub: Hub) -> None:
    name = "count/workspaces.tenancy.kcp.io"
    cluster = await limited(hub, "org", **{name: "2"})
    for child in ("one", "two"):
        await hub.create(cluster, WORKSPACES, workspace(child))
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{cluster}{WORKSPACES}", workspace("x"))
    assert reply.status == 403
    wanted = f"exceeded quota: q, requested: {name}=1, used: {name}=2, limited: {name}=2"
    assert reply.body["message"].endswith(wanted)
    # What goes makes room again, and other workspaces never counted.
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{cluster}{WORKSPACES}/one")
    await hub.until(cluster, f"{QUOTAS}/q", "status", "used", {name: "1"})
    await hub.create(cluster, WORKSPACES, workspace("three"))


@in_hub
async def test_objects_of_all_namespaces_count_together(hub: Hub) -> None:
    cluster = await limited(hub, "org", configmaps="4")
    # One with the authority's certificate comes with each namespace.
    await hub.until(cluster, f"{QUOTAS}/q", "status", "used", {"configmaps": "2"})
    await hub.create(cluster, CONFIG_MAPS, config_map("a"))
    await hub.create(cluster, CONFIG_MAPS.replace("default", "admin"), config_map("b"))
    path = f"/clusters/{cluster}{CONFIG_MAPS}"
    assert (await hub.ask("kcp-admin", "POST", path, config_map("c"))).status == 403


@in_hub
async def test_without_the_annotation_a_quota_is_its_namespaces(hub: Hub) -> None:
    cluster = await limited(hub, "org", "false", configmaps="1")
    await hub.create(cluster, CONFIG_MAPS, config_map("a"))
    await hub.create(cluster, CONFIG_MAPS, config_map("b"))
