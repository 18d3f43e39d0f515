"""Nothing crosses from one workspace into another but by wildcard, view or binding.

Two users have a workspace each, with equal objects of every sort in both. Every verb is tried on
every way into the other's workspace; each is refused, and the store is as it was.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from skerry.server.http.message import Stream
from skerry.store.open import StoreSettings
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    DEFINITIONS,
    EXPORTS,
    WIDGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    config_map,
    definition,
    grants,
    in_hub,
    provider,
    role,
    widget,
)
from tests.kit.store.etcd_process import EtcdProcess

GADGETS = "/apis/example.io/v1/gadgets"
TYPES: dict[str, Any] = {
    CONFIG_MAPS: config_map("same", of="x"),
    "/api/v1/namespaces": {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "same"}
    },
    "/api/v1/namespaces/default/secrets": {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "same"}
    },
    "/api/v1/namespaces/default/serviceaccounts": {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "same"}
    },
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": role("same"),
    WIDGETS: widget("same"),
    GADGETS: widget("same", kind="Gadget"),
    WORKSPACES: {
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "same"}
    },
    "/apis/workload.kcp.io/v1alpha1/synctargets": {
        "apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
        "metadata": {"name": "same"},
    },
}  # fmt: skip
DOCUMENTS = ("/api", "/apis", "/api/v1", "/apis/example.io/v1", "/openapi/v2", "/openapi/v3", "/",
             "/version")  # fmt: skip


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdProcess]:
    process = EtcdProcess(tmp_path_factory.mktemp("etcd"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(params=["sqlite", pytest.param("etcd", marks=pytest.mark.etcd)])
def hub_place(request: pytest.FixtureRequest, tmp_path: Path) -> HubPlace:
    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    if request.param == "etcd":
        url = request.getfixturevalue("etcd").url
        store = StoreSettings(kind="etcd", etcd_servers=(url,), etcd_prefix=f"/{tmp_path.name}/")
    return HubPlace(tmp_path, store)


async def furnished(hub: Hub) -> tuple[str, str]:
    """Make the two workspaces with the same content; return their clusters."""
    await hub.workspace("root", "org")
    await hub.workspace("root:org", "shop")
    await provider(hub, "root:org:shop")
    binders = role(
        "bind",
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "verbs": ["bind"]},
        {"nonResourceURLs": ["/"], "verbs": ["access"]},
    )
    await hub.create("root:org:shop", "/apis/rbac.authorization.k8s.io/v1/clusterroles", binders)
    clusters = []
    for name, user in (("a", "alice"), ("b", "bob")):
        await hub.create("root:org:shop", BINDERS, grants(f"bind-{user}", "bind", user))
        cluster = await hub.workspace("root:org", name, admin=user)
        await hub.create(cluster, DEFINITIONS, definition("gadgets"), user)
        await hub.create(cluster, BINDINGS, binding("widgets", "root:org:shop", "widgets"), user)
        for path, obj in TYPES.items():
            await hub.create(cluster, path, obj, user)
        clusters.append(cluster)
    return clusters[0], clusters[1]


@in_hub
async def test_no_verb_reaches_into_another_workspace(hub: Hub) -> None:
    _, b = await furnished(hub)
    doors = [f"/clusters/{b}", "/clusters/root:org:b", "/clusters/*", "/clusters/user:bob",
             f"/services/apiexport/{b}/widgets/clusters/{b}",
             f"/services/initializingworkspaces/{b}:universal/clusters/{b}",
             f"/services/initializingworkspaces/root:universal/clusters/{b}"]  # fmt: skip
    before = await hub.keys()
    for door in doors:
        for path, obj in TYPES.items():
            for method, where, body in requests(path, obj):
                reply = await hub.ask("alice", method, f"{door}{where}", body)
                assert reply.status in (403, 404), (method, door + where, reply.body)
                if door == f"/clusters/{b}":
                    assert "access denied" in reply.body["message"]
        for document in DOCUMENTS:
            reply = await hub.ask("alice", "GET", f"{door}{document}")
            assert reply.status in (403, 404), (door + document, reply.body)
    assert await hub.keys() == before


def requests(path: str, obj: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield a request for every verb on a type, subresources included."""
    merge = {"metadata": {"labels": {"mine": "now"}}}
    yield "GET", path, None
    yield "GET", f"{path}?watch=true", None
    yield "GET", f"{path}/same", None
    yield "POST", path, {**obj, "metadata": {"name": "new"}}
    yield "PUT", f"{path}/same", obj
    yield "PATCH", f"{path}/same", merge
    yield "DELETE", f"{path}/same", None
    yield "DELETE", path, None
    for subresource in ("status", "scale", "token", "finalize"):
        yield "GET", f"{path}/same/{subresource}", None
        yield "PUT", f"{path}/same/{subresource}", obj
        yield "POST", f"{path}/same/{subresource}", {}


