"""What cannot be meant is refused, in kcp's words where it has some, and never with a crash."""

from __future__ import annotations

import base64
import copy
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    BINDINGS,
    DEFINITIONS,
    EXPORTS,
    LOCATIONS,
    SCHEMAS,
    SYNC_TARGETS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    definition,
    export,
    in_hub,
    provider,
    running_hub,
    schema,
    widget,
    workspace,
)

TYPES = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes"
SLICES = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices"
CONVERSIONS = "/apis/apis.kcp.io/v1alpha1/apiconversions"
SECRETS = "/api/v1/namespaces/default/secrets"
MERGE = {"content_type": "application/merge-patch+json"}
CLAIM = {"group": "", "resource": "configmaps", "all": True}
TYPE = {"name": "universal", "path": "root"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def of_tenancy(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "spec": spec,
    }


def of_apis(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


_RULE = {"field": ".spec", "destination": ".spec", "transformation": "self"}
_RESOURCE = {"group": "workload.kcp.io", "resource": "synctargets", "version": "v1alpha1"}
EVERYTHING = {
    WORKSPACES: of_tenancy("Workspace", "w", type=TYPE),
    TYPES: of_tenancy(
        "WorkspaceType",
        "t",
        initializer=True,
        extend={"with": [TYPE]},
        defaultChildWorkspaceType=TYPE,
        limitAllowedChildren={"types": [TYPE]},
        limitAllowedParents={"types": [TYPE]},
        defaultAPIBindings=[{"export": "e", "path": "root"}],
        additionalWorkspaceLabels={"a": "b"},
    ),
    SCHEMAS: schema(prefix="v2"),
    EXPORTS: export(
        "e",
        "v1.widgets.example.io",
        permissionClaims=[CLAIM],
        maximalPermissionPolicy={"local": {}},
        identity={"secretRef": {"name": "a", "namespace": "b"}},
    ),
    BINDINGS: binding(
        "b", "root:shop", "widgets", permissionClaims=[CLAIM | {"state": "Accepted"}]
    ),
    SLICES: of_apis("APIExportEndpointSlice", "s", export={"path": "root:shop", "name": "widgets"}),
    CONVERSIONS: of_apis(
        "APIConversion",
        "v1.widgets.example.io",
        conversions=[{"from": "v1", "to": "v1", "preserve": [".spec"], "rules": [_RULE]}],
    ),
    SYNC_TARGETS: {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": "t"},
        "spec": {"supportedAPIExports": [{"export": "kubernetes"}], "unschedulable": True},
    },
    LOCATIONS: {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": "l", "labels": {"a": "b"}},
        "spec": {"resource": _RESOURCE, "instanceSelector": {"matchLabels": {"a": "b"}}},
    },
}
_WRONG: tuple[Any, ...] = (None, "x", 7, ["x"], {"x": 1}, [None])


def _members(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    found = node.items() if isinstance(node, dict) else enumerate(node)
    for name, below in found:
        yield (*path, name)
        if isinstance(below, (dict, list)):
            yield from _members(below, (*path, name))


def _with(obj: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(obj)
    node = changed
    for name in path[:-1]:
        node = node[name]
    node[path[-1]] = value
    return changed


@in_hub
async def test_whatever_stands_where_something_else_should_is_answered_for(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await provider(hub, shop)
    for path, obj in EVERYTHING.items():
        where = f"/clusters/{shop}{path}?dryRun=All"
        reply = await hub.ask("kcp-admin", "POST", where, obj)
        assert reply.status == 201, reply.body
        for member in _members(obj):
            for wrong in _WRONG:
                reply = await hub.ask("kcp-admin", "POST", where, _with(obj, member, wrong))
                assert reply.status in (201, 400, 403, 422), (path, member, wrong, reply.body)


# -- schemas ---------------------------------------------------------------------------------

_VERSION = schema()["spec"]["versions"][0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("versions", [_VERSION, _VERSION | {"name": "v2"}]), "exactly one version marked as st"),
        (("versions", [_VERSION, _VERSION | {"storage": False}]), "must contain unique version n"),
        (
            ("versions", [_VERSION | {"schema": {"type": "objekt"}}]),
            'spec.versions[0].schema.type: Unsupported value: "objekt"',
        ),
        (
            ("versions", [_VERSION | {"schema": {"type": "object", "properties": {"x": {}}}}]),
            "spec.versions[0].schema.properties[x].type: Required value",
        ),
        (("group", "example"), "should be a domain with at least one dot"),
        (("group", "core"), "must be empty string for the core group"),
        (("group", "x.k8s.io"), 'protected groups must have approval annotation "api-approved'),
        (("names", {"plural": "widgets", "kind": "Widget"}), "spec.names.listKind: Required value"),
    ],
)
async def test_a_schema_that_could_not_be_served_is_refused(
    tmp_path: Path, change: tuple[str, Any], why: str
) -> None:
    async with running_hub(tmp_path) as hub:
        obj = schema(**{change[0]: change[1]})
        obj["metadata"]["name"] = f"v1.widgets.{obj['spec']['group']}"
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{SCHEMAS}", obj)
        assert reply.status == 403
        assert why in reply.body["message"]


@in_hub
async def test_names_of_schemas_begin_like_names(hub: Hub) -> None:
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{SCHEMAS}", schema(prefix="1.2"))
    wanted = "must match ^[a-z]([-a-z0-9]*[a-z0-9])?$ in front of .widgets.example.io"
    assert (reply.status, wanted in reply.body["message"]) == (403, True)


@in_hub
async def test_groups_of_kubernetes_may_be_offered_too(hub: Hub) -> None:
    for group, ending in (("", "core"), ("apps", "apps")):
        obj = schema("gizmos", group=group)
        obj["metadata"]["name"] = f"v1.gizmos.{ending}"
        await hub.create("root", SCHEMAS, obj)


@in_hub
async def test_nobody_defines_types_of_the_systems_group(hub: Hub) -> None:
    obj = definition()
    obj["spec"]["group"], obj["metadata"]["name"] = "apis.kcp.io", "widgets.apis.kcp.io"
    reply = await hub.ask("kcp-admin", "POST", f"/clusters/root{DEFINITIONS}", obj)
    assert (reply.status, reply.body["message"].endswith("apis.kcp.io is a reserved group")) == (
        403,
        True,
    )


# -- types of workspaces ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spec", "why"),
    [
        ("any", {}, 'metadata.name: Invalid value: "any": name is reserved'),
        ("system", {}, 'metadata.name: Invalid value: "system": name is reserved'),
        ("root", {}, "root workspace type can only be created in root cluster"),
        (
            "x",
            {"defaultChildWorkspaceType": {"name": "y"}},
            ".spec.defaultChildWorkspaceType.path must be set",
        ),
        (
            "x",
            {"limitAllowedParents": {"types": [TYPE, {"name": "y"}]}},
            ".spec.limitAllowedParents.types[1].path must be set",
        ),
    ],
)
async def test_types_that_cannot_be_meant_are_refused(
    tmp_path: Path, name: str, spec: dict[str, Any], why: str
) -> None:
    async with running_hub(tmp_path) as hub:
        org = await hub.workspace("root", "org")
        obj = of_tenancy("WorkspaceType", name, **spec)
        reply = await hub.ask("kcp-admin", "POST", f"/clusters/{org}{TYPES}", obj)
        assert (reply.status, reply.body["message"].endswith(why)) == (403, True), reply.body


@in_hub
async def test_children_of_a_type_that_says_nothing_of_them_are_universal(hub: Hub) -> None:
    org = await hub.workspace("root", "org", "universal")
    base = of_tenancy("WorkspaceType", "base", defaultChildWorkspaceType=TYPE | {"name": "team"})
    await hub.create(org, TYPES, base)
    extend = {"with": [{"name": "base", "path": "root:org"}]}
    made = await hub.create(org, TYPES, of_tenancy("WorkspaceType", "mine", extend=extend))
    assert made["spec"]["defaultChildWorkspaceType"] == {"name": "universal", "path": "root"}


@in_hub
async def test_a_workspace_is_refused_a_name_that_no_path_can_have(hub: Hub) -> None:
    reply = await hub.ask(
        "kcp-admin", "POST", f"/clusters/root{WORKSPACES}", of_tenancy("Workspace", "a.b")
    )
    assert reply.status == 422
    rule = "metadata.name in body should match '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'"
    assert reply.body["message"].endswith(f'metadata.name: Invalid value: "a.b": {rule}')


@in_hub
async def test_a_type_says_where_its_initializer_finds_its_work(hub: Hub) -> None:
    org = await hub.workspace("root", "org", "universal")
    made = await hub.create(org, TYPES, of_tenancy("WorkspaceType", "slow", initializer=True))
    assert made["metadata"]["annotations"]["kcp.io/path"] == "root:org"
    assert [c["type"] for c in made["status"]["conditions"]] == [
        "Ready",
        "VirtualWorkspaceURLsReady",
    ]
    (view,) = made["status"]["virtualWorkspaces"]
    kind = {"type": {"name": "slow", "path": "root:org"}}
    child = await hub.create(org, WORKSPACES, workspace("child", kind))
    path = view["url"].removeprefix(hub.running.url)
    clusters = "/apis/core.kcp.io/v1alpha1/logicalclusters"
    seen = await hub.ask("kcp-admin", "GET", f"{path}/clusters/*{clusters}")
    (found,) = seen.body["items"]
    assert found["metadata"]["annotations"]["kcp.io/cluster"] == child["spec"]["cluster"]


# -- identities ------------------------------------------------------------------------------


def secret(name: str, key: str | bytes) -> dict[str, Any]:
    raw = key.encode() if isinstance(key, str) else key
    data = {"key": base64.b64encode(raw).decode()} if raw else {}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def condition(obj: dict[str, Any], kind: str) -> tuple[str, str]:
    (found,) = [c for c in obj["status"]["conditions"] if c["type"] == kind]
    return found["status"], found.get("message", "")


@in_hub
async def test_an_export_that_comes_again_finds_its_objects_again(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    first = await provider(hub, shop)
    user = await hub.workspace("root", "user")
    await hub.create(user, BINDINGS, binding("w", "root:shop", "widgets"))
    await hub.create(user, WIDGETS, widget("one"))
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{shop}{EXPORTS}/widgets")
    again = await hub.create(shop, EXPORTS, export("widgets", "v1.widgets.example.io"))
    assert again["status"]["identityHash"] == first["status"]["identityHash"]
    view = f"/services/apiexport/{shop}/widgets/clusters/*{WIDGETS}"
    assert len((await hub.ask("kcp-admin", "GET", view)).body["items"]) == 1


@in_hub
async def test_an_export_may_name_the_secret_of_its_identity(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await hub.create(shop, SCHEMAS, schema())
    await hub.create(shop, SECRETS, secret("mine", "my-key"))
    named = {"secretRef": {"name": "mine", "namespace": "default"}}
    made = await hub.create(shop, EXPORTS, export("w", "v1.widgets.example.io", identity=named))
    assert made["status"]["identityHash"] == hashed("my-key")
    assert made["spec"]["identity"] == named
    other = {"spec": {"identity": {"secretRef": {"name": "other"}}}}
    await hub.create(shop, SECRETS, secret("other", "other-key"))
    path = f"/clusters/{shop}{EXPORTS}/w"
    changed = (await hub.ask("kcp-admin", "PATCH", path, other, **MERGE)).body
    assert changed["status"]["identityHash"] == hashed("my-key"), "objects are stored by it"
    wanted = f'identity secret hash "{hashed("other-key")}" must match status.identityHash '
    expected = ("False", f'hash mismatch: {wanted}"{hashed("my-key")}"')
    assert condition(changed, "IdentityValid") == expected


@in_hub
async def test_any_bytes_make_an_identity_but_none_do_not(hub: Hub) -> None:
    for name, key in (("bytes", b"\xff\x00"), ("empty", b"")):
        await hub.create("root", SECRETS, secret(name, key))
        named = {"secretRef": {"name": name, "namespace": "default"}}
        made = await hub.create("root", EXPORTS, export(name, identity=named))
        if key:
            assert made["status"]["identityHash"] == hashlib.sha256(key).hexdigest()
        else:
            missing = "secret default/empty is missing data.key"
            assert condition(made, "IdentityValid") == ("False", missing)


@in_hub
async def test_an_export_without_its_secret_waits_for_it_and_so_do_its_bindings(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await hub.create(shop, SCHEMAS, schema())
    named = {"secretRef": {"name": "late", "namespace": "default"}}
    made = await hub.create(shop, EXPORTS, export("w", "v1.widgets.example.io", identity=named))
    assert condition(made, "IdentityValid") == ("False", 'secrets "late" not found')
    user = await hub.workspace("root", "user")
    bound = await hub.create(user, BINDINGS, binding("w", "root:shop", "w"))
    missing = "APIExport root:shop|w is missing status.identityHash"
    assert condition(bound, "APIExportValid") == ("False", missing)
    await hub.create(shop, SECRETS, secret("late", "my-key"))
    await hub.until(shop, f"{EXPORTS}/w", "status", "identityHash", hashed("my-key"))
    await hub.until(user, f"{BINDINGS}/w", "status", "phase", "Bound")
    await hub.create(user, WIDGETS, widget("one"))


# -- claims and references -------------------------------------------------------------------


@in_hub
async def test_claims_say_whose_type_they_mean_and_which_objects(hub: Hub) -> None:
    path = f"/clusters/root{EXPORTS}"
    theirs = {"group": "foo.io", "resource": "foos", "all": True}
    reply = await hub.ask("kcp-admin", "POST", path, export("e", permissionClaims=[theirs]))
    assert reply.status == 403
    wanted = "identityHash is required for API types that are not built-in"
    assert reply.body["message"].endswith(
        f'spec.permissionClaims[0].identityHash: Invalid value: "": {wanted}'
    )
    for claim, why in (
        (CLAIM | {"all": False}, 'either "all" or "resourceSelector" must be set'),
        (CLAIM | {"resourceSelector": [{"name": "x"}]}, 'either "all" or "resourceSelector" m'),
        (
            {"group": "core.kcp.io", "resource": "logicalclusters", "all": True},
            "logicalclusters cannot be claimed",
        ),
    ):
        reply = await hub.ask("kcp-admin", "POST", path, export("e", permissionClaims=[claim]))
        assert (reply.status, why in reply.body["message"]) == (422, True), reply.body


@in_hub
async def test_a_binding_must_say_what_it_binds(hub: Hub) -> None:
    path = f"/clusters/root{BINDINGS}"
    nothing = binding("b", "", "x")
    nothing["spec"]["reference"] = {}
    reply = await hub.ask("kcp-admin", "POST", path, nothing)
    assert (reply.status, "spec.reference.export: Required" in reply.body["message"]) == (422, True)
    reply = await hub.ask("kcp-admin", "POST", path, binding("b", "Root:x", "x"))
    assert reply.status in (403, 422)
    made = await hub.create("root", BINDINGS, binding("b", "", "nowhere"))
    assert condition(made, "APIExportValid") == ("False", "APIExport root|nowhere not found")


@in_hub
async def test_a_bound_workload_wants_no_fewer_than_no_replicas(hub: Hub) -> None:
    team = await hub.workspace("root", "team")
    await hub.create(team, BINDINGS, binding("bind-kube", "root:compute", "kubernetes"))
    path = f"/clusters/{team}/apis/apps/v1/namespaces/default/deployments"
    spec: dict[str, Any] = {"selector": {"matchLabels": {"a": "b"}}, "replicas": 1}
    spec["template"] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    assert (await hub.ask("kcp-admin", "POST", path, {**made, "spec": spec})).status == 201
    wrong = {"spec": {"replicas": -1}}
    other = {**made, "metadata": {"name": "other"}, "spec": {**spec, **wrong["spec"]}}
    for answer in (
        await hub.ask("kcp-admin", "POST", path, other),
        await hub.ask("kcp-admin", "PATCH", f"{path}/web", wrong, **MERGE),
        await hub.ask("kcp-admin", "PATCH", f"{path}/web/scale", wrong, **MERGE),
    ):
        assert answer.status == 422
        assert "spec.replicas: Invalid value: -1" in answer.body["message"]
