"""Whose Placements are looked at when something changes, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kcp.resources import LOCATIONS
from skerry.api.kinds import GroupVersionResource
from skerry.controllers.tenancy.placement.keys import (
    IN,
    LOOKED_AT,
    PLACED,
    EventHandlers,
    Workspace,
    differs,
    kept_namespace,
    kept_sync_target,
    own_cluster,
    wanted_workspace,
    workspaces_of,
)
from tests.kit.caches import cache

PLACEMENTS = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "placements")


def obj(cluster: str, name: str = "x", path: str = "", **more: Any) -> dict[str, Any]:
    notes = {"kcp.io/cluster": cluster, **({"kcp.io/path": path} if path else {})}
    metadata = {"name": name, "uid": f"{cluster}-{name}", "resourceVersion": "1"}
    return {"metadata": {**metadata, "annotations": notes}, **more}


class Desk:
    """Placements of two clusters that look at a third, and one that looks at its own."""

    def __init__(self) -> None:
        far = {"locationWorkspace": "root:imw"}
        placements = cache(
            PLACEMENTS,
            obj("one", spec=far),
            obj("two", spec=far),
            obj("self"),
            indexes={IN: own_cluster, LOOKED_AT: wanted_workspace},
        )
        locations = cache(LOCATIONS, obj("imw", path="root:imw"), indexes={IN: own_cluster})
        self.added: list[str] = []
        self.handlers = EventHandlers(placements, locations, self._add)

    def _add(self, workspace: Workspace) -> None:
        self.added.append(workspace.cluster)


def test_a_placement_looks_at_its_path_or_at_its_own_cluster() -> None:
    assert list(wanted_workspace(obj("one", spec={"locationWorkspace": "root:imw"}))) == [
        "root:imw"
    ]
    assert list(wanted_workspace(obj("one"))) == ["one"]


def test_a_location_is_found_by_both_names_of_its_workspace() -> None:
    assert list(workspaces_of(obj("imw", path="root:imw"))) == ["imw", "root:imw"]
    assert list(workspaces_of(obj("root", path="root"))) == ["root"]
    assert list(workspaces_of(obj("imw"))) == ["imw"]


def test_a_changed_placement_is_looked_at_in_its_own_cluster() -> None:
    desk = Desk()
    desk.handlers.placement_changed(obj("one"), None)
    desk.handlers.placement_changed(None, None)
    assert desk.added == ["one"]


def test_a_location_enqueues_those_that_look_there_before_and_after() -> None:
    desk = Desk()
    desk.handlers.location_changed(None, obj("imw", path="root:imw"))
    assert sorted(desk.added) == ["one", "two"]
    desk.added.clear()
    desk.handlers.location_changed(obj("self"), obj("nobody"))
    assert desk.added == ["self"]


def test_a_sync_target_enqueues_who_looks_at_the_locations_beside_it() -> None:
    desk = Desk()
    new = obj("imw", spec={"evictAfter": "t"})
    desk.handlers.sync_target_changed(obj("imw"), new)
    assert sorted(desk.added) == ["one", "two"]
    desk.added.clear()
    beat = {"lastSyncerHeartbeatTime": "2030-01-01T00:00:00Z"}
    desk.handlers.sync_target_changed(new, {**new, "status": beat})
    desk.handlers.sync_target_changed(None, obj("elsewhere"))
    assert desk.added == [], "nothing changed, or no Location is there"


def test_a_namespace_matters_where_there_are_placements() -> None:
    desk = Desk()
    desk.handlers.namespace_changed(None, obj("one"))
    desk.handlers.namespace_changed(None, obj("imw"))
    desk.handlers.namespace_changed(obj("two"), obj("two"))
    assert desk.added == ["one"]


def test_another_version_alone_is_no_difference() -> None:
    newer = obj("one")
    newer["metadata"]["resourceVersion"] = "2"
    assert not differs(obj("one"), newer)
    assert differs(obj("one"), None)
    assert differs(obj("one"), obj("one", spec={}))


def test_a_heartbeat_is_not_kept_and_when_to_evict_is() -> None:
    beat = {"lastSyncerHeartbeatTime": "2030-01-01T00:00:00Z"}
    found = kept_sync_target(obj("imw", spec={"evictAfter": "t", "more": 1}, status=beat))
    assert found["spec"] == {"evictAfter": "t"}
    assert "lastSyncerHeartbeatTime" not in found["status"]


@pytest.mark.parametrize("placed", [True, False])
def test_of_a_namespace_labels_and_marks_are_kept(placed: bool) -> None:
    sent = obj("one", spec={"finalizers": []})
    sent["metadata"]["labels"] = {"app": "web"}
    sent["metadata"]["annotations"]["other"] = "x"
    if placed:
        sent["metadata"]["annotations"][PLACED] = ""
    kept = kept_namespace(sent)
    assert set(kept) == {"metadata"}
    assert kept["metadata"]["labels"] == {"app": "web"}
    assert (
        "other" in kept["metadata"]["annotations"],
        PLACED in kept["metadata"]["annotations"],
    ) == (
        False,
        placed,
    )
