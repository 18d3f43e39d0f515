"""Copies of tenants' objects in a mailbox let nobody in, whatever they look like.

The placement translator writes with the rights of the hub, so what it carries must not be taken
for what an administrator of the mailbox wrote there.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from skerry.api.edge_identity import BootstrapToken, bootstrap_secret
from skerry.kit.timestamps import rfc3339
from tests.kit.server.edges import (
    REQUESTS,
    SECRETS,
    Edge,
    EdgeHub,
    in_edge_hub,
    running_edge_hub,
)
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    EXPORTS,
    SCHEMAS,
    binding,
    export,
    grants,
    schema,
)

PROJECTED = {"labels": {"edge.kcp.io/projected": "yes"}}
UPSYNCED = {"annotations": {"edge.kcp.io/upsynced": "true"}}
TOKEN = BootstrapToken("abc123", "s" * 43)


def minted(edge: Edge, *, approved: bool = True, **metadata: Any) -> dict[str, Any]:
    ends = rfc3339(edge.hub.clock.now() + timedelta(hours=1))
    secret = bootstrap_secret(TOKEN, sync_target=edge.target, expiration=ends, approved=approved)
    secret["metadata"] |= metadata
    return secret


@pytest.mark.parametrize("mark", [PROJECTED, UPSYNCED, PROJECTED | UPSYNCED])
@pytest.mark.parametrize("approved", [True, False])
async def test_what_passes_through_a_mailbox_is_no_bootstrap_credential(
    tmp_path: Any, mark: dict[str, Any], approved: bool
) -> None:
    async with running_edge_hub(tmp_path) as hub:
        edge = await hub.edge()
        path = f"/clusters/{edge.mailbox}{SECRETS}"
        reply = await hub.ask("kcp-admin", "POST", path, minted(edge, approved=approved, **mark))
        assert reply.status == 422, reply.body
        assert "type" in reply.body["message"]
        assert (await edge.request(TOKEN)).status == 401


@in_edge_hub
async def test_a_credential_that_a_copy_took_the_place_of_has_ended(hub: EdgeHub) -> None:
    edge = await hub.edge()
    await edge.credential()
    secret = f"/clusters/{edge.mailbox}{SECRETS}/bootstrap-token-abc123"
    patch = {"metadata": PROJECTED}
    kind = {"content_type": "application/merge-patch+json"}
    assert (await hub.ask("kcp-admin", "PATCH", secret, patch, **kind)).status == 200
    assert (await edge.request(TOKEN)).status == 401
    found = await hub.get(edge.mailbox, REQUESTS)
    assert found["items"] == []


CLAIMS = [
    {"group": "", "resource": "secrets", "all": True},
    {"group": "rbac.authorization.k8s.io", "resource": "clusterrolebindings", "all": True},
]


async def claiming(hub: EdgeHub, edge: Edge) -> tuple[str, dict[str, Any]]:
    """Make alice an exporter who claims Secrets; return her view, and a binding that accepts."""
    await edge.place("/api/v1/namespaces/shop/secrets", {"metadata": {"name": "bobs"}})
    mine = await hub.workspace("root", "evil", admin="alice")
    await hub.create(mine, SCHEMAS, schema(), "alice")
    claiming = export("widgets", "v1.widgets.example.io", permissionClaims=CLAIMS)
    await hub.create(mine, EXPORTS, claiming, "alice")
    accepted = [{**claim, "state": "Accepted"} for claim in CLAIMS]
    agreeing = binding("evil", "root:evil", "widgets", permissionClaims=accepted)
    return f"/services/apiexport/{mine}/widgets/clusters", agreeing


async def seen(hub: EdgeHub, view: str, mailbox: str) -> set[int]:
    """Ask for Secrets of the mailbox through *view*, and write there; return the codes."""
    listed = await hub.ask("alice", "GET", f"{view}/*/api/v1/secrets")
    assert not listed.body.get("items"), listed.body
    body = grants("mine", "cluster-admin", "alice")
    replies = [
        await hub.ask("alice", "GET", f"{view}/{mailbox}/api/v1/namespaces/shop/secrets/bobs"),
        await hub.ask("alice", "GET", f"{view}/{mailbox}/api/v1/namespaces/shop/secrets"),
        await hub.ask("alice", "POST", f"{view}/{mailbox}{BINDERS}", body),
    ]
    return {reply.status for reply in replies if reply.body.get("items") != []}


@in_edge_hub
async def test_a_copied_binding_agrees_to_no_claim(hub: EdgeHub) -> None:
    """Else whoever places a binding to an export of theirs reads what others placed."""
    edge = await hub.edge()
    view, agreeing = await claiming(hub, edge)
    placed = await edge.place(BINDINGS, agreeing)
    assert "appliedPermissionClaims" not in placed["status"]
    assert [each["resource"] for each in placed["status"]["boundResources"]] == ["widgets"]
    assert await seen(hub, view, edge.mailbox) <= {403, 404}


@in_edge_hub
async def test_a_binding_that_becomes_a_copy_agrees_no_longer(hub: EdgeHub) -> None:
    edge = await hub.edge()
    view, agreeing = await claiming(hub, edge)
    await hub.create(edge.mailbox, BINDINGS, agreeing)
    listed = await hub.ask("alice", "GET", f"{view}/*/api/v1/secrets")
    assert listed.body["items"], "an administrator of the mailbox agreed"
    path = f"/clusters/{edge.mailbox}{BINDINGS}/evil"
    kind = {"content_type": "application/merge-patch+json"}
    await hub.ask("kcp-admin", "PATCH", path, {"metadata": PROJECTED}, **kind)
    assert await seen(hub, view, edge.mailbox) <= {403, 404}
