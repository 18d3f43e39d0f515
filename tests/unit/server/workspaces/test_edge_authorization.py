"""What an edge reaches in its mailbox, and that it reaches nothing else."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson

from skerry.api.edge_identity import EDGES
from skerry.kit.timestamps import parse_rfc3339
from skerry.server.http.message import Stream
from tests.kit.server.edges import (
    ACCOUNTS,
    CONFIGS,
    ESPW,
    IMW,
    LEASE,
    LEASES,
    MARK,
    MERGE,
    REQUESTS,
    SECRETS,
    SHOP,
    SPEC,
    UP,
    Edge,
    EdgeHub,
    in_edge_hub,
    lease_of,
    report,
)
from tests.kit.server.harness import MemorySender
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    CLUSTERS,
    CONFIG_MAPS,
    DEFINITIONS,
    EXPORTS,
    ROLES,
    SCHEMAS,
    WORKSPACES,
    binding,
    config_map,
    definition,
    export,
    grants,
    role,
    workspace,
)

JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


def secret(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **more}


def names(found: dict[str, Any]) -> set[str]:
    return {item["metadata"]["name"] for item in found["items"]}


async def joined(hub: EdgeHub, **more: Any) -> Edge:
    """Return an edge with a copy, a report and a stranger's object of several kinds."""
    edge = await (await hub.edge(**more)).join()
    await edge.place(f"{SHOP}/configmaps", config_map("copy", a="1"))
    await edge.place(f"{SHOP}/secrets", secret("copied", stringData={"a": "b"}))
    await edge.place(ROLES, role("copied-role", {"apiGroups": [""], "resources": ["pods"],
                                                 "verbs": ["get"]}))  # fmt: skip
    for path in (SHOP, UP):
        await hub.create(edge.mailbox, f"{path}/configmaps", config_map("stranger"))
        await hub.create(edge.mailbox, f"{path}/secrets", secret("stranger"))
    await hub.create(edge.mailbox, f"{UP}/configmaps", report("report"))
    return edge


# -- reading -------------------------------------------------------------------------------------


@in_edge_hub
async def test_lists_show_copies_and_reports_in_every_representation(hub: EdgeHub) -> None:
    edge = await joined(hub)
    both = "/api/v1/configmaps"
    assert names((await edge.ask("GET", both)).body) == {"copy", "report"}
    assert names((await edge.ask("GET", f"{SHOP}/secrets")).body) == {"copied"}
    assert names((await edge.ask("GET", ROLES)).body) == {"copied-role"}
    as_table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    table = await edge.ask("GET", both, accept=as_table)
    assert {row["object"]["metadata"]["name"] for row in table.body["rows"]} == {"copy", "report"}
    partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    assert names((await edge.ask("GET", both, accept=partial)).body) == {"copy", "report"}
    binary = await edge.ask("GET", both, accept="application/vnd.kubernetes.protobuf")
    assert b"copy" in binary.raw
    assert b"stranger" not in binary.raw
    for query in (
        "fieldSelector=metadata.name=stranger",
        "labelSelector=edge.kcp.io/projected!=yes,a!=b&fieldSelector=metadata.name=stranger",
        "limit=1&fieldSelector=metadata.name!=copy",
        "resourceVersion=0",
    ):
        assert "stranger" not in names((await edge.ask("GET", f"{both}?{query}")).body), query
    first = (await edge.ask("GET", f"{both}?limit=1")).body
    assert "remainingItemCount" not in first["metadata"]


@in_edge_hub
async def test_an_object_that_is_no_copy_cannot_be_read_by_name(hub: EdgeHub) -> None:
    edge = await joined(hub)
    assert (await edge.ask("GET", f"{SHOP}/configmaps/copy")).status == 200
    assert (await edge.ask("GET", f"{UP}/configmaps/report")).status == 200
    assert (await edge.ask("GET", f"{SHOP}/configmaps/none")).status == 404
    for path in (f"{SHOP}/configmaps/stranger", f"{SHOP}/secrets/stranger", f"{ROLES}/missing"):
        assert (await edge.ask("GET", path)).status in (403, 404), path
    as_table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    hidden = await edge.ask("GET", f"{SHOP}/secrets/stranger", accept=as_table)
    assert hidden.status == 403