@in_hub
async def test_lists_and_watches_show_one_cluster_only(hub: Hub) -> None:
    a, b = await furnished(hub)
    for path, obj in TYPES.items():
        listed = await hub.get(a, path, "alice")
        assert all(
            item["metadata"]["annotations"]["kcp.io/cluster"] == a for item in listed["items"]
        ), path
        assert "same" in [item["metadata"]["name"] for item in listed["items"]]
        version = listed["metadata"]["resourceVersion"]
        watch = await hub.watch(
            "alice", f"/clusters/{a}{path}?watch=true&resourceVersion={version}"
        )
        everything = await hub.watch("alice", f"/clusters/{a}{path}?watch=true")
        other = {**obj, "metadata": {**obj["metadata"], "name": "other"}}
        await hub.create(b, path, other, "bob")
        mine = {**obj, "metadata": {**obj["metadata"], "name": "mine"}}
        await hub.create(a, path, mine, "alice")
        assert (await watch.lines.get())["object"]["metadata"]["name"] == "mine"
        seen = {"": ""}
        while "mine" not in seen:
            line = (await everything.lines.get())["object"]["metadata"]
            seen[line["name"]] = line["annotations"]["kcp.io/cluster"]
        assert set(seen.values()) == {"", a}
        selected = await hub.get(a, f"{path}?fieldSelector=metadata.name%3Dother", "alice")
        assert selected["items"] == []


@in_hub
async def test_types_of_one_workspace_are_unknown_in_another(hub: Hub) -> None:
    await hub.workspace("root", "org")
    a = await hub.workspace("root:org", "a", admin="alice")
    b = await hub.workspace("root:org", "b", admin="bob")
    await hub.create(b, DEFINITIONS, definition(), "bob")
    groups = await hub.get(a, "/apis", "alice")
    assert "example.io" not in [group["name"] for group in groups["groups"]]
    assert (await hub.ask("alice", "GET", f"/clusters/{a}{WIDGETS}")).status == 404
    assert "example.io" not in str(await hub.get(a, "/openapi/v3", "alice"))


@in_hub
async def test_a_local_type_and_a_bound_one_of_the_same_name_share_nothing(hub: Hub) -> None:
    await hub.workspace("root", "org")
    shop = await hub.workspace("root:org", "shop")
    made = await provider(hub, shop)
    local = await hub.workspace("root:org", "local")
    bound = await hub.workspace("root:org", "bound")
    await hub.create(local, DEFINITIONS, definition())
    await hub.create(bound, BINDINGS, binding("widgets", "root:org:shop", "widgets"))
    await hub.create(local, WIDGETS, widget("one"))
    await hub.create(bound, WIDGETS, widget("two"))
    everywhere = f"/clusters/*{WIDGETS}:{made['status']['identityHash']}"
    seen = (await hub.ask("shard-admin", "GET", everywhere)).body["items"]
    assert [item["metadata"]["name"] for item in seen] == ["two"]


@in_hub
async def test_the_cluster_an_object_says_it_is_in_is_the_servers_word(hub: Hub) -> None:
    a, b = await furnished(hub)
    forged = config_map("forged")
    forged["metadata"]["annotations"] = {"kcp.io/cluster": b, "own": "kept"}
    made = await hub.create(a, CONFIG_MAPS, forged, "alice")
    assert made["metadata"]["annotations"] == {"kcp.io/cluster": a, "own": "kept"}
    assert (await hub.ask("bob", "GET", f"/clusters/{b}{CONFIG_MAPS}/forged")).status == 404


