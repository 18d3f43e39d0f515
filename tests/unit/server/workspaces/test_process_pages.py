"""Pages of the hub's process are for whom the hub itself grants them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.server.hub import BINDINGS, Hub, HubPlace, binding, in_hub
from tests.kit.server.tenants import allow, group, home, robot, shop, user

PAGES = ("/metrics", "/metrics/", "/metrics/slis", "/debug/pprof", "/debug")


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    users = 'mon-token,mon,mon,"system:monitoring"\n'
    return HubPlace(tmp_path, users=users)


@in_hub
async def test_no_right_of_a_workspace_opens_a_page_of_the_process(hub: Hub) -> None:
    where = await shop(hub, group("system:authenticated"))
    mine = await home(hub, "alice")
    token = await robot(hub, mine, "alice")
    pages = {"nonResourceURLs": ["*"], "verbs": ["*"]}
    await allow(hub, mine, "pages", [pages], user("alice"), group("system:authenticated"))
    await hub.create(mine, BINDINGS, binding("w", "root:org:shop", "widgets"), "alice")
    await hub.create(
        where, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {"metadata": {"name": "own"}, "subjects": [user("alice")],
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                     "name": "cluster-admin"}},
    )  # fmt: skip
    doors = ["", f"/clusters/{mine}", "/clusters/user:alice", "/clusters/root:org:shop",
             "/clusters/root", "/clusters/*", "/clusters/system:admin", "/clusters/nowhere",
             f"/services/apiexport/{where}/widgets/clusters/{mine}",
             f"/services/apiexport/{where}/widgets/clusters/*",
             f"/services/initializingworkspaces/{mine}:x/clusters/{mine}"]  # fmt: skip
    for door in doors:
        for page in PAGES:
            for asking in ("alice", token, ""):
                reply = await hub.ask(asking, "GET", f"{door}{page}")
                assert reply.status in (401, 403), (door, page, asking, reply.body)
            disguise = {"impersonate_user": "x", "impersonate_group": "system:monitoring"}
            reply = await hub.ask("alice", "GET", f"{door}{page}", **disguise)
            assert reply.status in (401, 403), (door, page, reply.body)


@in_hub
async def test_whom_the_hub_grants_them_they_are_open_below_any_workspace(hub: Hub) -> None:
    for asking in ("kcp-admin", "shard-admin"):
        for door in ("", "/clusters/root"):
            reply = await hub.ask(asking, "GET", f"{door}/metrics")
            assert reply.status == 200, (asking, door, reply.body)
    assert (await hub.ask("mon-token", "GET", "/metrics")).status == 200
    assert (await hub.ask("mon-token", "GET", "/clusters/root/metrics")).status == 200
    # Not in a view: there is nothing of the process there.
    where = await shop(hub)
    view = f"/services/apiexport/{where}/widgets/clusters/*"
    assert (await hub.ask("kcp-admin", "GET", f"{view}/metrics")).status == 403


@in_hub
async def test_health_is_everybodys_as_before(hub: Hub) -> None:
    for door in ("", "/clusters/root", "/clusters/nowhere"):
        for page in ("/healthz", "/livez", "/readyz"):
            assert (await hub.ask("", "GET", f"{door}{page}")).status == 200, (door, page)
