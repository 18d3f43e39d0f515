"""No tenant and no edge fills the store: default limits of workspaces and mailboxes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from skerry.app.settings import StoreSettings
from skerry.logic.machinery.workspaces.limits import (
    KIND_LIMITS,
    MAX_BYTES,
    MAX_OBJECTS,
    MAX_TREE_OBJECTS,
    MAX_TREE_WORKSPACES,
    Limits,
    tree_of,
)
from skerry.store.base import Store
from tests.kit.server.edges import EdgeHub, running_edge_hub
from tests.kit.server.hub import CLUSTERS, CONFIG_MAPS, WORKSPACES, workspace

MERGE = "application/merge-patch+json"


def config_map(name: str, size: int = 1, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"a": "x" * size}}


async def annotate(hub: EdgeHub, user: str, cluster: str, **values: str) -> int:
    names = {
        "objects": MAX_OBJECTS,
        "bytes": MAX_BYTES,
        "tree_objects": MAX_TREE_OBJECTS,
        "tree_workspaces": MAX_TREE_WORKSPACES,
    }
    change = {"metadata": {"annotations": {names[k]: v for k, v in values.items()}}}
    path = f"/clusters/{cluster}{CLUSTERS}/cluster"
    return (await hub.ask(user, "PATCH", path, change, content_type=MERGE)).status


async def ask(hub: EdgeHub, user: str, cluster: str, method: str, path: str, obj: Any) -> Any:
    kind = {"PATCH": MERGE}.get(method, "application/json")
    return await hub.ask(user, method, f"/clusters/{cluster}{path}", obj, content_type=kind)


async def counted(hub: EdgeHub) -> None:
    while not hub.running.api.usage.complete:  # type: ignore[attr-defined]
        await hub.settled()


def used(hub: EdgeHub, cluster: str) -> Any:
    return hub.running.api.usage.of(cluster)  # type: ignore[attr-defined]


async def test_a_full_workspace_takes_no_further_object_however_it_is_made(tmp_path: Path) -> None:
    async with running_edge_hub(tmp_path) as hub:
        await counted(hub)
        shop = await hub.workspace("root", "shop", admin="alice")
        room = used(hub, shop).objects + 1
        assert await annotate(hub, "kcp-admin", shop, objects=str(room)) == 200
        assert (await ask(hub, "alice", shop, "POST", CONFIG_MAPS, config_map("a"))).status == 201
        await hub.settled()
        refused = await ask(hub, "alice", shop, "POST", CONFIG_MAPS, config_map("b"))
        assert refused.status == 403
        assert (
            f"exceeded quota: workspace, requested: objects=1, used: objects={room}"
            in (refused.body["message"])
        )
        applied = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("c")}
        path = f"/clusters/{shop}{CONFIG_MAPS}/c?fieldManager=m"
        for reply in (
            await hub.ask(
                "alice", "PATCH", path, applied, content_type="application/apply-patch+yaml"
            ),
            await ask(
                hub,
                "alice",
                shop,
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/default/leases/l",
                {"metadata": {"name": "l"}, "spec": {}},
            ),
            await ask(
                hub, "alice", shop, "POST", CONFIG_MAPS, config_map("", generateName="generated-")
            ),
            await ask(hub, "alice", shop, "POST", "/api/v1/namespaces", config_map("n")),
        ):
            assert reply.status == 403, reply.body
        # What is there can be changed and deleted, and then there is room again.
        assert (
            await ask(hub, "alice", shop, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"b": "c"}})
        ).status == 200
        assert (await ask(hub, "alice", shop, "DELETE", f"{CONFIG_MAPS}/a", None)).status == 200
        await hub.settled()
        assert (await ask(hub, "alice", shop, "POST", CONFIG_MAPS, config_map("b"))).status == 201
        # Administrators of the hub, and so its controllers, are not kept from repairing.
        await hub.create(shop, CONFIG_MAPS, config_map("d"))


async def test_a_workspace_full_of_bytes_lets_objects_shrink_and_not_grow(tmp_path: Path) -> None:
    async with running_edge_hub(tmp_path) as hub:
        await counted(hub)
        shop = await hub.workspace("root", "shop", admin="alice")
        await hub.create(shop, CONFIG_MAPS, config_map("a", 5000))
        await hub.settled()
        limit = used(hub, shop).bytes - 1000
        assert await annotate(hub, "kcp-admin", shop, bytes=str(limit)) == 200
        one = f"{CONFIG_MAPS}/a"
        grown = await ask(hub, "alice", shop, "PATCH", one, {"data": {"a": "x" * 6000}})
        assert (grown.status, "limited: bytes=" in grown.body["message"]) == (403, True)
        assert (await ask(hub, "alice", shop, "PATCH", one, {"data": {"a": "x"}})).status == 200


async def test_only_administrators_of_the_hub_change_what_a_workspace_may_hold(
    tmp_path: Path,
) -> None:
    async with running_edge_hub(tmp_path) as hub:
        shop = await hub.workspace("root", "shop", admin="alice")
        assert await annotate(hub, "alice", shop, objects="0") == 403
        assert await annotate(hub, "kcp-admin", shop, objects="7") == 200
        assert await annotate(hub, "alice", shop, objects="8") == 403
        for wrong in ("-1", "many", "1e3"):
            assert await annotate(hub, "kcp-admin", shop, objects=wrong) == 422
            assert await annotate(hub, "kcp-admin", shop, bytes=wrong) == 422


async def test_an_edge_cannot_fill_its_mailbox(tmp_path: Path) -> None:
    async with running_edge_hub(tmp_path, mailbox_limits=Limits(objects=60)) as hub:
        await counted(hub)
        edge = await (await hub.edge()).join()
        path = "/api/v1/namespaces/up/configmaps"
        statuses = []
        for number in range(60):
            note = {"edge.kcp.io/upsynced": "true"}
            report = config_map(f"r{number}", annotations=note)
            statuses.append((await edge.ask("POST", path, report)).status)
            await hub.settled()
        assert statuses[0] == 201
        assert statuses[-1] == 403
        assert used(hub, edge.mailbox).objects == 60


async def test_one_object_written_again_and_again_does_not_fill_the_store(tmp_path: Path) -> None:
    async with running_edge_hub(tmp_path, compaction_mib=1) as hub:
        shop = await hub.workspace("root", "shop", admin="alice")
        await hub.create(shop, CONFIG_MAPS, config_map("a"))
        for number in range(30):
            change = {"data": {"a": f"{number % 10}" * 100_000}}
            reply = await ask(hub, "alice", shop, "PATCH", f"{CONFIG_MAPS}/a", change)
            assert reply.status == 200
        store = hub.running.api.store
        async with asyncio.timeout(60):
            while await _history_bytes(store) > 1_200_000:
                await hub.settled()
        reply = await hub.ask("alice", "GET", f"/clusters/{shop}{CONFIG_MAPS}/a")
        assert reply.body["data"]["a"][0] == "9"


async def _history_bytes(store: Store) -> int:
    kept = await store.history("", after=await store.compacted())
    return sum(len(event.value or b"") for event in kept)


async def test_a_tree_of_workspaces_is_limited_as_a_whole(tmp_path: Path) -> None:
    limits = Limits(workspaces=3)
    async with running_edge_hub(tmp_path, tree_limits=limits) as hub:
        await counted(hub)
        shop = await hub.workspace("root", "shop", admin="alice")
        other = await hub.workspace("root", "other", admin="bob")
        made = [await ask(hub, "alice", shop, "POST", WORKSPACES, workspace(f"w{n}")) for n in "ab"]
        assert [each.status for each in made] == [201, 201]
        below = made[0].body["spec"]["cluster"]
        await hub.settled()
        for where in (shop, below):
            refused = await ask(hub, "alice", where, "POST", WORKSPACES, workspace("more"))
            assert refused.status == 403
            expected = "exceeded quota: root:shop, requested: workspaces=1, used: workspaces=3"
            assert expected in refused.body["message"]
        assert (await ask(hub, "bob", other, "POST", WORKSPACES, workspace("b"))).status == 201
        assert await annotate(hub, "alice", shop, tree_workspaces="9") == 403
        assert await annotate(hub, "kcp-admin", shop, tree_workspaces="4") == 200
        assert (await ask(hub, "alice", below, "POST", WORKSPACES, workspace("x"))).status == 201


async def test_objects_of_all_workspaces_of_a_tree_count_together(tmp_path: Path) -> None:
    async with running_edge_hub(tmp_path) as hub:
        await counted(hub)
        shop = await hub.workspace("root", "shop", admin="alice")
        made = await ask(hub, "alice", shop, "POST", WORKSPACES, workspace("below"))
        below = made.body["spec"]["cluster"]
        await hub.settled()
        held = used(hub, shop).objects + used(hub, below).objects
        assert await annotate(hub, "kcp-admin", shop, tree_objects=str(held + 1)) == 200
        assert (await ask(hub, "alice", below, "POST", CONFIG_MAPS, config_map("a"))).status == 201
        await hub.settled()
        for where in (shop, below):
            refused = await ask(hub, "alice", where, "POST", CONFIG_MAPS, config_map("b"))
            assert (refused.status, "quota: root:shop" in refused.body["message"]) == (403, True)
        assert (await ask(hub, "alice", below, "DELETE", f"{CONFIG_MAPS}/a", None)).status == 200
        await hub.settled()
        assert (await ask(hub, "alice", shop, "POST", CONFIG_MAPS, config_map("b"))).status == 201


async def test_a_home_is_a_tree_of_its_own(tmp_path: Path) -> None:
    async with running_edge_hub(tmp_path, tree_limits=Limits(workspaces=2)) as hub:
        await counted(hub)
        home = (await hub.ask("alice", "GET", f"/clusters/root{WORKSPACES}/~")).body
        where = home["spec"]["cluster"]
        await hub.settled()
        assert (await ask(hub, "alice", where, "POST", WORKSPACES, workspace("a"))).status == 201
        await hub.settled()
        refused = await ask(hub, "alice", where, "POST", WORKSPACES, workspace("b"))
        assert refused.status == 403, refused.body


@pytest.mark.parametrize("kind", sorted(KIND_LIMITS))
async def test_kinds_that_cost_much_memory_have_limits_of_their_own(
    tmp_path: Path, kind: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_edge_hub(tmp_path) as hub:
        await counted(hub)
        shop = await hub.workspace("root", "shop", "universal", admin="alice")
        await hub.settled()
        group, resource = kind
        used_now = hub.running.api.usage.of_kind(shop, kind)  # type: ignore[attr-defined]
        monkeypatch.setitem(KIND_LIMITS, kind, used_now)
        version = "v1" if group.endswith("k8s.io") else "v1alpha1"
        path = f"/apis/{group}/{version}/{resource}"
        refused = await ask(hub, "alice", shop, "POST", path, BODIES[resource])
        assert refused.status == 403
        assert f"requested: {resource}=1, used: {resource}={used_now}" in refused.body["message"]
        monkeypatch.setitem(KIND_LIMITS, kind, used_now + 1)
        allowed = await ask(hub, "alice", shop, "POST", path, BODIES[resource])
        assert allowed.status == 201, allowed.body


_VERSION = {"name": "v1", "served": True, "storage": True}
_NAMES = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
BODIES: dict[str, Any] = {
    "customresourcedefinitions": {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": _NAMES,
            "versions": [_VERSION | {"schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    },
    "apiresourceschemas": {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": "v1.things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": _NAMES,
            "versions": [_VERSION | {"schema": {"type": "object"}}],
        },
    },
    "apiexports": {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExport",
        "metadata": {"name": "example.com"},
        "spec": {},
    },
    "apibindings": {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIBinding",
        "metadata": {"name": "mine"},
        "spec": {"reference": {"export": {"name": "mine"}}},
    },
}


@pytest.mark.parametrize("again", [False, True])
async def test_the_count_equals_what_the_store_holds_also_after_a_restart(
    tmp_path: Path, again: bool
) -> None:
    store = StoreSettings(kind="sqlite", path=tmp_path / "store.db")
    async with running_edge_hub(tmp_path, store) as hub:
        shop = await hub.workspace("root", "shop", admin="alice")
        for name in ("one", "two"):
            await hub.workspace("root:shop", name)
        await hub.ask("kcp-admin", "DELETE", f"/clusters/{shop}{WORKSPACES}/two")
        await hub.gone(shop, f"{WORKSPACES}/two")
        for number in range(20):
            await hub.create(shop, CONFIG_MAPS, config_map(f"c{number}", number * 10))
        for number in range(0, 20, 3):
            await ask(hub, "alice", shop, "DELETE", f"{CONFIG_MAPS}/c{number}", None)
        await ask(hub, "alice", shop, "PATCH", f"{CONFIG_MAPS}/c1", {"data": {"b": "x" * 300}})
        if not again:
            await _compare(hub)
    if again:
        async with running_edge_hub(tmp_path, store) as hub:
            await _compare(hub)


async def _compare(hub: EdgeHub) -> None:
    await counted(hub)
    await hub.settled()
    found: dict[str, list[int]] = {}
    for entry in (await hub.running.api.store.range("/")).entries:
        parts = entry.key.split("/", 5)
        if len(parts) == 6:
            total = found.setdefault(parts[3], [0, 0])
            total[0] += 1
            total[1] += len(entry.value)
    assert found
    assert {cluster: list(used(hub, cluster))[:2] for cluster in found} == found
    trees: dict[str, list[int]] = {}
    clusters = hub.running.api.state.clusters  # type: ignore[attr-defined]
    for name, known in clusters.items():
        if tree_of(known.path):
            total = trees.setdefault(tree_of(known.path), [0, 0, 0])
            for index, number in enumerate((*found.get(name, (0, 0)), 1)):
                total[index] += number
    usage = hub.running.api.usage  # type: ignore[attr-defined]
    seen = {usage.tree(name)[0]: list(usage.tree(name)[2]) for name in clusters if usage.tree(name)}
    assert seen == trees
    assert trees