@in_hub
async def test_tokens_of_service_accounts_hold_in_their_own_cluster_only(hub: Hub) -> None:
    a, b = await furnished(hub)
    account = await hub.get(a, "/api/v1/namespaces/default/serviceaccounts/same", "alice")
    secret = account["secrets"][0]["name"]
    found = await hub.get(a, f"/api/v1/namespaces/default/secrets/{secret}", "alice")
    token = base64.b64decode(found["data"]["token"]).decode()
    subject = {"kind": "ServiceAccount", "name": "same", "namespace": "default"}
    granted = {**grants("account", "cluster-admin", ""), "subjects": [subject]}
    await hub.create(a, BINDERS, granted, "alice")
    bare = await hub.ask(token, "GET", CONFIG_MAPS)
    assert {i["metadata"]["annotations"]["kcp.io/cluster"] for i in bare.body["items"]} == {a}
    for door in (f"/clusters/{b}", "/clusters/*", "/clusters/root"):
        assert (await hub.ask(token, "GET", f"{door}{CONFIG_MAPS}")).status == 401
    tampered = token[:-6] + ("AAAAAA" if token[-6:] != "AAAAAA" else "BBBBBB")
    assert (await hub.ask(tampered, "GET", CONFIG_MAPS)).status == 401


@in_hub
async def test_an_administrator_of_one_workspace_cannot_become_one_of_all(hub: Hub) -> None:
    a, b = await furnished(hub)
    for group in ("system:masters", "system:kcp:admin"):
        for door in (f"/clusters/{a}", f"/clusters/{b}", "/clusters/*"):
            reply = await hub.ask(
                "alice", "GET", f"{door}{CONFIG_MAPS}",
                impersonate_user="x", impersonate_group=group,
            )  # fmt: skip
            assert reply.status == 403, (group, door, reply.body)
    allowed = await hub.ask("alice", "GET", f"/clusters/{a}{CONFIG_MAPS}", impersonate_user="alice")
    assert allowed.status == 200
    stolen = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace",
              "metadata": {"name": "stolen"}, "spec": {"cluster": b}}  # fmt: skip
    reply = await hub.ask("alice", "POST", f"/clusters/{a}{WORKSPACES}", stolen)
    assert reply.status == 403


@in_hub
async def test_the_server_keeps_its_own_objects_to_itself(hub: Hub) -> None:
    a, _ = await furnished(hub)
    cluster = await hub.get(a, f"{CLUSTERS}/cluster", "alice")
    changed = {**cluster, "spec": {**cluster["spec"], "directlyDeletable": True}}
    for method, path, body in (
        ("DELETE", f"{CLUSTERS}/cluster", None),
        ("PUT", f"{CLUSTERS}/cluster", changed),
        ("PATCH", f"{CLUSTERS}/cluster/status", {"status": {"phase": "Initializing"}}),
        ("PATCH", f"{BINDINGS}/widgets/status", {"status": {"phase": "Binding"}}),
        ("PATCH", f"{WORKSPACES}/same/status", {"status": {"phase": "Scheduling"}}),
        ("PATCH", f"{WORKSPACES}/same", {"spec": {"cluster": "root"}}),
    ):
        headers = {"content_type": "application/merge-patch+json"} if method == "PATCH" else {}
        reply = await hub.ask("alice", method, f"/clusters/{a}{path}", body, **headers)
        unchanged = reply.status == 200 and "status" in path
        if unchanged:
            now = await hub.get(a, path.removesuffix("/status"), "alice")
            assert now["status"]["phase"] in ("Ready", "Bound"), (path, now)
        else:
            assert reply.status in (403, 422), (method, path, reply.body)


