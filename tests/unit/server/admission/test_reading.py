"""Whoever asks a query may read what it names."""

from __future__ import annotations

from typing import Any

from tests.kit.server.edges import ESPW, EdgeHub, in_edge_hub
from tests.kit.server.hub import BINDERS, BINDINGS, ROLES, binding, grants, role

QUERIES = "/apis/edge.kcp.io/v1alpha1/statusqueries"
MERGE = {"content_type": "application/merge-patch+json"}
QUERYING = {"apiGroups": ["edge.kcp.io"], "resources": ["statusqueries"], "verbs": ["*"]}
READING = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]}
ENTERING = {"nonResourceURLs": ["/"], "verbs": ["access"]}


def query(*resources: str, **more: Any) -> dict[str, Any]:
    source = {"apiGroup": "apps", "resources": list(resources)}
    spec = {"from": source, "aggregates": [{"name": "n", "function": "Count"}], **more}
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "StatusQuery",
        "metadata": {"name": "q"},
        "spec": spec,
    }


@in_edge_hub
async def test_a_query_needs_the_right_to_read_what_it_names(hub: EdgeHub) -> None:
    cluster = await hub.workspace("root", "tenant", admin="alice")
    await hub.create(cluster, BINDINGS, binding("edge", ESPW, "edge.kcp.io"))
    await hub.create(cluster, ROLES, role("bob", QUERYING, READING, ENTERING))
    await hub.create(cluster, BINDERS, grants("bob", "bob", "bob"))
    path = f"/clusters/{cluster}{QUERIES}"
    refused = await hub.ask("bob", "POST", path, query("secrets"))
    assert refused.status == 403, refused.body
    assert "secrets.apps, which you may not get" in refused.body["message"]
    made = await hub.ask("bob", "POST", path, query("deployments"))
    assert made.status == 201, made.body
    more = {"spec": {"from": {"apiGroup": "", "resources": ["secrets"]}}}
    assert (await hub.ask("bob", "PATCH", f"{path}/q", more, **MERGE)).status == 403
    other = {"metadata": {"labels": {"a": "b"}}}
    assert (await hub.ask("bob", "PATCH", f"{path}/q", other, **MERGE)).status == 200
    assert (await hub.ask("bob", "DELETE", f"{path}/q")).status == 200


@in_edge_hub
async def test_a_query_that_makes_no_sense_is_refused_with_its_field(hub: EdgeHub) -> None:
    cluster = await hub.workspace("root", "tenant", admin="alice")
    await hub.create(cluster, BINDINGS, binding("edge", ESPW, "edge.kcp.io"))
    path = f"/clusters/{cluster}{QUERIES}"
    reply = await hub.ask("alice", "POST", path, query("deployments", filter="1 +"))
    assert reply.status == 422
    assert "spec.filter" in reply.body["message"]
