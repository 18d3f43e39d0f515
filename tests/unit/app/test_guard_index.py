"""What a hub keeps for guards: nothing without one, and everything that changes with one."""

from __future__ import annotations

from pathlib import Path

from skerry.api.edge import edge_placement_ref
from skerry.app.guard_index import GuardedPlacements, stamped
from skerry.app.hub_server import HubServer
from tests.kit.server.guarded import (
    GUARDS,
    PLACEMENTS,
    asked,
    furnished,
    guard,
    locate,
    placement,
    relabel,
)
from tests.kit.server.hub import Hub


def index(hub: Hub) -> GuardedPlacements:
    api = hub.running.api
    assert isinstance(api, HubServer)
    return api.guards


async def test_destinations_are_known_while_there_is_a_guard(tmp_path: Path) -> None:
    async with furnished(tmp_path) as hub:
        found = index(hub)
        assert not found.guards
        assert not found.placements
        await hub.create("root:espw", GUARDS, guard(budgets=[{"of": "ObjectsRemoved", "max": 1}]))
        assert (await relabel(hub, 5)).status == 200
        [ref] = found.placements
        assert ref == edge_placement_ref(ref.cluster, "web")
        assert found.path(ref.cluster) == "root:shop"
        assert [each.name for each in found.of(ref)] == ["fleet"]
        assert len(found.table.destinations(ref)) == 5
        await locate(hub, 6)
        assert len(found.table.destinations(ref)) == 6
        other = placement()
        other["metadata"] = {"name": "other"}
        await hub.create("root:shop", PLACEMENTS, other)
        assert len(found.placements) == 2
        await asked(hub, "kcp-admin", "DELETE", f"/clusters/root:shop{PLACEMENTS}/other")
        assert list(found.placements) == [ref]
        await asked(hub, "carol-token", "DELETE", f"/clusters/root:espw{GUARDS}/fleet")
        assert not found.placements
        assert not found.is_complete


def test_an_object_says_where_it_is() -> None:
    obj = {"metadata": {"name": "a", "annotations": {"x": "y"}}}
    assert stamped(obj, "c")["metadata"]["annotations"] == {"x": "y", "kcp.io/cluster": "c"}
    assert obj["metadata"]["annotations"] == {"x": "y"}