@in_hub
async def test_unknown_clusters_are_empty_to_masters_and_closed_to_all_others(hub: Hub) -> None:
    for cluster in ("nope", "root:nope", "root:nope:deeper"):
        reply = await hub.ask("kcp-admin", "GET", f"/clusters/{cluster}/api/v1/namespaces")
        assert (reply.status, reply.body["reason"]) == (403, "Forbidden")
        assert reply.body["message"] == (
            'namespaces is forbidden: User "kcp-admin" cannot list resource "namespaces" in API '
            'group "" at the cluster scope: access denied'
        )
        masters = await hub.ask("shard-admin", "GET", f"/clusters/{cluster}/api/v1/namespaces")
        assert masters.body["items"] == []
        made = await hub.ask(
            "shard-admin", "POST", f"/clusters/{cluster}/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        )  # fmt: skip
        assert made.status == 403
    assert (await hub.ask("", "GET", "/clusters/Root/api")).status == 400
    assert (await hub.ask("", "GET", "/clusters/root/api")).status == 403
    assert (await hub.ask("nonsense", "GET", "/clusters/root/api")).status == 401


@in_hub
async def test_only_masters_read_across_and_only_collections(hub: Hub) -> None:
    a, b = await furnished(hub)
    for user in ("alice", "kcp-admin", ""):
        assert (await hub.ask(user, "GET", "/clusters/*/api/v1/configmaps")).status == 403
    found = (await hub.ask("shard-admin", "GET", "/clusters/*/api/v1/configmaps")).body["items"]
    clusters = {item["metadata"]["annotations"]["kcp.io/cluster"] for item in found}
    assert {a, b} <= clusters
    for method, path, body in requests(CONFIG_MAPS, config_map("same")):
        if method == "GET" and "/same" not in path:
            continue
        reply = await hub.ask("shard-admin", method, f"/clusters/*{path}", body)
        assert reply.status in (404, 405), (method, path, reply.body)
    got = await hub.ask("shard-admin", "GET", "/clusters/*/api/v1/namespaces/default")
    assert got.body["message"] == (
        'get is not supported on resources of kind "namespaces" in the `*` logical cluster'
    )
    bare = await hub.ask("shard-admin", "GET", "/api/v1/namespaces")
    assert (bare.status, bare.body["message"]) == (500, "no cluster found in the context")


@in_hub
async def test_a_large_list_across_clusters_is_streamed_of_one_snapshot(hub: Hub) -> None:
    a = await hub.workspace("root", "a")
    b = await hub.workspace("root", "b")
    for start in range(0, 1100, 50):
        async with asyncio.TaskGroup() as tasks:
            for number in range(start, start + 50):
                for cluster in (a, b):
                    tasks.create_task(hub.create(cluster, CONFIG_MAPS, config_map(f"c{number}")))
    path = "/clusters/*/api/v1/configmaps"
    answer = await hub.answer("shard-admin", "GET", path, None, {})
    assert isinstance(answer, Stream)
    # Written after the list began, so not in it.
    await hub.create(b, CONFIG_MAPS, config_map("z-late"))
    collected = Collected()
    await answer.run(collected)
    listed = orjson.loads(b"".join(collected.chunks))
    names = [item["metadata"]["name"] for item in listed["items"]]
    assert len([name for name in names if name.startswith("c")]) == 2200
    assert "z-late" not in names
    assert listed["kind"] == "ConfigMapList"
    limited = (await hub.ask("shard-admin", "GET", f"{path}?limit=5")).body
    assert len(limited["items"]) == 5
    rest = f"{path}?limit=3000&continue={limited['metadata']['continue']}"
    again = (await hub.ask("shard-admin", "GET", rest)).body["items"]
    # The pages are of a later moment, which knows one object more.
    assert len(limited["items"]) + len(again) == len(listed["items"]) + 1


class Collected:
    """Takes whatever a stream writes."""

    closed = False
    queued_bytes = 0

    def __init__(self) -> None:
        self.chunks: list[bytes] = []

    def write(self, chunk: bytes) -> None:
        self.chunks.append(chunk)

    async def drain(self) -> None:
        return None


@in_hub
async def test_metadata_of_any_type_is_readable_across_without_its_identity(hub: Hub) -> None:
    a, b = await furnished(hub)
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    for path in (WIDGETS, GADGETS):
        reply = await hub.ask("shard-admin", "GET", f"/clusters/*{path}", accept=accept)
        assert {i["metadata"]["annotations"]["kcp.io/cluster"] for i in reply.body["items"]} == {
            a, b
        }  # fmt: skip
        assert (await hub.ask("shard-admin", "GET", f"/clusters/*{path}")).status == 404
    watch = await hub.answer("shard-admin", "GET", f"/clusters/*{WIDGETS}?watch=1", None,
                              {"accept": accept})  # fmt: skip
    assert isinstance(watch, Stream)


@in_hub
async def test_an_export_is_bound_only_with_the_right_to(hub: Hub) -> None:
    await hub.workspace("root", "org")
    shop = await hub.workspace("root:org", "shop")
    await provider(hub, shop)
    a = await hub.workspace("root:org", "a", admin="alice")
    reply = await hub.ask(
        "alice", "POST", f"/clusters/{a}{BINDINGS}", binding("w", "root:org:shop", "widgets")
    )
    assert reply.status == 403
    assert reply.body["message"] == (
        'apibindings.apis.kcp.io "w" is forbidden: unable to create APIBinding: no permission to '
        "bind to export root:org:shop:widgets"
    )
    assert (await hub.ask("alice", "GET", f"/clusters/{shop}{EXPORTS}")).status == 403
