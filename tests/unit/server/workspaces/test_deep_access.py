"""Rights to another workspace's exports and types are asked of its RBAC, not of its door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    CONFIG_MAPS,
    DEFINITIONS,
    EXPORTS,
    SCHEMAS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    definition,
    export,
    in_hub,
    schema,
    widget,
    workspace,
)
from tests.kit.server.tenants import (
    ALL,
    BIND,
    TYPES,
    USE,
    account,
    allow,
    group,
    home,
    robot,
    shop,
    user,
)

MERGE = {"content_type": "application/merge-patch+json"}
SLICES = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def endpoint_slice(name: str) -> dict[str, Any]:
    return {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice",
            "metadata": {"name": name},
            "spec": {"export": {"path": "root:org:shop", "name": "widgets"}}}  # fmt: skip


def kind(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
            "metadata": {"name": name}, "spec": spec}  # fmt: skip


# -- bind and use without access -------------------------------------------------------------


@in_hub
async def test_who_may_bind_needs_no_access_to_the_providers_workspace(hub: Hub) -> None:
    where = await shop(hub)
    mine = await home(hub, "alice")
    doors = ((BINDINGS, binding("w", "root:org:shop", "widgets")), (SLICES, endpoint_slice("s")))
    for path, obj in doors:
        reply = await hub.ask("alice", "POST", f"/clusters/{mine}{path}", obj)
        assert reply.status == 403, reply.body
        assert "no permission to bind to export root:org:shop:widgets" in reply.body["message"]
    await allow(hub, where, "binders", [BIND], user("alice"))
    for path, obj in doors:
        await hub.create(mine, path, obj, "alice")
    await hub.create(mine, WIDGETS, widget("one"), "alice")
    # What was given is the API and nothing of the workspace it comes from.
    for path in (EXPORTS, CONFIG_MAPS, WIDGETS, "/api", "/"):
        reply = await hub.ask("alice", "GET", f"/clusters/{where}{path}")
        assert reply.status == 403, (path, reply.body)
    view = f"/services/apiexport/{where}/widgets/clusters/*{WIDGETS}"
    assert (await hub.ask("alice", "GET", view)).status == 403


@in_hub
async def test_who_may_use_a_type_needs_no_access_to_its_workspace(hub: Hub) -> None:
    where = await shop(hub)
    bound = [{"path": "root:org:shop", "export": "widgets"}]
    await hub.create(where, TYPES, kind("bar", defaultAPIBindings=bound))
    mine = await home(hub, "alice")
    wanted = workspace("w", {"type": {"name": "bar", "path": "root:org:shop"}})
    reply = await hub.ask("alice", "POST", f"/clusters/{mine}{WORKSPACES}", wanted)
    assert reply.status == 403
    assert "missing verb='use' permission on workspacetype" in reply.body["message"]
    await allow(hub, where, "users", [USE], user("alice"))
    made = await hub.create(mine, WORKSPACES, wanted, "alice")
    await hub.create(made["spec"]["cluster"], WIDGETS, widget("one"), "alice")
    assert (await hub.ask("alice", "GET", f"/clusters/{where}{TYPES}")).status == 403


@in_hub
async def test_without_the_door_principals_are_still_distinguished(hub: Hub) -> None:
    """What only the missing access kept from accounts and impersonated users stays theirs not."""
    where = await shop(hub)
    everybody = [group("system:authenticated"), group("system:serviceaccounts"),
                 group("system:serviceaccounts:default"), user("bob"),
                 user("system:serviceaccount:default:robot"),
                 {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]  # fmt: skip
    await allow(hub, where, "binders", [BIND, USE, ALL], *everybody)
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    wanted = binding("w", "root:org:shop", "widgets")
    path = f"/clusters/{mine}{BINDINGS}"
    for headers in ({}, {"impersonate_user": "bob"},
                    {"impersonate_user": "system:serviceaccount:default:robot"}):  # fmt: skip
        asking = token if not headers else "alice"
        reply = await hub.ask(asking, "POST", path, wanted, **headers)
        assert reply.status == 403, (headers, reply.body)
    # A user of the hub is in the group, and so may; a door was never given to anybody.
    await hub.create(mine, BINDINGS, wanted, "alice")
    assert (await hub.ask("alice", "GET", f"/clusters/{where}{CONFIG_MAPS}")).status == 403


# -- deep reviews ----------------------------------------------------------------------------


def review(who: str, verb: str = "bind", **more: Any) -> dict[str, Any]:
    asked = {"verb": verb, "group": "apis.kcp.io", "resource": "apiexports", "name": "widgets"}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": who, "resourceAttributes": asked | more}}  # fmt: skip


@in_hub
async def test_masters_ask_rbac_alone_by_a_header(hub: Hub) -> None:
    where = await shop(hub)
    await allow(hub, where, "binders", [BIND], user("alice"))
    deep = {"x_kcp_internal_deep_subjectaccessreview": "true"}
    yes = {"allowed": True, "reason": "access granted"}
    no = {"allowed": False, "reason": "access denied"}
    for asking, headers, body, wanted in (
        ("shard-admin", deep, review("alice"), yes),
        ("shard-admin", {}, review("alice"), no),
        ("shard-admin", {**deep, "x_kcp_internal_deep_subjectaccessreview": "1"},
         review("alice"), no),
        ("shard-admin", deep, review("bob"), no),
        ("shard-admin", deep, review("alice", "delete"), no),
        # Of anybody else the header is ignored.
        ("kcp-admin", deep, review("alice"), no),
    ):  # fmt: skip
        reply = await hub.ask(asking, "POST", f"/clusters/{where}{REVIEWS}", body, **headers)
        assert (reply.status, reply.body["status"]) == (201, wanted), (asking, headers, body)


@in_hub
async def test_an_account_that_says_of_which_cluster_it_is_is_not_its_namesake(hub: Hub) -> None:
    """Whoever reviews a token asks with what that says; a namesake's rights are not meant."""
    mine, other = await home(hub, "alice"), await home(hub, "bob")
    token = await robot(hub, other, "bob")
    reviewed = await hub.ask(
        "shard-admin",
        "POST",
        f"/clusters/{other}/apis/authentication.k8s.io/v1/tokenreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}},
    )
    who = reviewed.body["status"]["user"]
    assert who["extra"]["authentication.kubernetes.io/cluster-name"] == [other]
    await allow(hub, mine, "namesake", [ALL], account("robot"))
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": who["username"],
            "groups": who["groups"],
            "resourceAttributes": {"verb": "get", "resource": "configmaps"},
        },
    }
    answers = []
    extras: list[Any] = [{}, who["extra"]]
    for extra in extras:
        review["spec"]["extra"] = extra
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/{mine}{REVIEWS}", review)
        answers.append(reply.body["status"]["allowed"])
    assert answers == [True, False]


