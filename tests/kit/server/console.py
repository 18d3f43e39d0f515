"""What anybody meets at a hub's console, wherever that runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.server.browser import Browser, BrowserTab, Refused
from tests.kit.server.hub import LOCATIONS, SYNC_TARGETS, Hub, grants

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


async def requests_of_other_sites_and_under_other_names_are_refused(hub: Hub) -> None:
    mine = Browser(hub.running.console)
    await mine.sign_in(hub, "alice")
    code = {"code": "x"}
    session = "/console/session"
    assert (await mine.fetch("GET", "/console/fleet", host="evil.example")).status == 403
    assert (await mine.fetch("POST", session, code, origin="https://evil.example")).status == 403
    assert (await mine.fetch("POST", session, code, origin="")).status == 403
    assert (await mine.fetch("POST", session, code, sec_fetch_site="cross-site")).status == 403
    assert (await mine.fetch("POST", session, code, x_skerry_console="")).status == 400
    assert (await mine.fetch("POST", session, code, content_type="text/plain")).status == 415
    assert (await mine.fetch("GET", session, sec_fetch_site="same-site")).status == 403
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": ""},
        {"sec_fetch_site": "cross-site"},
    ):
        with pytest.raises(Refused) as refused:
            async with mine.tab(**headers):
                pass
        assert refused.value.status == 403


async def nobody_in_particular_gets_no_code(hub: Hub) -> None:
    assert (await hub.ask("", "POST", "/skerry/console/codes")).status == 401
    assert (await hub.ask("alice", "GET", "/skerry/console/codes")).status == 405


async def a_session_is_listed_and_ends_when_it_is_revoked(hub: Hub) -> None:
    mine = Browser(hub.running.console)
    await mine.sign_in(hub, "alice")
    where = "/skerry/console/sessions"
    assert (await hub.ask("bob", "GET", where)).body == {"sessions": []}
    [listed] = (await hub.ask("alice", "GET", where)).body["sessions"]
    assert listed["user"] == "alice"
    assert (await hub.ask("bob", "DELETE", f"{where}?id={listed['id']}")).status == 404
    async with mine.tab() as tab:
        await tab.frame()
        assert (await hub.ask("kcp-admin", "DELETE", f"{where}?id={listed['id']}")).status == 204
        assert (await tab.frame())["bye"] == {"reason": "revoked by kcp-admin"}
        assert await tab.frame() is None
    assert (await mine.fetch("GET", "/console/session")).status == 401


async def an_edge_appears_and_a_right_taken_away_empties_the_view(hub: Hub) -> None:
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
