"""Whom the console reads from: the hub's own exports, whoever else calls one the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skerry.api.edge import EXPORT
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.app.console_feed import ExportViews
from tests.kit.server.browser import Browser
from tests.kit.server.console import VIEW, seen, target
from tests.kit.server.hub import EXPORTS, Hub, running_hub
from tests.kit.server.hub import SYNC_TARGETS as SYNC_TARGETS_PATH

_WORKLOAD = SYNC_TARGETS.group


def export(name: str, cluster: str, created: str = "2030-01-01T00:00:00Z") -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": created,
            "annotations": {"kcp.io/cluster": cluster},
        },
        "status": {"virtualWorkspaces": [{"url": f"https://hub/services/{cluster}/{name}"}]},
    }


def test_the_kinds_of_inventories_are_read_where_the_root_exports_them() -> None:
    views = ExportViews()
    views.put(export(_WORKLOAD, "1tenant", created="2020-01-01T00:00:00Z"))
    assert views.path(_WORKLOAD, "") == ""
    views.put(export(_WORKLOAD, "root"))
    views.put(export(LOCATIONS.group, "root"))
    assert views.path(_WORKLOAD, "") == f"/services/root/{_WORKLOAD}"
    assert views.path(LOCATIONS.group, "") == f"/services/root/{LOCATIONS.group}"


def test_the_edge_api_is_the_usual_providers_or_else_the_first_there_was() -> None:
    views = ExportViews()
    views.put(export(EXPORT, "1tenant", created="2030-01-01T00:00:02Z"))
    views.put(export(EXPORT, "2other", created="2030-01-01T00:00:01Z"))
    assert views.path(EXPORT, "") == f"/services/2other/{EXPORT}"
    assert views.path(EXPORT, "9usual") == f"/services/2other/{EXPORT}"
    views.put(export(EXPORT, "9usual", created="2030-01-01T00:00:03Z"))
    assert views.path(EXPORT, "9usual") == f"/services/9usual/{EXPORT}"


def test_an_export_without_a_view_or_of_another_name_is_none() -> None:
    views = ExportViews()
    views.put({**export(_WORKLOAD, "root"), "status": {}})
    views.put(export("widgets.example.org", "root"))
    assert views.path(_WORKLOAD, "") == ""
    assert views.path("widgets.example.org", "") == ""


async def _pretend(hub: Hub, name: str) -> None:
    """Have a tenant export something under the name of what the hub itself exports."""
    cluster = await hub.workspace("root", name, admin="bob")
    made = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "spec": {}}
    await hub.create(cluster, EXPORTS, {**made, "metadata": {"name": _WORKLOAD}}, user="bob")
    await hub.until(cluster, f"{EXPORTS}/{_WORKLOAD}", "status", "conditions", 0, "status", "True")


async def test_a_tenant_who_exports_the_same_name_blinds_nobody(tmp_path: Path) -> None:
    async with running_hub(tmp_path, console=True, edge_provider=True) as hub:
        # Names of clusters are random: some come before the root's and some after.
        for number in range(6):
            await _pretend(hub, f"tenant-{number}")
        cluster = await hub.workspace("root", "inventory", admin="alice")
        await hub.create(cluster, SYNC_TARGETS_PATH, target("north"))
        alice = Browser(hub.running.console)
        await alice.sign_in(hub, "alice")
        async with alice.tab() as tab:
            await tab.frame()
            tab.send({"id": 1, "sub": "fleet", "view": VIEW})
            [row] = (await seen(tab, 1, 1))["set"]["rows"]
            assert row["name"] == "north"