async def seen(sender: MemorySender, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        return [await sender.lines.get() for _ in range(count)]


@in_edge_hub
async def test_watches_report_of_copies_and_reports_only(hub: EdgeHub) -> None:
    edge = await joined(hub)
    plain = await edge.watch("/api/v1/configmaps?watch=true")
    watches = [{"id": "m", "version": "v1", "resource": "configmaps"}]
    packed = await edge.watch("/extensions/v1/watch", {"watches": watches})
    compact = await edge.watch(
        "/extensions/v1/watch", {"watches": [{**watches[0], "compact": True, "initial": True}]}
    )
    thin = await edge.watch(
        "/extensions/v1/watch", {"watches": [{**watches[0], "metadataOnly": True}]}
    )
    await hub.create(edge.mailbox, f"{SHOP}/configmaps", config_map("other-stranger"))
    await edge.place(f"{SHOP}/configmaps", config_map("later"))
    # A copy that is no longer one leaves the view.
    await hub.ask(
        "kcp-admin",
        "PATCH",
        f"/clusters/{edge.mailbox}{SHOP}/configmaps/later",
        {"metadata": {"labels": {"edge.kcp.io/projected": None}}},
        content_type=MERGE,
    )
    received = [event for event in await seen(plain, 4) if event["type"] != "BOOKMARK"]
    found = [(event["type"], event["object"]["metadata"]["name"]) for event in received]
    assert sorted(found[:2]) == [("ADDED", "copy"), ("ADDED", "report")]
    assert found[2:] == [("ADDED", "later"), ("DELETED", "later")]
    for stream in (packed, compact, thin):
        text = orjson.dumps(await seen(stream, 6)).decode()
        assert "later" in text
        assert "stranger" not in text


@in_edge_hub
async def test_a_packed_watch_of_what_an_edge_may_not_read_is_refused_alone(hub: EdgeHub) -> None:
    edge = await joined(hub)
    watches: list[dict[str, Any]] = [
        {"id": "roles", "group": "rbac.authorization.k8s.io", "version": "v1",
         "resource": "rolebindings"},
        {"id": "accounts", "version": "v1", "resource": "serviceaccounts"},
        {"id": "elsewhere", "version": "v1", "resource": "configmaps", "namespace": "default"},
        {"id": "bindings", "group": "apis.kcp.io", "version": "v1alpha1",
         "resource": "apibindings"},
        {"id": "maps", "version": "v1", "resource": "configmaps", "namespace": "shop"},
    ]  # fmt: skip
    sender = await edge.watch("/extensions/v1/watch", {"watches": watches})
    events = await seen(sender, 7)
    refused = {e["watch"] for e in events if e["type"] == "ERROR" and e["object"]["code"] == 403}
    assert refused == {"roles", "accounts", "elsewhere", "bindings"}


@in_edge_hub
async def test_a_patch_reports_nothing_of_what_an_edge_does_not_see(hub: EdgeHub) -> None:
    edge = await joined(hub)
    hidden = secret("hidden", stringData={"password": "right"})
    made = await hub.create(edge.mailbox, f"{SHOP}/secrets", hidden)
    path = f"{SHOP}/secrets/hidden"
    answers = set()
    for value in ("right", "wrong"):
        encoded = base64.b64encode(value.encode()).decode()
        test = [{"op": "test", "path": "/data/password", "value": encoded}]
        reply = await edge.ask("PATCH", path, test, content_type=JSON_PATCH)
        answers.add((reply.status, reply.raw))
        applied = {**hidden, "data": {"password": encoded}}
        applied.pop("stringData")
        reply = await edge.ask("PATCH", f"{path}?fieldManager=x", applied, content_type=APPLY)
        answers.add((reply.status, reply.raw))
        reply = await edge.ask("PUT", path, {**applied, "metadata": {"name": "hidden"}})
        answers.add((reply.status, reply.raw))
        stale = {"preconditions": {"uid": made["metadata"]["uid"] if value == "right" else "x"}}
        reply = await edge.ask("DELETE", path, stale)
        answers.add((reply.status, reply.raw))
    assert len(answers) == 1, answers
    assert next(iter(answers))[0] == 403


@in_edge_hub
async def test_an_edge_acts_as_nobody_else(hub: EdgeHub) -> None:
    edge = await joined(hub)
    for headers in (
        {"impersonate_user": "kcp-admin"},
        {"impersonate_user": "x", "impersonate_group": "system:masters"},
        {"impersonate_user": f"system:serviceaccount:default:{edge.target}"},
        {"impersonate_user": edge.name.user},
    ):
        assert (await edge.ask("GET", CONFIGS, **headers)).status == 403, headers


# -- elsewhere -----------------------------------------------------------------------------------


@in_edge_hub
async def test_an_edge_is_refused_everywhere_outside_its_mailbox(hub: EdgeHub) -> None:
    edge = await joined(hub)
    other = await hub.edge("guilder")
    await hub.create("root", BINDERS, grants("everybody", "cluster-admin", edge.name.user))
    group = grants("all", "cluster-admin", "x")
    group["subjects"][0] |= {"kind": "Group", "name": EDGES}
    await hub.create("root", BINDERS, group)
    for where in (
        "/clusters/root",
        f"/clusters/{ESPW}",
        f"/clusters/{IMW}",
        "/clusters/root:compute",
        f"/clusters/{other.mailbox}",
        "/clusters/*",
        "/clusters/system:admin",
        "/services/apiexport/root/workload.kcp.io/clusters/*",
        f"/services/apiexport/root/workload.kcp.io/clusters/{edge.mailbox}",
        f"/services/apiexport/{ESPW}/edge.kcp.io/clusters/{edge.mailbox}",
        "",
    ):
        for method, path in (
            ("GET", CONFIG_MAPS),
            ("GET", CONFIGS),
            ("POST", CONFIG_MAPS),
            ("GET", "/api"),
            ("GET", f"{WORKSPACES}/~"),
            ("POST", REQUESTS),
            ("GET", "/metrics"),
            ("GET", "/healthz"),
            ("GET", "/version"),
        ):
            reply = await edge.ask(method, path, config_map("x"), where)
            assert reply.status in (401, 403, 404), (where, method, path, reply.status)
            assert reply.status != 404 or where.startswith("/services"), (where, method, path)


@in_edge_hub
async def test_granting_an_edge_more_in_its_mailbox_gives_it_nothing(hub: EdgeHub) -> None:
    edge = await joined(hub)
    await hub.create(edge.mailbox, BINDERS, grants("more", "cluster-admin", edge.name.user))
    group = grants("all", "cluster-admin", "x")
    group["subjects"][0] |= {"kind": "Group", "name": EDGES}
    await hub.create(edge.mailbox, BINDERS, group)
    everybody = grants("authenticated", "cluster-admin", "x")
    everybody["subjects"][0] |= {"kind": "Group", "name": "system:authenticated"}
    await hub.create(edge.mailbox, BINDERS, everybody)
    assert (await edge.ask("GET", SECRETS)).body["items"] == []
    for path in (ACCOUNTS, BINDINGS, BINDERS):
        assert (await edge.ask("GET", path)).status == 403, path
    assert (await edge.ask("POST", BINDERS, grants("x", "view", "y"))).status == 403


def refused_writes(edge: Edge) -> list[tuple[str, str, Any]]:
    """Return what an edge may not do in its mailbox, whatever its upsync rules say."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}}
    binder = grants("mine", "cluster-admin", "system:authenticated")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    marked = {"edge.kcp.io/upsynced": "true"}
    return [
        ("POST", WORKSPACES, workspace("child")),
        ("DELETE", f"{BINDINGS}/bind-edge", None),
        ("PATCH", f"{BINDINGS}/bind-edge", {"metadata": {"annotations": marked}}),
        ("POST", BINDINGS, binding("more", "root:compute", "kubernetes")),
        ("POST", EXPORTS, export("mine")),
        ("POST", SCHEMAS, {"metadata": {"name": "v1.x.y"}}),
        ("POST", DEFINITIONS, {**definition(), "metadata": {"name": "widgets.example.io",
                                                            "annotations": marked}}),
        ("PATCH", f"{CLUSTERS}/cluster", {"metadata": {"annotations": marked}}),
        ("DELETE", f"{CLUSTERS}/cluster", None),
        ("POST", ROLES, {**role("mine"), "metadata": {"name": "mine", "annotations": marked}}),
        ("POST", BINDERS, {**binder, "metadata": {"name": "mine", "annotations": marked}}),
        ("DELETE", f"{ROLES}/copied-role", None),
        ("PATCH", f"{ROLES}/copied-role", {"rules": []}),
        ("POST", ACCOUNTS, {**account, "metadata": {"name": "robot", "annotations": marked}}),
        ("POST", f"{ACCOUNTS}/default/token", {"spec": {"expirationSeconds": 600}}),
        ("POST", SECRETS, secret("t", type="kubernetes.io/service-account-token",
                                 metadata={"name": "t", "annotations": {
                                     **marked, "kubernetes.io/service-account.name": "default"}})),
        ("POST", SECRETS, secret("bootstrap-token-abc124", type="edge.kcp.io/bootstrap-token",
                                 metadata={"name": "bootstrap-token-abc124",
                                           "annotations": marked})),
        ("PATCH", f"{CONFIGS}/the-one", {"spec": {"upsync": []}}),
        ("PATCH", f"{CONFIGS}/the-one", {"metadata": {"annotations": marked}}),
        ("POST", CONFIGS, {"metadata": {"name": "mine"}, "spec": SPEC}),
        ("DELETE", f"{CONFIGS}/the-one", None),
        ("POST", LEASES, lease),
        ("DELETE", LEASE, None),
        ("DELETE", LEASES, None),
        ("POST", "/apis/edge.kcp.io/v1alpha1/edgeplacements",
         {"metadata": {"name": "p", "annotations": marked}, "spec": {"locationSelectors": [{}]}}),
        ("DELETE", f"{SHOP}/configmaps/copy", None),
        ("DELETE", f"{SHOP}/configmaps", None),
        ("DELETE", f"{UP}/configmaps", None),
        ("DELETE", f"{UP}/configmaps/stranger", None),
        ("DELETE", "/api/v1/namespaces/shop", None),
        ("DELETE", "/api/v1/namespaces/up", None),
        ("POST", f"{SHOP}/configmaps", report("mine")),
        ("POST", f"{UP}/configmaps", config_map("unmarked")),
        ("POST", f"{UP}/configmaps", report("both", labels={"edge.kcp.io/projected": "yes"})),
        ("POST", f"{UP}/configmaps", report("held", finalizers=["a.b/c"])),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {}}),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {}}),
    ]  # fmt: skip


@in_edge_hub
async def test_an_edge_writes_nothing_that_is_not_a_syncers(hub: EdgeHub) -> None:
    edge = await joined(hub)
    await edge.ask("POST", LEASES, lease_of())
    before = await state(hub)
    for method, path, obj in refused_writes(edge):
        kind = MERGE if method == "PATCH" else "application/json"
        reply = await edge.ask(method, path, obj, content_type=kind)
        assert reply.status == 403, (method, path, reply.body)
    assert await state(hub) == before


@in_edge_hub
async def test_a_batch_gives_an_edge_nothing_more(hub: EdgeHub) -> None:
    edge = await joined(hub)
    before = await state(hub)
    parts = [
        {
            "method": method,
            "path": path,
            "body": obj or {},
            "contentType": MERGE if method == "PATCH" else "application/json",
        }
        for method, path, obj in refused_writes(edge)
    ]
    answer = await edge.answer("POST", "/extensions/v1/batch", {"requests": parts})
    assert isinstance(answer, Stream)
    sender = MemorySender()
    await answer.run(sender)
    (received,) = await seen(sender, 1)
    assert {each["code"] for each in received["answers"]} <= {403, 404}
    assert await state(hub) == before


async def state(hub: EdgeHub) -> dict[str, tuple[int, bytes]]:
    found = (await hub.running.api.store.range("/")).entries
    return {entry.key: (entry.revision, entry.value) for entry in found}


# -- copies --------------------------------------------------------------------------------------


@in_edge_hub
async def test_an_edge_marks_copies_and_writes_their_status(hub: EdgeHub) -> None:
    edge = await joined(hub)
    path = f"{SHOP}/configmaps/copy"
    for target in (path, f"{ROLES}/copied-role", f"{SHOP}/secrets/copied"):
        reply = await edge.ask("PATCH", target, MARK, content_type=MERGE)
        assert reply.status == 200, (target, reply.body)
    error = {
        "metadata": {
            "annotations": {
                "edge.kcp.io/sync-error": "x",
                "edge.kcp.io/applied": None,
                "edge.kcp.io/cause": "x" * 256,
            }
        }
    }
    assert (await edge.ask("PATCH", path, error, content_type=MERGE)).status == 200
    status = await edge.ask(
        "PATCH", f"{CONFIGS}/the-one/status", {"status": {"lastSyncerHeartbeatTime": None,
                                                          "conditions": []}},
        content_type=MERGE,
    )  # fmt: skip
    assert status.status == 200, status.body


CHANGES: tuple[tuple[str, Any], ...] = (
    (MERGE, {"data": {"a": "2"}}),
    (MERGE, {"metadata": {"labels": {"edge.kcp.io/projected": None}}}),
    (MERGE, {"metadata": {"labels": {"more": "x"}}}),
    (MERGE, {"metadata": {"annotations": {"mine": "x"}}}),
    (MERGE, {"metadata": {"annotations": {"edge.kcp.io/upsynced": "true"}}}),
    (MERGE, {"metadata": {"annotations": {"edge.kcp.io/applied": "x" * 2000}}}),
    (MERGE, {"metadata": {"annotations": {"edge.kcp.io/cause": "x" * 257}}}),
    (MERGE, {"metadata": {"finalizers": ["a.b/c"]}}),
    (MERGE, {"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Secret", "name": "x", "uid": "y"}]}}),
    (MERGE, {"immutable": True}),
    (JSON_PATCH, [{"op": "remove", "path": "/data/a"}]),
    (JSON_PATCH, [{"op": "remove", "path": "/metadata/labels"}]),
    ("application/strategic-merge-patch+json", {"data": {"b": "2"}}),
    (APPLY, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy"},
             "data": {"a": "3"}}),
)  # fmt: skip


@in_edge_hub
async def test_an_edge_changes_nothing_else_of_a_copy(hub: EdgeHub) -> None:
    edge = await joined(hub)
    path = f"{SHOP}/configmaps/copy"
    before = await hub.get(edge.mailbox, path)
    for kind, change in CHANGES:
        query = "?fieldManager=x&force=true" if kind == APPLY else ""
        reply = await edge.ask("PATCH", f"{path}{query}", change, content_type=kind)
        assert reply.status == 403, (change, reply.body)
    put = {**before, "data": {"a": "9"}}
    assert (await edge.ask("PUT", path, put)).status == 403
    assert await hub.get(edge.mailbox, path) == before


@in_edge_hub
async def test_a_stranger_in_a_namespace_of_copies_is_not_marked(hub: EdgeHub) -> None:
    edge = await joined(hub)
    for path in (f"{SHOP}/configmaps/stranger", f"{SHOP}/secrets/stranger"):
        reply = await edge.ask("PATCH", path, MARK, content_type=MERGE)
        assert reply.status == 403, path


# -- reports -------------------------------------------------------------------------------------


@in_edge_hub
async def test_an_edge_creates_changes_and_deletes_its_reports(hub: EdgeHub) -> None:
    edge = await joined(hub)
    body = {**report("mine"), "data": {"a": "1"}}
    path = f"{UP}/configmaps/mine"
    query = "?fieldManager=skerry-syncer-upsync&force=true"
    made = await edge.ask("PATCH", f"{path}{query}", body, content_type=APPLY)
    assert made.status == 201, made.body
    body["data"]["a"] = "2"
    assert (await edge.ask("PATCH", f"{path}{query}", body, content_type=APPLY)).status == 200
    assert (await edge.ask("POST", f"{UP}/configmaps", report("posted"))).status == 201
    for change in (
        {"metadata": {"annotations": {"edge.kcp.io/upsynced": None}}},
        {"metadata": {"labels": {"edge.kcp.io/projected": "yes"}}},
        {"metadata": {"finalizers": ["a.b/c"]}},
    ):
        assert (await edge.ask("PATCH", path, change, content_type=MERGE)).status == 403, change
    assert (await edge.ask("DELETE", path)).status == 200


@in_edge_hub
async def test_a_report_can_be_taken_back_after_its_rule_is_gone(hub: EdgeHub) -> None:
    edge = await joined(hub)
    assert (await edge.ask("POST", f"{UP}/configmaps", report("mine"))).status == 201
    await hub.ask(
        "kcp-admin",
        "PATCH",
        f"/clusters/{edge.mailbox}{CONFIGS}/the-one",
        {"spec": {"upsync": []}},
        content_type=MERGE,
    )
    path = f"{UP}/configmaps/mine"
    await hub.settled()
    assert (await edge.ask("PATCH", path, {"data": {"a": "b"}}, content_type=MERGE)).status == 403
    assert (await edge.ask("DELETE", path)).status == 200


@in_edge_hub
async def test_namespaces_that_reports_need_are_made_bare(hub: EdgeHub) -> None:
    rule = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["new"], "names": ["*"]}
    edge = await (await hub.edge(spec={"upsync": [rule]})).join()
    bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    path = "/api/v1/namespaces/new?fieldManager=x&force=true"
    labelled = {**bare, "metadata": {"name": "new", "labels": {"a": "b"}}}
    assert (await edge.ask("PATCH", path, labelled, content_type=APPLY)).status == 403
    assert (await edge.ask("PATCH", path, bare, content_type=APPLY)).status == 201
    # It is no report and no copy from then on.
    assert (await edge.ask("PATCH", path, bare, content_type=APPLY)).status == 403
    place = "/api/v1/namespaces/new/configmaps"
    assert (await edge.ask("POST", place, report("mine"))).status == 201
    assert (await edge.ask("DELETE", "/api/v1/namespaces/new")).status == 403


@in_edge_hub
async def test_a_rule_for_kinds_that_do_not_come_up_gives_no_namespaces(hub: EdgeHub) -> None:
    every = {"namespaces": ["*"], "names": ["*"]}
    rules = [
        {"apiGroup": "rbac.authorization.k8s.io", "resources": ["*"], **every},
        {"apiGroup": "", "resources": ["serviceaccounts"], **every},
        {"apiGroup": "edge.kcp.io", "resources": ["edgeplacements"], **every},
    ]
    edge = await (await hub.edge(spec={"upsync": rules})).join()
    reply = await edge.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    assert reply.status == 403


# -- heartbeats ----------------------------------------------------------------------------------


@in_edge_hub
async def test_a_heartbeat_has_the_hubs_time_and_a_bounded_duration(hub: EdgeHub) -> None:
    edge = await (await hub.edge()).join()
    later = "2099-01-01T00:00:00.000000Z"
    for seconds in (3601, 2**31 - 1):
        long = await edge.ask("POST", LEASES, lease_of(leaseDurationSeconds=seconds))
        assert long.status == 422
        assert long.body["details"]["causes"][0]["field"] == "spec.leaseDurationSeconds"
    forged = lease_of(renewTime=later, acquireTime=later)
    forged["metadata"]["managedFields"] = [
        {"manager": "x", "operation": "Update", "apiVersion": "coordination.k8s.io/v1",
         "time": "2099-01-01T00:00:00Z", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:spec": {"f:renewTime": {}}}}
    ]  # fmt: skip
    writes: list[Callable[[], Any]] = [
        lambda: edge.ask("POST", LEASES, forged),
        lambda: edge.ask("PATCH", LEASE, {"spec": {"renewTime": later}}, content_type=MERGE),
        lambda: edge.ask("PATCH", LEASE, forged, content_type=MERGE),
        lambda: edge.ask("PUT", LEASE, forged_again),
        lambda: edge.ask("PATCH", f"{LEASE}?fieldManager=y&force=true",
                         lease_of(renewTime=later), content_type=APPLY),
    ]  # fmt: skip
    for write in writes:
        reply = await write()
        assert reply.status in (200, 201), reply.body
        found = await hub.get(edge.mailbox, LEASE)
        version = found["metadata"]["resourceVersion"]
        forged_again = {**forged, "metadata": {**forged["metadata"], "resourceVersion": version}}
        soon = hub.clock.now() + timedelta(seconds=5)
        times = [found["spec"]["renewTime"], found["spec"]["acquireTime"]]
        times += [entry["time"] for entry in found["metadata"]["managedFields"]]
        assert all(parse_rfc3339(time) < soon for time in times), times
    # Whoever owns the time that is there already claims to have written it in 2099.
    claims: list[dict[str, Any]] = [
        {"f:spec": {"f:renewTime": {}}},
        {"f:spec": {"f:renewTime": {}, "f:holderIdentity": {}}},
        {"f:metadata": {"f:labels": {}}, "f:spec": {"f:renewTime": {}, "f:acquireTime": {}}},
    ]
    for fields in claims:
        present = await hub.get(edge.mailbox, LEASE)
        entry = {**forged["metadata"]["managedFields"][0], "fieldsV1": fields}
        for operation in ("Update", "Apply"):
            present["metadata"]["managedFields"] = [{**entry, "operation": operation}]
            reply = await edge.ask("PUT", LEASE, present)
            assert reply.status == 200, reply.body
            present = await hub.get(edge.mailbox, LEASE)
            times = [each["time"] for each in present["metadata"]["managedFields"]]
            assert all(parse_rfc3339(time).year < 2099 for time in times), times
    for seconds in (2**31 - 1, 0, -5):
        change = {"spec": {"leaseDurationSeconds": seconds}}
        assert (await edge.ask("PATCH", LEASE, change, content_type=MERGE)).status == 422
    held = {"metadata": {"finalizers": ["a.b/c"]}}
    assert (await edge.ask("PATCH", LEASE, held, content_type=MERGE)).status == 403
