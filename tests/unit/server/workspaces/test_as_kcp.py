"""Answers that clients of kcp compare or wait for, as they were seen beside a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    DEFINITIONS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    config_map,
    definition,
    in_hub,
    provider,
    workspace,
)

CLUSTER = "kcp.io/cluster"
TYPES = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes"
SHARDS = "/apis/core.kcp.io/v1alpha1/shards"
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def workspace_type(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": name},
        "spec": spec,
    }


@in_hub
async def test_what_is_only_rehearsed_is_in_no_cluster(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await hub.create(shop, DEFINITIONS, definition())
    widget = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
    for path, obj in ((CONFIG_MAPS, config_map("c")), ("/apis/example.io/v1/widgets", widget)):
        rehearsed = await hub.create(shop, f"{path}?dryRun=All", obj)
        assert "annotations" not in rehearsed["metadata"]
        assert "resourceVersion" not in rehearsed["metadata"]
        made = await hub.create(shop, path, obj)
        assert made["metadata"]["annotations"] == {CLUSTER: shop}
    change = {"data": {"a": "b"}}
    where = f"/clusters/{shop}{CONFIG_MAPS}/c?dryRun=All"
    changed = await hub.ask("kcp-admin", "PATCH", where, change, **MERGE)
    assert changed.body["metadata"]["annotations"] == {CLUSTER: shop}


@in_hub
async def test_labels_of_a_type_are_not_those_of_what_extends_it(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    universal = {"with": [{"path": "root", "name": "universal"}]}
    labels = {"of": "base"}
    base = workspace_type("base", extend=universal, additionalWorkspaceLabels=labels)
    await hub.create(org, TYPES, base)
    extends = {"with": [{"path": "root:org", "name": "base"}]}
    await hub.create(org, TYPES, workspace_type("more", extend=extends))
    for name, labelled in (("base", True), ("more", False)):
        spec = {"type": {"path": "root:org", "name": name}}
        made = await hub.create(org, WORKSPACES, workspace(f"a-{name}", spec))
        assert ("of" in made["metadata"]["labels"]) is labelled


@in_hub
async def test_names_that_a_path_cannot_have_are_refused(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/{org}{TYPES}", workspace_type("a.b"))
    assert reply.status == 422
    assert "metadata.name in body should match" in reply.body["message"]
    other = {"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
             "metadata": {"name": "other"}, "spec": {}}  # fmt: skip
    for user in ("kcp-admin", "shard-admin"):
        reply = await hub.ask(user, "POST", f"/clusters/{org}{CLUSTERS}", other)
        assert reply.status == 422
        assert 'Unsupported value: "other"' in reply.body["message"]


@in_hub
async def test_a_binding_is_labelled_by_an_export_that_is_still_to_come(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    early = await hub.create(shop, BINDINGS, binding("own", "", "widgets"))
    label = early["metadata"]["labels"]["internal.apis.kcp.io/export"]
    await provider(hub, shop)
    late = await hub.until(shop, f"{BINDINGS}/own", "status", "phase", "Bound")
    assert late["metadata"]["labels"]["internal.apis.kcp.io/export"] == label


@in_hub
async def test_a_clash_with_a_definition_is_reported_in_kcps_words(hub: Hub) -> None:
    shop, user = await hub.workspace("root", "shop"), await hub.workspace("root", "user")
    await provider(hub, shop)
    await hub.create(user, DEFINITIONS, definition())
    made = await hub.create(user, BINDINGS, binding("w", "root:shop", "widgets"))
    [said] = [c for c in made["status"]["conditions"] if c["type"] == "BindingUpToDate"]
    assert said["message"] == (
        'Unable to bind APIs: cannot create CustomResourceDefinition with "example.io" group and '
        '"widgets" resource because it overlaps with "widgets.example.io" '
        f'CustomResourceDefinition in "{user}" logical cluster'
    )


@in_hub
async def test_the_shard_is_selected_by_its_name(hub: Hub) -> None:
    [shard] = (await hub.get("root", SHARDS, "shard-admin"))["items"]
    assert shard["metadata"]["labels"] == {"name": "root"}


@in_hub
async def test_a_home_is_described_as_no_object_of_root(hub: Hub) -> None:
    reply = await hub.ask("alice", "GET", f"/clusters/root{WORKSPACES}/~")
    assert set(reply.body["metadata"]) == {"name", "creationTimestamp"}
