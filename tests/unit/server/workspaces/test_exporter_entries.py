"""Nobody reaches an edge by writing into a slice that a Location stands for it."""

from __future__ import annotations

from typing import Any

from tests.kit.server.edges import ESPW, EdgeHub, in_edge_hub
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    EXPORTS,
    ROLES,
    SCHEMAS,
    binding,
    export,
    grants,
    role,
    schema,
)

SLICES = "/apis/edge.kcp.io/v1alpha1/singleplacementslices"
MERGE = {"content_type": "application/merge-patch+json"}
APPLY = {"content_type": "application/apply-patch+yaml"}


def destination(**different: str) -> dict[str, str]:
    fields = {"cluster": "imw", "locationName": "eu", "syncTargetName": "us"}
    return {**fields, "syncTargetUID": "0f6ac5a4", **different}


def piece(name: str, *destinations: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "SinglePlacementSlice",
        "metadata": {"name": name},
        "destinations": list(destinations),
    }


async def tenant(hub: EdgeHub) -> str:
    """Make a workspace of alice's with the edge API; return its cluster."""
    cluster = await hub.workspace("root", "tenant", admin="alice")
    await hub.create(cluster, BINDINGS, binding("edge", ESPW, "edge.kcp.io"))
    return cluster


@in_edge_hub
async def test_an_administrator_of_a_workspace_adds_no_destination(hub: EdgeHub) -> None:
    cluster = await tenant(hub)
    await hub.create(cluster, SLICES, piece("p", destination(syncTargetName="eu")))
    path = f"/clusters/{cluster}{SLICES}"
    body = piece("p", destination())
    attempts = [
        await hub.ask("alice", "POST", path, piece("q", destination())),
        await hub.ask("alice", "PUT", f"{path}/p", body),
        await hub.ask("alice", "PATCH", f"{path}/p", {"destinations": [destination()]}, **MERGE),
        await hub.ask("alice", "PATCH", f"{path}/p?fieldManager=a&force=true", body, **APPLY),
        await hub.ask("alice", "PATCH", f"{path}/q?fieldManager=a", body, **APPLY),
    ]
    for reply in attempts:
        assert reply.status in (400, 403, 409, 422), reply.body
    kept = await hub.get(cluster, SLICES)
    [only] = kept["items"]
    assert [each["syncTargetName"] for each in only["destinations"]] == ["eu"]


@in_edge_hub
async def test_other_writes_to_slices_are_an_administrators_still(hub: EdgeHub) -> None:
    cluster = await tenant(hub)
    await hub.create(cluster, SLICES, piece("p", destination()))
    path = f"/clusters/{cluster}{SLICES}"
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await hub.ask("alice", "PATCH", f"{path}/p", labels, **MERGE)).status == 200
    emptied = await hub.ask("alice", "PATCH", f"{path}/p", {"destinations": []}, **MERGE)
    assert emptied.status == 200, emptied.body
    assert (await hub.ask("alice", "POST", path, piece("q"))).status == 201
    assert (await hub.ask("alice", "DELETE", f"{path}/p")).status == 200


@in_edge_hub
async def test_the_exporters_view_writes_destinations_and_no_other_view(hub: EdgeHub) -> None:
    cluster = await tenant(hub)
    edge = await hub.get(ESPW, f"{EXPORTS}/edge.kcp.io")
    claim = {"group": "edge.kcp.io", "resource": "singleplacementslices", "all": True}
    claim["identityHash"] = edge["status"]["identityHash"]
    await hub.create(cluster, SCHEMAS, schema(), "alice")
    mine = export("edge.kcp.io", "v1.widgets.example.io", permissionClaims=[claim])
    await hub.create(cluster, EXPORTS, mine, "alice")
    accepted = [{**claim, "state": "Accepted"}]
    agreeing = binding("mine", "root:tenant", "edge.kcp.io", permissionClaims=accepted)
    await hub.create(cluster, BINDINGS, agreeing, "alice")
    body = piece("q", destination())
    view = f"/services/apiexport/{cluster}/edge.kcp.io/clusters/{cluster}{SLICES}"
    reply = await hub.ask("alice", "POST", view, body)
    assert reply.status == 403, reply.body
    assert "edge scheduler" in reply.body["message"]
    provider = edge["metadata"]["annotations"]["kcp.io/cluster"]
    view = f"/services/apiexport/{provider}/edge.kcp.io/clusters/{cluster}{SLICES}"
    assert (await hub.ask("alice", "POST", view, body)).status == 403
    content = {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports/content"], "verbs": ["*"]}
    enter = {"nonResourceURLs": ["/"], "verbs": ["access"]}
    await hub.create(ESPW, ROLES, role("content", content, enter))
    await hub.create(ESPW, BINDERS, grants("content", "content", "bob"))
    made = await hub.ask("bob", "POST", view, body)
    assert made.status == 201, made.body
