"""An edge's identity: a syncer's work in its mailbox, nothing elsewhere, and gone when revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from skerry.api.edge import HEARTBEAT_LEASE, SYNCER_CONFIGS
from skerry.api.edge_identity import account_name
from skerry.api.errors import ApiError, Forbidden, Unauthorized
from skerry.api.kcp.resources import SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.app.edge_identity import NoMailbox, edge_of, manifest, revoke
from skerry.edge.syncer.identity.token import HubToken, claims_of
from skerry.runtime.client import Client, Selection
from skerry.runtime.kubeconfig import connect, load
from skerry.runtime.transport import lines
from tests.kit.e2e.edges import ForeignEdge
from tests.kit.e2e.hubs import Hub
from tests.kit.e2e.places import CONFIG_MAPS, ESPW, IMW, NAMESPACES, Places, workspace

SECRETS = GroupVersionResource("", "v1", "secrets")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDERS = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")


async def edge_client(places: Places, prefix: str | None = None) -> Client:
    """Return a client with the edge's certificate; *prefix* replaces its workspace."""
    config = await places.joined()
    if prefix is not None:
        base = config.server.partition("/clusters/")[0]
        config = replace(config, server=base + prefix)
    return Client(connect(config))


async def test_an_edge_may_touch_its_mailbox_and_nothing_else(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await places.configure()
        mine = await edge_client(places)
        await mine.list(NAMESPACES)
        await mine.list(SYNCER_CONFIGS)
        await mine.create(LEASES, {"metadata": {"name": HEARTBEAT_LEASE}, "spec": {}}, "default")
        other = await places.access.at(ESPW).create(WORKSPACES, workspace("x-mb-y"))
        elsewhere = (
            "",
            "/clusters/root",
            f"/clusters/{ESPW}",
            f"/clusters/{IMW}",
            "/clusters/root:compute",
            "/clusters/*",
            "/clusters/system:admin",
            f"/clusters/{ESPW}:x-mb-y",
            f"/clusters/{other['spec'].get('cluster', 'none')}",
            "/services/apiexport/root/workload.kcp.io/clusters/*",
        )
        for prefix in elsewhere:
            refused = await edge_client(places, prefix)
            for gvr in (NAMESPACES, SYNC_TARGETS, WORKSPACES, SYNCER_CONFIGS, ROLES, CONFIG_MAPS):
                with pytest.raises(ApiError) as caught:
                    await refused.list(gvr)
                assert caught.value.code in (401, 403, 404), (prefix, gvr)
                with pytest.raises(ApiError):
                    await refused.create(gvr, {"metadata": {"name": "evil"}}, "default")
            await refused.transport.close()
        await mine.transport.close()


async def test_bootstrapping_gives_nobody_an_account(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await places.bootstrap()
        client = places.in_mailbox
        for gvr in (ACCOUNTS, ROLES, BINDERS):
            names = [item["metadata"]["name"] for item in (await client.list(gvr)).items]
            assert not [name for name in names if "syncer" in name]
        tokens = [item["type"] for item in (await client.list(SECRETS)).items]
        assert set(tokens) == {"edge.kcp.io/bootstrap-token"}
        with pytest.raises(NoMailbox):
            await edge_of(places.access, "nobody", IMW, ESPW, wait_seconds=0.1)


async def test_the_manifest_asks_for_no_more_than_what_is_placed(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await places.configure()
        text = await manifest(
            places.access, places.name, places.mailbox, image="i", kubeconfig={"kind": "Config"}
        )
        assert '"*"' not in text
        assert "'*'" not in text
        assert "deployments" in text
        trusted = await manifest(
            places.access, places.name, places.mailbox, image="i", kubeconfig=None, admin=True
        )
        assert "'*'" in trusted


async def test_a_token_is_renewed_by_its_bearer(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        given = await places.bootstrap_account()
        client = Client(connect(load([places.hub_kubeconfig])))
        token = HubToken(given, tmp_path / "token")
        claims = claims_of(given)
        assert claims is not None
        await token._renew(client, claims)
        renewed = (tmp_path / "token").read_text()
        assert renewed != given
        later = claims_of(renewed)
        assert later is not None
        assert later.name == claims.name
        # The newer of file and kubeconfig counts from then on.
        HubToken(given, tmp_path / "token")
        assert (tmp_path / "token").read_text() == renewed
        await client.transport.close()


async def test_a_revoked_edge_is_refused(tmp_path: Path, hub: Hub, edge: ForeignEdge) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await places.configure()
        client = await edge_client(places)
        await client.list(NAMESPACES)
        await revoke(places.access, places.name, places.mailbox)
        with pytest.raises((Unauthorized, Forbidden)):
            await client.list(NAMESPACES, Selection())
        async with asyncio.timeout(60):
            with pytest.raises((Unauthorized, Forbidden)):
                await client.create(CONFIG_MAPS, {"metadata": {"name": "x"}}, "default")
        await client.transport.close()


async def test_an_edge_does_in_its_mailbox_what_a_syncer_does_and_no_more(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await places.configure()
        await places.put(CONFIG_MAPS, "page", {"data": {"a": "1"}})
        mine = await edge_client(places)
        mark = {"metadata": {"annotations": {"edge.kcp.io/applied": "1-a"}}}
        await mine.patch(CONFIG_MAPS, "page", mark, "shop")
        name = account_name(places.name)
        more = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["update"]}]}
        page = {**await mine.get(CONFIG_MAPS, "page", "shop"), "data": {"a": "2"}}
        refused: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: mine.get(ROLES, name),
            lambda: mine.update(CONFIG_MAPS, page),
            lambda: mine.delete_collection(CONFIG_MAPS, Selection(namespace="shop")),
            lambda: mine.patch(ROLES, name, more),
            lambda: mine.create(ROLES, {"metadata": {"name": "more"}, **more}),
            lambda: mine.create(BINDERS, binding_to("cluster-admin", name)),
            lambda: acting_as(mine, "system:masters"),
        )
        for attempt in refused:
            with pytest.raises(Forbidden):
                await attempt()
        await mine.transport.close()


async def acting_as(client: Client, group: str) -> None:
    headers = {"impersonate-user": "somebody", "impersonate-group": group}
    answer = await client.transport.request("GET", client.path(NAMESPACES), "", headers)
    if answer.status == 403:
        raise Forbidden(answer.body.decode())


def binding_to(role: str, account: str) -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    return {
        "metadata": {"name": "more"},
        "roleRef": {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


async def test_revocation_ends_the_stream_of_all_watches_at_once(
    tmp_path: Path, hub: Hub, edge: ForeignEdge
) -> None:
    async with Places(tmp_path, hub, edge).running() as places:
        await places.configure()
        client = await edge_client(places)
        watches = [{"id": "maps", "version": "v1", "resource": "configmaps"}]
        body = orjson.dumps({"watches": watches})
        path = (await client.extensions())["multiplexed-watch"]
        headers = {"content-type": "application/json"}
        async with client.transport.stream("POST", path, "", headers, body) as answer:
            assert answer.status == 200
            events = lines(aiter(answer))
            async for line in events:
                if "watch" not in orjson.loads(line):
                    break  # all watches have caught up
            await revoke(places.access, places.name, places.mailbox)
            async with asyncio.timeout(60):
                rest = [orjson.loads(line) async for line in events]
            # It may learn first that it lost the right to a type; then it ends.
            assert all(event["type"] == "ERROR" for event in rest)
        with pytest.raises((Unauthorized, Forbidden)):
            await client.list(CONFIG_MAPS)
        await client.transport.close()