@in_hub
async def test_nobody_may_write_the_status_of_bindings_and_exports(hub: Hub) -> None:
    """Who asks whether they may gets the answer that the write would get."""
    mine = await home(hub, "alice")
    reviews = f"/clusters/{mine}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for resource in ("apibindings", "apiexports"):
        for verb, allowed in (("get", True), ("patch", False), ("update", False)):
            asked = {"verb": verb, "group": "apis.kcp.io", "resource": resource,
                     "subresource": "status"}  # fmt: skip
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": asked},
            }
            reply = await hub.ask("alice", "POST", reviews, review)
            assert reply.body["status"]["allowed"] is allowed, (resource, verb)
        path = f"/clusters/{mine}/apis/apis.kcp.io/v1alpha1/{resource}/nothing/status"
        assert (await hub.ask("alice", "PATCH", path, {"status": {}}, **MERGE)).status == 403


@in_hub
async def test_a_review_says_all_that_is_wrong_with_it(hub: Hub) -> None:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {}}
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{REVIEWS}", review)
    assert reply.status == 422
    fields = [cause["field"] for cause in reply.body["details"]["causes"]]
    assert fields == ["spec.resourceAttributes", "spec.user"]
    both = {
        "user": "a",
        "resourceAttributes": {"verb": "get"},
        "nonResourceAttributes": {"path": "/"},
    }
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{REVIEWS}", {**review, "spec": both})
    [cause] = reply.body["details"]["causes"]
    assert cause["field"] == "spec.nonResourceAttributes"


