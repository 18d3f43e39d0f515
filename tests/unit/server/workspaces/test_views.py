"""Views and claims give nobody more than the type's own exporter, and the workspace, let them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skerry.store.open import StoreSettings
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    CONFIG_MAPS,
    EXPORTS,
    SCHEMAS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    export,
    in_hub,
    running_hub,
    schema,
    widget,
    workspace,
)
from tests.kit.server.tenants import (
    ACCOUNTS,
    ENTER,
    TYPES,
    USE,
    allow,
    granted,
    group,
    home,
    robot,
    shop,
    user,
)

GADGETS = "/apis/example.io/v1/gadgets"
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


async def claiming(hub: Hub, mine: str, *claims: dict[str, Any]) -> str:
    """Make alice an exporter who claims, and a consumer who accepts; return her view."""
    await hub.create(mine, SCHEMAS, schema("gadgets"), "alice")
    claimed = list(claims)
    await hub.create(
        mine, EXPORTS, export("gadgets", "v1.gadgets.example.io", permissionClaims=claimed),
        "alice",
    )  # fmt: skip
    accepted = [{**claim, "state": "Accepted"} for claim in claimed]
    await hub.create(
        mine, BINDINGS, binding("g", mine, "gadgets", permissionClaims=accepted), "alice"
    )
    return f"/services/apiexport/{mine}/gadgets/clusters"


async def widgets_identity(hub: Hub, where: str) -> str:
    found = await hub.get(where, f"{EXPORTS}/widgets")
    return str(found["status"]["identityHash"])


@in_hub
async def test_a_claim_brings_no_type_that_the_workspace_does_not_bind(hub: Hub) -> None:
    """Else a claim, made and accepted by oneself, would be as good as the right to bind."""
    where = await shop(hub)
    theirs = await home(hub, "bob")
    await hub.create(theirs, BINDINGS, binding("w", "root:org:shop", "widgets"))
    await hub.create(theirs, WIDGETS, widget("bobs"), "bob")
    mine = await home(hub, "alice")
    claim = {"group": "example.io", "resource": "widgets", "all": True,
             "identityHash": await widgets_identity(hub, where)}  # fmt: skip
    view = await claiming(hub, mine, claim)
    before = await hub.keys()
    for method, path, body in (
        ("POST", WIDGETS, widget("w")),
        ("PUT", f"{WIDGETS}/w", widget("w")),
        ("PATCH", f"{WIDGETS}/w?fieldManager=x&force=true", widget("w")),
        ("GET", f"{WIDGETS}/w", None),
        ("DELETE", f"{WIDGETS}/w", None),
        ("POST", f"{WIDGETS}", widget("bobs")),
    ):
        for cluster in (mine, theirs, "user:alice"):
            headers = {"content_type": "application/apply-patch+yaml"} if method == "PATCH" else {}
            reply = await hub.ask("alice", method, f"{view}/{cluster}{path}", body, **headers)
            assert reply.status in (403, 404), (method, cluster, reply.body)
    listed = await hub.ask("alice", "GET", f"{view}/*{WIDGETS}")
    assert listed.status in (200, 403)
    assert not listed.body.get("items")
    assert await hub.keys() == before
    # With the type bound, the claim shows its objects.
    await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"))
    reply = await hub.ask("alice", "POST", f"{view}/{mine}{WIDGETS}", widget("w"))
    assert reply.status == 201, reply.body


@in_hub
async def test_a_claim_reaches_no_further_than_the_exporters_policy(hub: Hub) -> None:
    where = await shop(hub, maximalPermissionPolicy={"local": {}})
    read = {"apiGroups": ["example.io"], "resources": ["widgets"], "verbs": ["get", "list"]}
    await allow(hub, where, "max", [read], group("apis.kcp.io:binding:system:authenticated"))
    mine = await home(hub, "alice")
    await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"))
    claim = {"group": "example.io", "resource": "widgets", "all": True,
             "identityHash": await widgets_identity(hub, where)}  # fmt: skip
    view = await claiming(hub, mine, claim)
    assert (await hub.ask("alice", "POST", f"/clusters/{mine}{WIDGETS}", widget("w"))).status == 403
    for cluster in (mine, "*"):
        assert (await hub.ask("alice", "GET", f"{view}/{cluster}{WIDGETS}")).status == 200
        for method, path, body in (("POST", WIDGETS, widget("w")), ("DELETE", WIDGETS, None),
                                   ("PATCH", f"{WIDGETS}/w", {})):  # fmt: skip
            reply = await hub.ask("alice", method, f"{view}/{cluster}{path}", body, **MERGE)
            assert reply.status == 403, (method, cluster, reply.body)
    token = await robot(hub, mine, "alice")
    # Her account is not even among those who may read.
    for cluster in (mine, "*"):
        assert (await hub.ask(token, "GET", f"{view}/{cluster}{WIDGETS}")).status == 403
    assert (await hub.ask(token, "GET", f"{view}/{mine}{GADGETS}")).status == 200


@in_hub
async def test_an_exporters_policy_does_not_bound_its_own_view(hub: Hub) -> None:
    where = await shop(hub, group("system:authenticated"), maximalPermissionPolicy={"local": {}})
    token = await robot(hub, where, "kcp-admin")
    mine = await home(hub, "alice")
    await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"), "alice")
    view = f"/services/apiexport/{where}/widgets/clusters"
    assert (await hub.ask("alice", "POST", f"/clusters/{mine}{WIDGETS}", widget("w"))).status == 403
    assert (await hub.ask(token, "POST", f"{view}/{mine}{WIDGETS}", widget("w"))).status == 201
    assert (await hub.ask(token, "GET", f"{view}/*{WIDGETS}")).status == 200


@in_hub
async def test_a_binding_is_to_the_workspace_that_let_it_not_to_a_path(hub: Hub) -> None:
    """Who may bind what is at a path now has no right to what comes there later."""
    await shop(hub, group("system:authenticated"))
    mine = await home(hub, "alice")
    wanted = binding("w", "root:org:shop", "widgets")
    await hub.create(mine, BINDINGS, wanted, "alice")
    await hub.ask("kcp-admin", "DELETE", f"/clusters/root:org{WORKSPACES}/shop")
    await hub.gone("root:org", f"{WORKSPACES}/shop")
    secret = await hub.workspace("root:org", "shop")
    await hub.create(secret, SCHEMAS, schema(prefix="v2"))
    await hub.create(secret, EXPORTS, export("widgets", "v2.widgets.example.io"))
    identity = await widgets_identity(hub, secret)
    # Neither by itself, nor when the binding is written again.
    for _ in range(2):
        found = await hub.until(
            mine, f"{BINDINGS}/w", "status", "conditions", 1, "reason", "APIExportNotFound"
        )
        assert identity not in str(found)
        change = {"metadata": {"labels": {"touched": "yes"}}}
        path = f"/clusters/{mine}{BINDINGS}/w"
        assert (await hub.ask("alice", "PATCH", path, change, **MERGE)).status == 200
    mark = {"metadata": {"labels": {"internal.apis.kcp.io/export": "forged"}}}
    assert (await hub.ask("alice", "PATCH", path, mark, **MERGE)).status == 403
    again = binding("v", "root:org:shop", "widgets")
    assert (await hub.ask("alice", "POST", f"/clusters/{mine}{BINDINGS}", again)).status == 403


@in_hub
async def test_claimed_accounts_are_seen_without_their_tokens(hub: Hub) -> None:
    mine = await home(hub, "alice")
    view = await claiming(hub, mine, {"group": "", "resource": "serviceaccounts", "all": True})
    await robot(hub, mine, "alice")
    assert (await hub.ask("alice", "GET", f"{view}/{mine}{ACCOUNTS}/robot")).status == 200
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    reply = await hub.ask("alice", "POST", f"{view}/{mine}{ACCOUNTS}/robot/token", asked)
    assert reply.status == 404, reply.body


@in_hub
async def test_a_workspace_made_through_a_view_is_made_with_ones_own_rights(hub: Hub) -> None:
    """The exporter's account is a foreign principal for types, wherever it creates workspaces."""
    tenancy = (await hub.get("root", f"{EXPORTS}/tenancy.kcp.io"))["status"]["identityHash"]
    where = await shop(
        hub, group("system:authenticated"),
        permissionClaims=[{"group": "tenancy.kcp.io", "resource": "workspaces", "all": True,
                           "identityHash": tenancy}],
    )  # fmt: skip
    token = await robot(hub, where, "kcp-admin")
    theirs = await home(hub, "bob")
    accepted = [{"group": "tenancy.kcp.io", "resource": "workspaces", "all": True,
                 "identityHash": tenancy, "state": "Accepted"}]  # fmt: skip
    await hub.create(
        theirs, BINDINGS, binding("w", "root:org:shop", "widgets", permissionClaims=accepted),
        "bob",
    )  # fmt: skip
    view = f"/services/apiexport/{where}/widgets/clusters/{theirs}"
    assert (await hub.ask(token, "GET", f"{view}{WORKSPACES}")).status == 200
    reply = await hub.ask(token, "POST", f"{view}{WORKSPACES}", workspace("c"))
    assert reply.status == 403, reply.body
    name = f"system:kcp:serviceaccount:{where}:default:robot"
    await allow(hub, "root", "uses", [USE, ENTER], user(name))
    reply = await hub.ask(token, "POST", f"{view}{WORKSPACES}", workspace("c"))
    assert reply.status == 201, reply.body
    admins = await hub.get(reply.body["spec"]["cluster"], f"{BINDERS}/workspace-admin")
    assert [each["name"] for each in admins["subjects"]] == [name]


