"""A ServiceAccount is one workspace's: elsewhere it is a foreign principal.

Each test lets a tenant do everything in workspaces of their own, and tries to turn that into a
right in another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    CONFIG_MAPS,
    EXPORTS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    config_map,
    in_hub,
    provider,
    running_hub,
    widget,
    workspace,
)
from tests.kit.server.tenants import (
    ALL,
    BIND,
    ENTER,
    USE,
    account,
    allow,
    granted,
    group,
    home,
    robot,
    shop,
    user,
)

SLICES = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices"
REVIEWS = "/apis/authorization.k8s.io/v1"
WANTED = binding("w", "root:org:shop", "widgets")


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


async def test_a_user_without_rights_cannot_deploy_through_an_account_of_hers(
    tmp_path: Path,
) -> None:
    async with running_hub(tmp_path, edge_provider=True) as hub:
        mine = await home(hub, "alice")
        token = await robot(hub, mine, "alice")
        for asking in ("alice", token):
            for path, name in (("root:espw", "edge.kcp.io"), ("root:compute", "kubernetes"),
                               ("root:compute", "batch")):  # fmt: skip
                reply = await hub.ask(
                    asking, "POST", f"/clusters/{mine}{BINDINGS}", binding("b", path, name)
                )
                assert reply.status == 403, (asking, path, reply.body)
                assert "no permission to bind" in reply.body["message"]


async def test_the_edge_exports_are_bound_by_their_groups_only(tmp_path: Path) -> None:
    users = 'carol-token,carol,carol,"edge.kcp.io:binders"\ndan-token,dan,dan,"compute:binders"\n'
    async with running_hub(tmp_path, edge_provider=True, users=users) as hub:
        await hub.workspace("root", "org")
        cases: list[tuple[str, str, str, int]] = []
        for name, edge, compute in (("carol", 201, 403), ("dan", 403, 201), ("bob", 403, 403)):
            cases += [(name, "root:espw", "edge.kcp.io", edge),
                      (name, "root:compute", "kubernetes", compute),
                      (name, "root:compute", "apps", compute)]  # fmt: skip
            hub.tokens.setdefault(name, f"{name}-token")
            await hub.workspace("root:org", name, admin=name)
        for name, path, exported, wanted in cases:
            reply = await hub.ask(
                name, "POST", f"/clusters/root:org:{name}{BINDINGS}",
                binding(exported, path, exported),
            )  # fmt: skip
            assert reply.status == wanted, (name, exported, reply.body)


@in_hub
async def test_an_account_gets_nothing_from_groups_of_another_workspace(hub: Hub) -> None:
    everybody = [group("system:authenticated"), group("system:serviceaccounts"),
                 group("system:serviceaccounts:default"), account("robot"),
                 user("system:serviceaccount:default:robot")]  # fmt: skip
    await shop(hub, *everybody)
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    assert (await hub.ask(token, "POST", f"/clusters/{mine}{BINDINGS}", WANTED)).status == 403
    endpoints = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice",
                 "metadata": {"name": "s"},
                 "spec": {"export": {"path": "root:org:shop", "name": "widgets"}}}  # fmt: skip
    assert (await hub.ask(token, "POST", f"/clusters/{mine}{SLICES}", endpoints)).status == 403
    assert (await hub.ask("alice", "POST", f"/clusters/{mine}{SLICES}", endpoints)).status == 201
    assert (await hub.ask("alice", "POST", f"/clusters/{mine}{BINDINGS}", WANTED)).status == 201


@in_hub
async def test_an_account_has_what_its_qualified_name_was_granted_and_its_twin_has_not(
    hub: Hub,
) -> None:
    a, b = await home(hub, "alice"), await home(hub, "bob")
    tokens = {a: await robot(hub, a, "alice"), b: await robot(hub, b, "bob")}
    await shop(hub, user(f"system:kcp:serviceaccount:{a}:default:robot"))
    for _ in range(2):
        # Asked in turns, so that nothing that is remembered of one counts for the other.
        for cluster, wanted in ((a, (201, 409)), (b, (403,)), (a, (409,))):
            reply = await hub.ask(tokens[cluster], "POST", f"/clusters/{cluster}{BINDINGS}", WANTED)
            assert reply.status in wanted, (cluster, reply.body)


@in_hub
async def test_the_providers_own_account_of_that_name_keeps_its_rights(hub: Hub) -> None:
    where = await shop(hub, account("robot"))
    token = await robot(hub, where, "kcp-admin")
    assert (await hub.ask(token, "GET", f"/clusters/{where}{EXPORTS}/widgets")).status == 200
    assert (await hub.ask(token, "POST", f"/clusters/{where}{BINDINGS}", WANTED)).status == 201


@pytest.mark.parametrize("reference", ["path", "cluster"])
async def test_however_the_export_is_named_the_answer_is_the_same(
    tmp_path: Path, reference: str
) -> None:
    async with running_hub(tmp_path) as hub:
        where = await shop(hub, group("system:authenticated"))
        mine = await home(hub, "alice")
        token = await robot(hub, mine, "alice")
        path = "root:org:shop" if reference == "path" else where
        for door in (f"/clusters/{mine}", "/clusters/user:alice", ""):
            reply = await hub.ask(token, "POST", f"{door}{BINDINGS}", binding("w", path, "widgets"))
            assert reply.status == 403, (door, reply.body)


@in_hub
async def test_an_account_uses_no_type_of_another_workspace_ungranted(hub: Hub) -> None:
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    child = workspace("child", {"type": {"name": "universal", "path": "root"}})
    assert (await hub.ask("alice", "POST", f"/clusters/{mine}{WORKSPACES}", child)).status == 201
    for name in ("universal", "home", ""):
        kind = {"type": {"name": name, "path": "root"}} if name else {}
        reply = await hub.ask(
            token, "POST", f"/clusters/{mine}{WORKSPACES}", workspace("other", kind)
        )
        assert reply.status == 403, (name, reply.body)


@in_hub
async def test_a_workspace_that_an_account_creates_is_not_its_twins(hub: Hub) -> None:
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    name = f"system:kcp:serviceaccount:{mine}:default:robot"
    await allow(hub, "root", "robot-uses", [USE, ENTER, BIND], user(name))
    made = (await hub.ask(token, "POST", f"/clusters/{mine}{WORKSPACES}", workspace("c"))).body
    cluster = made["spec"]["cluster"]
    annotations = made["metadata"]["annotations"]
    assert annotations["experimental.tenancy.kcp.io/owner"] == f'{{"username":"{name}"}}'
    admins = await hub.get(cluster, f"{BINDERS}/workspace-admin")
    assert [each["name"] for each in admins["subjects"]] == [name]
    # An account of the same name there is somebody else.
    asked: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
             "spec": {"user": "system:serviceaccount:default:robot",
                      "resourceAttributes": {"verb": "get", "resource": "secrets"}}}  # fmt: skip
    review = await hub.create(cluster, f"{REVIEWS}/subjectaccessreviews", asked)
    assert review["status"]["allowed"] is False
    asked["spec"]["user"] = name
    review = await hub.create(cluster, f"{REVIEWS}/subjectaccessreviews", asked)
    assert review["status"]["allowed"] is True


@in_hub
async def test_a_policy_bounds_accounts_by_their_qualified_names(hub: Hub) -> None:
    where = await shop(hub, group("system:authenticated"), maximalPermissionPolicy={"local": {}})
    bound = "apis.kcp.io:binding:"
    groups = ("system:authenticated", "system:serviceaccounts", "system:masters")
    twins = [group(f"{bound}{name}") for name in groups]
    twins.append(user(f"{bound}system:serviceaccount:default:robot"))
    await allow(hub, where, "max", [ALL], *twins)
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    await hub.create(mine, BINDINGS, WANTED, "alice")
    assert (await hub.ask("alice", "POST", f"/clusters/{mine}{WIDGETS}", widget("a"))).status == 201
    reply = await hub.ask(token, "POST", f"/clusters/{mine}{WIDGETS}", widget("b"))
    assert reply.status == 403, reply.body
    assert (await hub.ask(token, "GET", f"/clusters/{mine}{WIDGETS}")).status == 403
    name = f"{bound}system:kcp:serviceaccount:{mine}:default:robot"
    await hub.create(where, BINDERS, granted("robot", "max", user(name)))
    assert (await hub.ask(token, "POST", f"/clusters/{mine}{WIDGETS}", widget("b"))).status == 201


@in_hub
async def test_a_policy_bounds_whoever_writes_what_edges_report(hub: Hub) -> None:
    """The summarizer writes as ``kcp-admin``: an exporter's status is not an edge's to give."""
    where = await shop(hub, group("system:authenticated"), maximalPermissionPolicy={"local": {}})
    everything = {"apiGroups": ["example.io"], "resources": ["widgets"], "verbs": ["*"]}
    await allow(hub, where, "max", [everything], group("apis.kcp.io:binding:system:authenticated"))
    mine = await home(hub, "alice")
    await hub.create(mine, BINDINGS, WANTED, "alice")
    await hub.create(mine, WIDGETS, widget("a"), "alice")
    status = f"/clusters/{mine}{WIDGETS}/a/status"
    change = {"status": {"phase": "x"}}
    for who in ("alice", "kcp-admin"):
        reply = await hub.ask(
            who, "PATCH", status, change, content_type="application/merge-patch+json"
        )
        assert reply.status == 403, (who, reply.body)


@in_hub
async def test_a_policy_may_leave_it_to_the_workspaces_that_bind(hub: Hub) -> None:
    where = await shop(hub, group("system:authenticated"), maximalPermissionPolicy={"local": {}})
    await allow(hub, where, "max", [ALL], group("apis.kcp.io:binding:system:kcp:scoped"))
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    await hub.create(mine, BINDINGS, WANTED, "alice")
    assert (await hub.ask(token, "POST", f"/clusters/{mine}{WIDGETS}", widget("b"))).status == 201
    assert (await hub.ask("alice", "POST", f"/clusters/{mine}{WIDGETS}", widget("a"))).status == 403


@in_hub
async def test_an_edge_account_still_writes_what_the_compute_export_brings(hub: Hub) -> None:
    await hub.workspace("root", "org")
    mine = await hub.workspace("root:org", "mailbox")
    token = await robot(hub, mine, "kcp-admin")
    await hub.create(mine, BINDINGS, binding("bind-kube", "root:compute", "kubernetes"))
    path = f"/clusters/{mine}/apis/apps/v1/namespaces/default/deployments"
    assert (await hub.ask(token, "GET", path)).status == 200


@in_hub
async def test_views_do_not_take_an_account_for_its_twin(hub: Hub) -> None:
    """The exporter's account writes in a consumer's workspace, where an equal name is admin."""
    claims = [{"group": "rbac.authorization.k8s.io", "resource": "clusterrolebindings",
               "all": True}]  # fmt: skip
    where = await shop(hub, group("system:authenticated"), permissionClaims=claims)
    token = await robot(hub, where, "kcp-admin")
    mine = await home(hub, "alice")
    await robot(hub, mine, "alice")
    accepted = [{**each, "state": "Accepted"} for each in claims]
    await hub.create(
        mine, BINDINGS, binding("w", "root:org:shop", "widgets", permissionClaims=accepted),
        "alice",
    )  # fmt: skip
    view = f"/services/apiexport/{where}/widgets/clusters/{mine}"
    assert (await hub.ask(token, "GET", f"{view}{BINDERS}")).status == 200
    forged = granted("forged", "cluster-admin", user("mallory"))
    reply = await hub.ask(token, "POST", f"{view}{BINDERS}", forged)
    assert reply.status == 403, reply.body
    assert "not currently held" in reply.body["message"]


@in_hub
async def test_reviews_say_of_an_account_what_holds_where_they_are_asked(hub: Hub) -> None:
    a, b = await home(hub, "alice"), await home(hub, "bob")
    token = await robot(hub, a, "alice")
    await robot(hub, b, "bob")
    asked: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
             "spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}}  # fmt: skip
    own = await hub.ask(token, "POST", f"/clusters/{a}{REVIEWS}/selfsubjectaccessreviews", asked)
    assert own.body["status"]["allowed"] is True
    name = f"system:kcp:serviceaccount:{a}:default:robot"
    for subject, allowed in (("system:serviceaccount:default:robot", True), (name, False)):
        other: dict[str, Any] = {**asked, "kind": "SubjectAccessReview"}
        other["spec"] = {**asked["spec"], "user": subject}
        reply = await hub.create(b, f"{REVIEWS}/subjectaccessreviews", other, "bob")
        assert reply["status"]["allowed"] is allowed, subject


@in_hub
async def test_a_deleted_account_ends_the_streams_of_nobody_else(hub: Hub) -> None:
    a, b = await home(hub, "alice"), await home(hub, "bob")
    tokens = {a: await robot(hub, a, "alice"), b: await robot(hub, b, "bob")}
    kept = await hub.watch(tokens[b], f"/clusters/{b}{CONFIG_MAPS}?watch=true")
    await hub.ask(
        "alice", "DELETE", f"/clusters/{a}/api/v1/namespaces/default/serviceaccounts/robot"
    )
    assert (await hub.ask(tokens[a], "GET", f"/clusters/{a}{CONFIG_MAPS}")).status == 401
    assert (await hub.ask(tokens[b], "GET", f"/clusters/{b}{CONFIG_MAPS}")).status == 200
    await hub.create(b, CONFIG_MAPS, config_map("later"), "bob")
    names: set[str] = set()
    while "later" not in names:
        names.add((await kept.lines.get())["object"]["metadata"]["name"])


async def test_no_credential_of_the_hub_takes_the_name_of_a_scoped_principal(
    tmp_path: Path,
) -> None:
    reserved = ("system:serviceaccount:default:robot", "system:kcp:serviceaccount:x:default:robot",
                "system:kcp:user:x:bob", "system:serviceaccount:")  # fmt: skip
    users = "".join(f"token-{i},{name},{i}\n" for i, name in enumerate(reserved))
    users += 'token-g,eve,9,"system:serviceaccounts"\n'
    async with running_hub(tmp_path, users=users) as hub:
        for token in ("token-0", "token-1", "token-2", "token-3", "token-g"):
            reply = await hub.ask(token, "GET", "/clusters/root/api")
            assert reply.status == 401, (token, reply.body)
        assert (await hub.ask("bob", "GET", "/clusters/root/api")).status == 200


@in_hub
async def test_a_right_to_bind_is_asked_in_ones_own_workspace_too(hub: Hub) -> None:
    """Also an export beside the binding is somebody's to offer."""
    await hub.workspace("root", "org")
    where = await hub.workspace("root:org", "w", admin="alice")
    await provider(hub, where)
    await allow(hub, where, "some", [
        {"apiGroups": ["apis.kcp.io"], "resources": ["apibindings"], "verbs": ["create"]}, ENTER,
    ], user("bob"))  # fmt: skip
    for path in ("", "root:org:w", where):
        reply = await hub.ask(
            "bob", "POST", f"/clusters/{where}{BINDINGS}", binding("w", path, "widgets")
        )
        assert reply.status == 403, (path, reply.body)
    reply = await hub.ask("alice", "POST", f"/clusters/{where}{BINDINGS}",
                          binding("w", "", "widgets"))  # fmt: skip
    assert reply.status == 201, reply.body