@in_hub
async def test_a_deep_review_knows_no_policy_of_exporters(hub: Hub) -> None:
    await shop(hub, group("system:authenticated"), maximalPermissionPolicy={"local": {}})
    mine = await home(hub, "alice")
    await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"), "alice")
    body = review("alice", "create", group="example.io", resource="widgets", name="")
    for value, wanted in (("true", True), ("", False)):
        reply = await hub.ask(
            "shard-admin", "POST", f"/clusters/{mine}{REVIEWS}", body,
            x_kcp_internal_deep_subjectaccessreview=value,
        )  # fmt: skip
        assert reply.body["status"]["allowed"] is wanted
    # Nor does the header open anything but reviews.
    reply = await hub.ask(
        "alice", "POST", f"/clusters/{mine}{WIDGETS}", widget("w"),
        x_kcp_internal_deep_subjectaccessreview="true",
    )  # fmt: skip
    assert reply.status == 403


# -- claims past policy ----------------------------------------------------------------------


async def claiming(hub: Hub, mine: str, identity: str) -> str:
    """Make alice an exporter who claims widgets of an identity; return her view of her home."""
    await hub.create(mine, SCHEMAS, schema("gadgets"), "alice")
    claim = {"group": "example.io", "resource": "widgets", "all": True, "identityHash": identity}
    made = export("gadgets", "v1.gadgets.example.io", permissionClaims=[claim])
    await hub.create(mine, EXPORTS, made, "alice")
    accepted = [{**claim, "state": "Accepted"}]
    await hub.create(
        mine, BINDINGS, binding("g", mine, "gadgets", permissionClaims=accepted), "alice"
    )
    return f"/services/apiexport/{mine}/gadgets/clusters"


@in_hub
async def test_a_claim_needs_every_exporter_of_the_identity_to_agree(hub: Hub) -> None:
    where = await shop(hub, group("system:authenticated"))
    identity = (await hub.get(where, f"{EXPORTS}/widgets"))["status"]["identityHash"]
    mine = await home(hub, "alice")
    await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"), "alice")
    view = await claiming(hub, mine, identity)
    assert (await hub.ask("alice", "GET", f"{view}/*{WIDGETS}")).status == 200
    assert (await hub.ask("alice", "POST", f"{view}/{mine}{WIDGETS}", widget("w"))).status == 201
    # A second export of the same key, in another workspace, that allows reading only.
    twin = await hub.workspace("root:org", "twin")
    secret = await hub.get(where, "/api/v1/namespaces/kcp-system/secrets/widgets")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keys"}}
    await hub.create(twin, "/api/v1/namespaces", space)
    copied = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "k"},
              "data": secret["data"]}  # fmt: skip
    await hub.create(twin, "/api/v1/namespaces/keys/secrets", copied)
    await hub.create(twin, SCHEMAS, schema())
    made = export("also", "v1.widgets.example.io", maximalPermissionPolicy={"local": {}},
                  identity={"secretRef": {"namespace": "keys", "name": "k"}})  # fmt: skip
    same = await hub.create(twin, EXPORTS, made)
    assert same["status"]["identityHash"] == identity
    read = {"apiGroups": ["example.io"], "resources": ["widgets"], "verbs": ["get", "list"]}
    await allow(hub, twin, "max", [read], user("apis.kcp.io:binding:alice"))
    assert (await hub.ask("alice", "GET", f"{view}/*{WIDGETS}")).status == 200
    reply = await hub.ask("alice", "POST", f"{view}/{mine}{WIDGETS}", widget("x"))
    assert reply.status == 403
    # When that one goes, the first alone decides; when both have gone, nobody can.
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{twin}{EXPORTS}/also")
    assert (await hub.ask("alice", "POST", f"{view}/{mine}{WIDGETS}", widget("y"))).status == 201
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{where}{EXPORTS}/widgets")
    for method, path, body in (("GET", f"{view}/*{WIDGETS}", None),
                               ("POST", f"{view}/{mine}{WIDGETS}", widget("z"))):  # fmt: skip
        reply = await hub.ask("alice", method, path, body)
        assert reply.status == 403, reply.body