@in_hub
async def test_an_account_sees_the_view_of_its_own_workspaces_export_only(hub: Hub) -> None:
    where = await shop(hub, group("system:authenticated"))
    own = await robot(hub, where, "kcp-admin")
    mine = await home(hub, "alice")
    twin = await robot(hub, mine, "alice")
    view = f"/services/apiexport/{where}/widgets/clusters/*{WIDGETS}"
    assert (await hub.ask(own, "GET", view)).status == 200
    for asking in (twin, "alice"):
        assert (await hub.ask(asking, "GET", view)).status in (401, 403)
    # Impersonating the exporter's account at home does not open it either.
    for door in (view, f"/clusters/{mine}{CONFIG_MAPS}"):
        reply = await hub.ask(
            "alice", "GET", door, impersonate_user="system:serviceaccount:default:robot"
        )
        assert reply.status == (403 if door == view else 200), (door, reply.body)


@in_hub
async def test_a_watch_of_an_initializer_lasts_as_long_as_its_right(hub: Hub) -> None:
    mine = await home(hub, "alice")
    universal = {"with": [{"name": "universal", "path": "root"}]}
    kind = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
            "metadata": {"name": "slow"},
            "spec": {"extend": universal, "initializer": True}}  # fmt: skip
    await hub.create(mine, TYPES, kind, "alice")
    initialize = {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"],
                  "verbs": ["initialize"]}  # fmt: skip
    await allow(hub, mine, "helper", [initialize, ENTER], user("bob"))
    made = await hub.create(
        mine, WORKSPACES, workspace("c", {"type": {"name": "slow", "path": mine}}), "alice"
    )
    cluster = made["spec"]["cluster"]
    path = f"/services/initializingworkspaces/{mine}:slow/clusters/{cluster}{CONFIG_MAPS}"
    version = (await hub.ask("bob", "GET", path)).body["metadata"]["resourceVersion"]
    watch = await hub.watch("bob", f"{path}?watch=true&resourceVersion={version}")
    # A change of rights that takes nothing from anybody ends nothing.
    await hub.create(mine, BINDERS, granted("other", "cluster-admin", user("carol")), "alice")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "still"}}
    assert (await hub.ask("bob", "POST", path, body)).status == 201
    assert (await watch.lines.get())["object"]["metadata"]["name"] == "still"
    # Without the right to initialize there is no acting for the owner.
    await hub.ask("alice", "DELETE", f"/clusters/{mine}{BINDERS}/helper")
    body["metadata"] = {"name": "late"}
    assert (await hub.ask("bob", "POST", path, body)).status == 403
    await hub.create(cluster, CONFIG_MAPS, body, "kcp-admin")
    await hub.settled()
    assert watch.lines.empty()


