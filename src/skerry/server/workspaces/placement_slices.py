"""Destinations of placements are the edge scheduler's to write.

A SinglePlacementSlice lies in the workspace of the placement, whose administrator may write there.
But a destination says which SyncTarget a Location stands for, and grants are given for Locations:
whoever pairs them as he likes reaches edges that no selector and no grant gave him. So others may
take destinations away, which the edge scheduler mends, and add none.
"""

from __future__ import annotations

from skerry.api.errors import Forbidden
from skerry.api.objects import Object
from skerry.server.admission.operation import Operation
from skerry.server.security.authorization import is_administrator
from skerry.server.workspaces.state import HubState
from skerry.server.workspaces.views import view_name

TYPE = ("edge.kcp.io", "singleplacementslices")
_FIELDS = ("cluster", "locationName", "syncTargetName", "syncTargetUID")


class PlacementSlices:
    """Refuses destinations of whoever is neither the hub's nor the exporter's."""

    def __init__(self, state: HubState) -> None:
        self._state = state

    async def admit(self, operation: Operation) -> None:
        if operation.verb == "DELETE" or is_administrator(operation.call.user):
            return
        if _destinations(operation.obj) <= _destinations(operation.old or {}):
            return
        if self._is_exporters(operation):
            return
        why = "destinations are written by the edge scheduler"
        raise Forbidden.of(*TYPE, operation.obj["metadata"].get("name") or "", why)

    def _is_exporters(self, operation: Operation) -> bool:
        """Tell whether a write comes through the view of the export that the type is of."""
        view = operation.call.view
        if not view:
            return False
        bindings = self._state.bindings.get(operation.call.info.cluster) or {}
        return any(
            view == view_name(binding.export_cluster, binding.export_name)
            for binding in bindings.values()
            if any((each.group, each.resource) == TYPE for each in binding.bound)
        )


def _destinations(piece: Object) -> set[tuple[str, ...]]:
    return {
        tuple(str(each.get(name) or "") for name in _FIELDS)
        for each in piece.get("destinations") or ()
    }
