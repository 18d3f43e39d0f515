"""What of workspaces, logical clusters and bindings nobody but the server may change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skerry.server.workspaces.authorization import in_required_groups
from tests.kit.server.hub import (
    BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    EXPORTS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    export,
    in_hub,
    provider,
    workspace,
)

MERGE = {"content_type": "application/merge-patch+json"}
REQUIRED = "authorization.kcp.io/required-groups"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def _annotated(**annotations: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}}


@in_hub
async def test_an_administrator_cannot_say_what_the_server_says(hub: Hub) -> None:
    org = await hub.workspace("root", "org", admin="alice")
    itself = f"/clusters/{org}{CLUSTERS}/cluster"
    for name, value in (
        ("internal.tenancy.kcp.io/type", "root:root"),
        ("kcp.io/path", "root:else"),
        ("experimental.tenancy.kcp.io/owner", '{"username":"bob"}'),
        (REQUIRED, "none"),
    ):
        reply = await hub.ask("alice", "PATCH", itself, _annotated(**{name: value}), **MERGE)
        assert reply.status == 403
        assert f'modification of reserved annotation: "{name}"' in reply.body["message"]
    label = {"metadata": {"labels": {"tenancy.kcp.io/phase": "Initializing"}}}
    reply = await hub.ask("alice", "PATCH", itself, label, **MERGE)
    assert 'modification of reserved label: "tenancy.kcp.io/phase"' in reply.body["message"]


@in_hub
async def test_what_a_replacement_leaves_out_stays(hub: Hub) -> None:
    made = await hub.create("root", WORKSPACES, workspace("org"))
    replacement = workspace("org", made["spec"])
    replacement["metadata"] |= {
        "resourceVersion": made["metadata"]["resourceVersion"],
        "annotations": {"mine": "yes"},
    }
    path = f"/clusters/root{WORKSPACES}/org"
    reply = await hub.ask("kcp-admin", "PUT", path, replacement)
    assert reply.status == 200, reply.body
    metadata = reply.body["metadata"]
    assert metadata["annotations"] == made["metadata"]["annotations"] | {"mine": "yes"}
    assert metadata["labels"] == made["metadata"]["labels"]
    assert metadata["finalizers"] == ["core.kcp.io/logicalcluster"]


@in_hub
async def test_the_servers_finalizer_is_not_a_persons_to_take_off(hub: Hub) -> None:
    await provider(hub, await hub.workspace("root", "shop"))
    user = await hub.workspace("root", "user")
    await hub.create(user, BINDINGS, binding("w", "root:shop", "widgets"))
    held = {"metadata": {"finalizers": ["apis.kcp.io/apibinding-finalizer", "example.io/mine"]}}
    path = f"/clusters/{user}{BINDINGS}/w"
    assert (await hub.ask("kcp-admin", "PATCH", path, held, **MERGE)).status == 200
    none = {"metadata": {"finalizers": ["example.io/mine"]}}
    reply = await hub.ask("kcp-admin", "PATCH", path, none, **MERGE)
    assert reply.body["metadata"]["finalizers"] == [
        "example.io/mine",
        "apis.kcp.io/apibinding-finalizer",
    ]


@in_hub
async def test_a_workspace_that_is_going_cannot_be_let_go_of_by_hand(hub: Hub) -> None:
    org = await hub.workspace("root", "org")
    stuck = {"apiVersion": "v1", "kind": "ConfigMap",
             "metadata": {"name": "stuck", "finalizers": ["example.io/mine"]}}  # fmt: skip
    await hub.create(org, CONFIG_MAPS, stuck)
    path = f"/clusters/root{WORKSPACES}/org"
    await hub.ask("kcp-admin", "DELETE", path)
    reply = await hub.ask("kcp-admin", "PATCH", path, {"metadata": {"finalizers": None}}, **MERGE)
    assert reply.status == 403
    wanted = "removing the finalizer core.kcp.io/logicalcluster is forbidden"
    assert wanted in reply.body["message"]


@in_hub
async def test_what_only_privileged_users_set_is_refused_in_kcps_words(hub: Hub) -> None:
    for field, shown in (("cluster", "Cluster"), ("URL", "URL")):
        obj = workspace("org", {field: "https://else"})
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{WORKSPACES}", obj)
        assert reply.status == 403
        wanted = f"spec.{shown} can only be set by system privileged users"
        assert reply.body["message"].endswith(wanted)
    await hub.workspace("root", "org")
    path = f"/clusters/root{WORKSPACES}/org"
    for spec, status, why in (
        ({"cluster": None}, 403, "spec.cluster cannot be unset"),
        ({"cluster": "root"}, 422, "cluster is immutable"),
        ({"URL": "https://else"}, 403, "spec.URL can only be changed by system privileged users"),
    ):
        reply = await hub.ask("kcp-admin", "PATCH", path, {"spec": spec}, **MERGE)
        assert (reply.status, reply.body["message"].endswith(why)) == (status, True), reply.body


# -- required groups -------------------------------------------------------------------------


@in_hub
async def test_required_groups_close_a_workspace_and_all_that_are_made_in_it(hub: Hub) -> None:
    org = await hub.workspace("root", "org", admin="alice")
    namespaces = f"/clusters/{org}/api/v1/namespaces"
    assert (await hub.ask("alice", "GET", namespaces)).status == 200
    itself = f"/clusters/{org}{CLUSTERS}/cluster"
    closed = _annotated(**{REQUIRED: "team-a,team-b;team-c"})
    assert (await hub.ask("shard-admin", "PATCH", itself, closed, **MERGE)).status == 200
    assert (await hub.ask("alice", "GET", namespaces)).status == 403
    # Administrators of everything get in, and what they make there is as closed.
    child = await hub.create(org, WORKSPACES, workspace("child"))
    assert child["metadata"]["annotations"][REQUIRED] == "team-a,team-b;team-c"
    inner = await hub.get(child["spec"]["cluster"], f"{CLUSTERS}/cluster")
    assert inner["metadata"]["annotations"][REQUIRED] == "team-a,team-b;team-c"


@in_hub
async def test_only_masters_choose_other_required_groups(hub: Hub) -> None:
    wanted = workspace("w1")
    wanted["metadata"]["annotations"] = {REQUIRED: "a"}
    made = await hub.create("root", WORKSPACES, wanted)
    assert REQUIRED not in made["metadata"]["annotations"]
    wanted["metadata"]["name"] = "w2"
    made = await hub.create("root", WORKSPACES, wanted, user="shard-admin")
    assert made["metadata"]["annotations"][REQUIRED] == "a"


@pytest.mark.parametrize(
    ("required", "groups", "allowed"),
    [
        (None, [], True),
        ("a", [], False),
        ("a", ["a"], True),
        ("a,b", ["a"], False),
        ("a,b", ["b", "a", "c"], True),
        ("a,b;c", ["c"], True),
        ("a,b;c", ["b"], False),
        ("", ["a"], False),
        ("a", ["system:kcp:admin"], True),
    ],
)
def test_semicolons_are_or_and_commas_are_and(
    required: str | None, groups: list[str], allowed: bool
) -> None:
    assert in_required_groups(required, groups) is allowed


# -- types that bind -------------------------------------------------------------------------


@in_hub
async def test_who_chooses_a_type_accepts_what_its_exports_claim(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    claim = {"group": "", "resource": "configmaps", "all": True}
    await provider(hub, shop, permissionClaims=[claim])
    kind = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": "shopping"},
        "spec": {"defaultAPIBindings": [{"path": "root:shop", "export": "widgets"}]},
    }
    await hub.create("root", "/apis/tenancy.kcp.io/v1alpha1/workspacetypes", kind)
    user = await hub.workspace("root", "user", "shopping")
    (made,) = (await hub.get(user, BINDINGS))["items"]
    assert made["spec"]["permissionClaims"] == [{**claim, "state": "Accepted"}]
    view = f"/services/apiexport/{shop}/widgets/clusters/*/api/v1/configmaps"
    reply = await hub.ask("kcp-admin", "GET", view)
    clusters = {i["metadata"]["annotations"]["kcp.io/cluster"] for i in reply.body["items"]}
    assert clusters == {user}


@in_hub
async def test_of_two_exports_that_offer_the_same_a_type_binds_the_first(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await provider(hub, shop)
    await hub.create(shop, EXPORTS, export("again", "v1.widgets.example.io"))
    wanted = [{"path": "root:shop", "export": name} for name in ("widgets", "again")]
    kind = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": "shopping"},
        "spec": {"defaultAPIBindings": wanted},
    }
    await hub.create("root", "/apis/tenancy.kcp.io/v1alpha1/workspacetypes", kind)
    user = await hub.workspace("root", "user", "shopping")
    second, first = (await hub.get(user, BINDINGS))["items"]
    assert (first["status"]["phase"], second["status"]["phase"]) == ("Bound", "Binding")
    message = second["status"]["conditions"][0]["message"]
    name = first["metadata"]["name"]
    assert (
        f'naming conflict with APIBinding "{name}" bound to APIExport root:shop:widgets' in message
    )
