"""Root's own exports bound what administrators of workspaces may do, claims included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skerry.store.open import StoreSettings
from tests.kit.server.hub import (
    BINDERS,
    BINDINGS,
    EXPORTS,
    LOCATIONS,
    ROLES,
    SYNC_TARGETS,
    WORKSPACES,
    Hub,
    HubPlace,
    binding,
    export,
    in_hub,
    running_hub,
    schema,
    workspace,
)
from tests.kit.server.tenants import TYPES, home, robot

MERGE = {"content_type": "application/merge-patch+json"}
PLACEMENTS = "/apis/scheduling.kcp.io/v1alpha1/placements"
IMPORTS = "/apis/apiresource.kcp.io/v1alpha1/apiresourceimports"
POLICY = "system:kcp:apiexport:{}:maximal-permission-policy"


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def made(group: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


KINDS = (
    (TYPES, made("tenancy.kcp.io", "WorkspaceType", "tt")),
    (WORKSPACES, workspace("w")),
    (PLACEMENTS, made("scheduling.kcp.io", "Placement", "p", locationResource={
        "group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"})),
    (LOCATIONS, made("scheduling.kcp.io", "Location", "l", resource={
        "group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"})),
    (IMPORTS, made("apiresource.kcp.io", "APIResourceImport", "i")),
)  # fmt: skip


@in_hub
async def test_a_workspaces_administrators_do_not_write_status_of_roots_types(hub: Hub) -> None:
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    for path, obj in KINDS:
        await hub.create(mine, path, obj, "alice")
        name, plural = obj["metadata"]["name"], path.rpartition("/")[2]
        where = f"/clusters/{mine}{path}/{name}"
        before = await hub.get(mine, f"{path}/{name}")
        for asking in ("alice", token):
            assert (await hub.ask(asking, "GET", f"{where}/status")).status == 200
            for method, body, headers in (
                ("PATCH", {"status": {"conditions": []}}, MERGE),
                ("PUT", before, {}),
                ("PATCH", {**obj, "status": {}}, {"content_type": "application/apply-patch+yaml"}),
                ("PATCH", [{"op": "remove", "path": "/status"}],
                 {"content_type": "application/json-patch+json"}),
            ):  # fmt: skip
                reply = await hub.ask(
                    asking, method, f"{where}/status?fieldManager=t", body, **headers
                )
                assert reply.status == 403, (asking, method, plural, reply.body)
                verb = {"PUT": "update"}.get(method, "patch")
                assert f'cannot {verb} resource "{plural}/status"' in reply.body["message"]
                assert reply.body["message"].endswith("at the cluster scope: access denied")
            touch = {"metadata": {"labels": {"a": asking[:1]}}}
            assert (await hub.ask(asking, "PATCH", where, touch, **MERGE)).status == 200
        found = await hub.get(mine, f"{path}/{name}")
        assert found.get("status") == before.get("status")


@in_hub
async def test_the_hubs_administrators_write_status_of_roots_types(hub: Hub) -> None:
    mine = await home(hub, "alice")
    change: dict[str, Any] = {"status": {"conditions": []}}
    for path, obj in KINDS:
        await hub.create(mine, path, obj, "alice")
        where = f"/clusters/{mine}{path}/{obj['metadata']['name']}/status"
        for asking in ("kcp-admin", "shard-admin"):
            assert (await hub.ask(asking, "PATCH", where, change, **MERGE)).status == 200, path


@in_hub
async def test_a_syncer_in_the_workspace_writes_status_of_its_sync_target(hub: Hub) -> None:
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    await hub.create(mine, SYNC_TARGETS, made("workload.kcp.io", "SyncTarget", "s"), "alice")
    path = f"/clusters/{mine}{SYNC_TARGETS}/s/status"
    for asking in ("alice", token):
        change = {"status": {"allocatable": {"cpu": "1"}}}
        assert (await hub.ask(asking, "PATCH", path, change, **MERGE)).status == 200


@in_hub
async def test_a_claim_on_roots_types_is_bounded_too(hub: Hub) -> None:
    mine = await home(hub, "alice")
    await hub.create(mine, TYPES, KINDS[0][1], "alice")
    identity = (await hub.get("root", f"{EXPORTS}/tenancy.kcp.io"))["status"]["identityHash"]
    claim = {"group": "tenancy.kcp.io", "resource": "workspacetypes", "all": True,
             "identityHash": identity}  # fmt: skip
    schemas = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas"
    await hub.create(mine, schemas, schema("gadgets"), "alice")
    await hub.create(
        mine, EXPORTS, export("g", "v1.gadgets.example.io", permissionClaims=[claim]), "alice"
    )
    accepted = [{**claim, "state": "Accepted"}]
    await hub.create(mine, BINDINGS, binding("g", mine, "g", permissionClaims=accepted), "alice")
    view = f"/services/apiexport/{mine}/g/clusters/{mine}{TYPES}/tt"
    assert (await hub.ask("alice", "GET", view)).status == 200
    evil = {"status": {"virtualWorkspaces": [{"url": "https://evil/"}]}}
    reply = await hub.ask("alice", "PATCH", f"{view}/status", evil, **MERGE)
    assert reply.status == 403, reply.body
    assert 'cannot patch resource "workspacetypes/status"' in reply.body["message"]


@in_hub
async def test_root_has_the_policies_of_kcp(hub: Hub) -> None:
    for name in ("tenancy", "scheduling", "workload", "apiresource", "topology"):
        spec = (await hub.get("root", f"{EXPORTS}/{name}.kcp.io"))["spec"]
        assert spec.get("maximalPermissionPolicy") == (
            None if name == "topology" else {"local": {}}
        )
        if name != "topology":
            assert (await hub.get("root", f"{ROLES}/{POLICY.format(name)}"))["rules"][0]["verbs"]
    bound = await hub.get(
        "root", f"{BINDERS}/system:kcp:authenticated:apiexport:tenancy:maximal-permission-policy"
    )
    assert bound["subjects"][0]["name"] == "apis.kcp.io:binding:system:authenticated"


async def test_a_root_of_the_version_before_gets_its_policies_once(tmp_path: Path) -> None:
    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    async with running_hub(tmp_path, store) as hub:
        mine = await home(hub, "alice")
        await hub.create(mine, TYPES, KINDS[0][1], "alice")
        for name in ("tenancy", "scheduling"):
            plain = f"/clusters/root{EXPORTS}/{name}.kcp.io"
            without = {"spec": {"maximalPermissionPolicy": None}}
            reply = await hub.ask("shard-admin", "PATCH", plain, without, **MERGE)
            assert reply.status == 200, reply.body
        # Of scheduling, an administrator has taken it off; of tenancy there is not even the role.
        for path, name in ((ROLES, POLICY.format("tenancy")), (
            BINDERS, "system:kcp:authenticated:apiexport:tenancy:maximal-permission-policy",
        )):  # fmt: skip
            reply = await hub.ask("shard-admin", "DELETE", f"/clusters/root{path}/{name}")
            assert reply.status == 200
    async with running_hub(tmp_path, store) as hub:
        assert (await hub.get("root", f"{EXPORTS}/tenancy.kcp.io"))["spec"][
            "maximalPermissionPolicy"
        ] == {"local": {}}
        kept = (await hub.get("root", f"{EXPORTS}/scheduling.kcp.io"))["spec"]
        assert "maximalPermissionPolicy" not in kept
        path = f"/clusters/{mine}{TYPES}/tt"
        change: dict[str, Any] = {"status": {"virtualWorkspaces": []}}
        assert (await hub.ask("alice", "PATCH", f"{path}/status", change, **MERGE)).status == 403
        touch = {"metadata": {"labels": {"a": "b"}}}
        assert (await hub.ask("alice", "PATCH", path, touch, **MERGE)).status == 200
