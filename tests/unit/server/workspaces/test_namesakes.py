"""Types that only have the names of root's are types like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    CLUSTERS,
    DEFINITIONS,
    EXPORTS,
    SCHEMAS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    export,
    in_hub,
    workspace,
)
from tests.kit.server.tenants import TYPES, home

MERGE = {"content_type": "application/merge-patch+json"}
KINDS = (("workspaces", "Workspace"), ("workspacetypes", "WorkspaceType"))


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def spec(plural: str, kind: str, *, local: bool) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}},
               "schema": {"openAPIV3Schema": form} if local else form}  # fmt: skip
    return {
        "group": "tenancy.kcp.io",
        "names": {"plural": plural, "singular": kind.lower(), "kind": kind,
                  "listKind": f"{kind}List"},
        "scope": "Cluster",
        "versions": [version],
    }  # fmt: skip


async def without_tenancy(hub: Hub) -> str:
    """Return alice's home, in which she has given up root's workspaces."""
    mine = await home(hub, "alice")
    bound = (await hub.get(mine, BINDINGS, "alice"))["items"]
    name = next(each["metadata"]["name"] for each in bound
                if each["metadata"]["name"].startswith("tenancy"))  # fmt: skip
    await hub.ask("alice", "DELETE", f"/clusters/{mine}{BINDINGS}/{name}")
    await hub.gone(mine, f"{BINDINGS}/{name}")
    return mine


async def clusters(hub: Hub) -> set[str]:
    found = (await hub.ask("shard-admin", "GET", f"/clusters/*{CLUSTERS}")).body["items"]
    return {each["metadata"]["annotations"]["kcp.io/cluster"] for each in found}


async def nothing_comes_of_them(hub: Hub, mine: str) -> None:
    before = await clusters(hub)
    for path, obj in (
        (WORKSPACES, workspace("child", {"type": {"name": "universal", "path": "root"}})),
        (WORKSPACES, workspace("other", {"cluster": "root", "URL": "https://evil/"})),
        (TYPES, {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
                 "metadata": {"name": "system"}, "spec": {"initializer": True}}),
    ):  # fmt: skip
        made = await hub.create(mine, path, obj, "alice")
        assert "status" not in made
        assert "finalizers" not in made["metadata"]
        assert made["spec"] == obj["spec"]
    assert await clusters(hub) == before
    for path in (f"{mine}:child", f"{mine}:other", "user:alice:child"):
        reply = await hub.ask("alice", "GET", f"/clusters/{path}/api")
        assert reply.status == 403, path
    # Neither is any of it a type that workspaces elsewhere could be of.
    theirs = await home(hub, "bob")
    wanted = workspace("w", {"type": {"name": "system", "path": mine}})
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{theirs}{WORKSPACES}", wanted)
    assert reply.status == 403
    for name in ("child", "other"):
        await hub.ask("alice", "DELETE", f"/clusters/{mine}{WORKSPACES}/{name}")
        await hub.gone(mine, f"{WORKSPACES}/{name}")
    assert await clusters(hub) == before | {theirs}


@in_hub
async def test_workspaces_of_an_export_of_ones_own_are_none(hub: Hub) -> None:
    mine = await without_tenancy(hub)
    for plural, kind in KINDS:
        obj = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
               "metadata": {"name": f"v9.{plural}.tenancy.kcp.io"},
               "spec": spec(plural, kind, local=False)}  # fmt: skip
        await hub.create(mine, SCHEMAS, obj, "alice")
    names = [f"v9.{plural}.tenancy.kcp.io" for plural, _ in KINDS]
    await hub.create(mine, EXPORTS, export("tenancy.kcp.io", *names), "alice")
    await hub.create(mine, BINDINGS, binding("t", mine, "tenancy.kcp.io"), "alice")
    await nothing_comes_of_them(hub, mine)


@in_hub
async def test_workspaces_of_a_definition_of_ones_own_are_none(hub: Hub) -> None:
    mine = await without_tenancy(hub)
    for plural, kind in KINDS:
        obj = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
               "metadata": {"name": f"{plural}.tenancy.kcp.io",
                            "annotations": {"api-approved.kubernetes.io": "unapproved"}},
               "spec": spec(plural, kind, local=True)}  # fmt: skip
        await hub.create(mine, DEFINITIONS, obj, "alice")
    await nothing_comes_of_them(hub, mine)