@in_hub
async def test_a_claim_past_policy_is_refused_in_kcps_words(hub: Hub) -> None:
    where = await shop(hub, group("system:authenticated"), maximalPermissionPolicy={"local": {}})
    identity = (await hub.get(where, f"{EXPORTS}/widgets"))["status"]["identityHash"]
    mine = await home(hub, "alice")
    await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"), "alice")
    view = await claiming(hub, mine, identity)
    why = 'resource "widgets" in API group "example.io" at the cluster scope: access denied'
    # Also of versions that are not there, and of types that nobody binds.
    other = "/apis/example.io/v7/widgets"
    for door in (f"*{WIDGETS}", f"{mine}{WIDGETS}", f"*{WIDGETS}:{identity}", f"*{other}"):
        reply = await hub.ask("alice", "GET", f"{view}/{door}")
        assert reply.status == 403, (door, reply.body)
        assert reply.body["message"] == (
            f'widgets.example.io is forbidden: User "alice" cannot list {why}'
        )
    await hub.ask("alice", "DELETE", f"/clusters/{mine}{BINDINGS}/w")
    await hub.gone(mine, f"{BINDINGS}/w")
    assert (await hub.ask("alice", "GET", f"{view}/*{WIDGETS}")).status == 403


@in_hub
async def test_a_view_has_of_a_workspace_what_that_binds(hub: Hub) -> None:
    """A binding that a local definition stands against brings nothing, nor into the view."""
    where = await shop(hub, user("alice"))
    mine = await home(hub, "alice")
    await hub.create(mine, DEFINITIONS, definition(), "alice")
    made = await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"), "alice")
    assert made["status"]["phase"] != "Bound"
    await hub.create(mine, WIDGETS, widget("own"), "alice")
    view = f"/services/apiexport/{where}/widgets/clusters"
    for method, path in (("GET", WIDGETS), ("GET", f"{WIDGETS}/own"), ("DELETE", WIDGETS)):
        reply = await hub.ask("kcp-admin", method, f"{view}/{mine}{path}")
        assert reply.status == 404, (method, path, reply.body)
    reply = await hub.ask("kcp-admin", "GET", f"{view}/*{WIDGETS}")
    assert (reply.status, reply.body["items"]) == (200, [])


# -- reserved annotations --------------------------------------------------------------------


@in_hub
async def test_a_definition_has_no_annotations_of_bound_ones(hub: Hub) -> None:
    mine = await home(hub, "alice")
    path = f"/clusters/{mine}{DEFINITIONS}"
    for asking in ("alice", "kcp-admin", "shard-admin"):
        for key in ("apis.kcp.io/bound-crd", "internal.apis.kcp.io/x", "a.b.apis.kcp.io/y"):
            obj = definition()
            obj["metadata"]["annotations"] = {key: "t", "example.io/fine": "yes"}
            reply = await hub.ask(asking, "POST", path, obj)
            assert reply.status == 403, (asking, key, reply.body)
            assert reply.body["message"] == (
                'customresourcedefinitions.apiextensions.k8s.io "widgets.example.io" is forbidden:'
                f" {key} is a reserved annotation"
            )
    for key in ("notapis.kcp.io/x", "apis.kcp.io.example.io/y", "kcp.io/apis.kcp.io"):
        obj = definition()
        obj["metadata"]["annotations"] = {key: "t"}
        await hub.create(mine, DEFINITIONS, obj, "alice")
        await hub.ask("alice", "DELETE", f"{path}/widgets.example.io")
        await hub.gone(mine, f"{DEFINITIONS}/widgets.example.io")
    await hub.create(mine, DEFINITIONS, definition(), "alice")
    change = {"metadata": {"annotations": {"apis.kcp.io/bound-crd": "t", "x.apis.kcp.io/a": "b"}}}
    for below in ("", "/status"):
        reply = await hub.ask(
            "alice", "PATCH", f"{path}/widgets.example.io{below}", change, **MERGE
        )
        if below and reply.status == 200:
            assert "annotations" not in reply.body["metadata"] or (
                "apis.kcp.io/bound-crd" not in reply.body["metadata"]["annotations"]
            )
            continue
        assert reply.status == 403, reply.body
        assert reply.body["message"].endswith(
            "[apis.kcp.io/bound-crd is a reserved annotation, "
            "x.apis.kcp.io/a is a reserved annotation]"
        )