async def test_grants_of_the_version_before_are_replaced_and_edited_ones_kept(
    tmp_path: Path,
) -> None:

    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    everybody = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                  "name": "system:authenticated"}]  # fmt: skip
    edited = [*everybody, user("carol")]
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    async with running_hub(tmp_path, store, edge_provider=True) as hub:
        for where, name, subjects in (("root:espw", "edge.kcp.io:bind", everybody),
                                      ("root:compute", "kubernetes:bind", edited)):  # fmt: skip
            found = await hub.get(where, f"{BINDERS}/{name}")
            found["subjects"] = subjects
            reply = await hub.ask("shard-admin", "PUT", f"/clusters/{where}{BINDERS}/{name}", found)
            assert reply.status == 200
        old = await hub.get("root:espw", f"{roles}/edge.kcp.io:bind")
        old["rules"] += [ENTER]
        path = f"/clusters/root:espw{roles}/edge.kcp.io:bind"
        assert (await hub.ask("shard-admin", "PUT", path, old)).status == 200
    async with running_hub(tmp_path, store, edge_provider=True) as hub:
        now = await hub.get("root:espw", f"{BINDERS}/edge.kcp.io:bind")
        assert [each["name"] for each in now["subjects"]] == ["edge.kcp.io:binders"]
        rules = (await hub.get("root:espw", f"{roles}/edge.kcp.io:bind"))["rules"]
        assert [rule["verbs"] for rule in rules] == [["bind"]]
        kept = await hub.get("root:compute", f"{BINDERS}/kubernetes:bind")
        assert kept["subjects"] == edited


