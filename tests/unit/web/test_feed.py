"""The console of a real hub, fed by its own informers: what is written is seen, within rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.kit.server.browser import Browser, BrowserTab
from tests.kit.server.hub import LOCATIONS, SYNC_TARGETS, Hub, grants, running_hub

VIEW = {"q": "", "by": "", "rows": [0, 50]}


def target(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
    }


async def seen(tab: BrowserTab, number: int, total: int) -> Any:
    """Wait until a subscription of the fleet counts *total* edges."""
    return await tab.until(
        lambda frame: (
            frame.get("id") == number
            and (frame.get("set") or frame.get("patch") or {}).get("total") == total
        )
    )


async def test_an_edge_appears_and_a_right_taken_away_empties_the_view(tmp_path: Path) -> None:
    async with running_hub(tmp_path, console=True, edge_provider=True) as hub:
        await _play(hub)


async def _play(hub: Hub) -> None:
    cluster = await hub.workspace("root", "inventory", admin="alice")
    await hub.create(cluster, SYNC_TARGETS, target("north", env="prod"))
    alice, bob = Browser(hub.running.console), Browser(hub.running.console)
    await alice.sign_in(hub, "alice")
    await bob.sign_in(hub, "bob")
    async with alice.tab() as mine, bob.tab() as theirs:
        for tab in (mine, theirs):
            await tab.frame()
            tab.send({"id": 1, "sub": "fleet", "view": VIEW})
        first = (await seen(mine, 1, 1))["set"]
        assert [(row["ws"], row["name"]) for row in first["rows"]] == [("root:inventory", "north")]
        assert (await seen(theirs, 1, 0))["set"]["rows"] == []
        await hub.create(cluster, SYNC_TARGETS, target("south", env="stage"))
        patch = (await seen(mine, 1, 2))["patch"]
        assert patch["counts"]["unknown"] == 2
        await hub.create(cluster, LOCATIONS, _location())
        mine.send({"id": 2, "sub": "fleet", "view": {**VIEW, "q": "tier=edge env=prod"}})
        found = await mine.until(lambda frame: frame.get("id") == 2)
        while found.get("set", found.get("patch", {})).get("matching") != 1:
            found = await mine.until(lambda frame: frame.get("id") == 2)
        await hub.create(cluster, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                         grants("bob", "cluster-admin", "bob"))  # fmt: skip
        await seen(theirs, 1, 2)
        await _take_away(hub, cluster, "bob")
        assert (await seen(theirs, 1, 0))["patch"]["rows"] == []
        children = await mine.ask(9, "children", ws="root:inventory")
        assert children == {"ws": "root:inventory", "children": []}
        assert (await theirs.ask(9, "children", ws="root:inventory"))["code"] == 403
        results = (await mine.ask(10, "search", q="nor"))["results"]
        assert results == [{"kind": "edge", "ws": "root:inventory", "name": "north"}]


def _location() -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": "prod", "labels": {"tier": "edge"}},
        "spec": {
            "resource": {
                "group": "workload.kcp.io",
                "version": "v1alpha1",
                "resource": "synctargets",
            },
            "instanceSelector": {"matchLabels": {"env": "prod"}},
        },
    }


async def _take_away(hub: Hub, cluster: str, name: str) -> None:
    path = f"/clusters/{cluster}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}"
    assert (await hub.ask("kcp-admin", "DELETE", path)).status == 200