@in_hub
async def test_a_view_follows_everything_that_it_is_made_of(hub: Hub) -> None:
    """What it serves is worked out once for all workspaces that bind alike."""
    where = await shop(hub, group("system:authenticated"))
    first, second = await home(hub, "alice"), await home(hub, "bob")
    view = f"/services/apiexport/{where}/widgets/clusters"

    async def served(cluster: str, path: str) -> bool:
        return (await hub.ask("kcp-admin", "GET", f"{view}/{cluster}{path}")).status == 200

    assert not await served(first, WIDGETS)
    for mine in (first, second):
        await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"))
        assert await served(mine, WIDGETS)
    assert not await served("*", GADGETS)
    await hub.create(where, SCHEMAS, schema("gadgets"))
    offered = export("widgets", "v1.widgets.example.io", "v1.gadgets.example.io")
    patch = {"spec": offered["spec"]}
    await hub.ask("kcp-admin", "PATCH", f"/clusters/{where}{EXPORTS}/widgets", patch, **MERGE)
    assert await served("*", GADGETS)
    every = CONFIG_MAPS.replace("/namespaces/default", "")
    assert not await served("*", every)
    claim = {"spec": {"permissionClaims": [{"group": "", "resource": "configmaps", "all": True}]}}
    await hub.ask("kcp-admin", "PATCH", f"/clusters/{where}{EXPORTS}/widgets", claim, **MERGE)
    assert await served("*", every)
