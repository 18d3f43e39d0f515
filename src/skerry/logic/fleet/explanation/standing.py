"""Where placements are by their slices, and the tables that answers about the fleet come from.

``Standing`` is what an answer needs of the slices of one placement. ``FleetTables`` keeps up, event
by event, what would otherwise be read anew for every question: at 10,000 edges that is seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skerry.api.edge import (
    LOCATION_CONSENT_NAME,
    SINGLE_PLACEMENT_SLICES,
    edge_placement_ref,
    placement_of_slice,
)
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.choosing import MakeChoosing
from skerry.logic.fleet.placement.consent_record import is_enforced
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import Destination, placement_of
from skerry.logic.fleet.placement.slices import Assigned, assigned_in, destinations_in

_SLICE = SINGLE_PLACEMENT_SLICES.group_resource
# Placements whose destinations are kept ready; each is some MB at 10,000 edges.
_MAX_STANDINGS = 4

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a placement is now. ``assigned`` is by SyncTarget UID, and only with a Rollout."""

    destinations: frozenset[Destination] = frozenset()
    present: frozenset[ObjectRef] = frozenset()
    assigned: Mapping[str, Assigned] = field(default_factory=dict)


NOWHERE = Standing()
Standings = Callable[[ObjectRef], Standing]


def standing_of(pieces: Iterable[Object]) -> Standing:
    """Return where a placement is, by its slices."""
    found: list[Destination] = []
    assigned: dict[str, Assigned] = {}
    for piece in pieces:
        there = destinations_in(piece)
        found += there
        for each, given in zip(there, assigned_in(piece), strict=True):
            if given is not None:
                assigned.setdefault(each.uid, given)
    return Standing(frozenset(found), frozenset(each.location_ref for each in found), assigned)


def standings_by(slices: Sequence[Object]) -> Standings:
    """Return the lookup of where placements are by *slices*."""
    pieces: dict[ObjectRef, list[Object]] = {}
    for each in slices:
        pieces.setdefault(placement_by(each), []).append(each)
    known: dict[ObjectRef, Standing] = {}

    def standing(ref: ObjectRef) -> Standing:
        if ref not in known:
            known[ref] = standing_of(pieces.get(ref, ()))
        return known[ref]

    return standing


def placement_by(piece: Given) -> ObjectRef:
    """Return the placement that a slice belongs to."""
    return edge_placement_ref(ObjectRef.of(_SLICE, piece).cluster, placement_of_slice(piece))


class FleetTables:
    """What answers come from. *pieces* returns the slices of a placement as they are kept."""

    def __init__(
        self, choosing: MakeChoosing | None, pieces: Callable[[ObjectRef], Iterable[Object]]
    ) -> None:
        self.table = DestinationTable(choosing)
        self._pieces = pieces
        self._standings: dict[ObjectRef, Standing] = {}
        self._owners: dict[ObjectRef, ObjectRef] = {}

    def standing(self, ref: ObjectRef) -> Standing:
        """Return where a placement is."""
        found = self._standings.pop(ref, None)
        if found is None:
            found = standing_of(self._pieces(ref))
            while len(self._standings) >= _MAX_STANDINGS:
                del self._standings[next(iter(self._standings))]
        self._standings[ref] = found
        return found

    def put_slice(self, obj: Given) -> None:
        """Take a page of a placement's destinations, new or changed."""
        self.remove_slice(obj)
        owner = self._owners[ObjectRef.of(_SLICE, obj)] = placement_by(obj)
        self._standings.pop(owner, None)

    def remove_slice(self, obj: Given) -> None:
        """Take that a page of destinations is gone, or is another placement's."""
        owner = self._owners.pop(ObjectRef.of(_SLICE, obj), None)
        if owner is not None:
            self._standings.pop(owner, None)

    def put_placement(self, obj: Given) -> None:
        """Take an EdgePlacement, new or changed."""
        self.table.put_placement(placement_of(obj))

    def remove_placement(self, obj: Given) -> None:
        """Take that an EdgePlacement is gone."""
        self.table.remove_placement(placement_of(obj).ref)

    def put_grant(self, obj: Given) -> None:
        """Take a LocationGrant, new or changed."""
        self.table.put_grant(grant_of(obj))

    def remove_grant(self, obj: Given) -> None:
        """Take that a LocationGrant is gone."""
        self.table.remove_grant(grant_of(obj).ref)

    def put_consent(self, obj: Given) -> None:
        """Take what an inventory remembers of its grants."""
        self._remember(obj, enforced=is_enforced(obj))

    def remove_consent(self, obj: Given) -> None:
        """Take that an inventory remembers nothing of its grants."""
        self._remember(obj, enforced=False)

    def _remember(self, obj: Given, *, enforced: bool) -> None:
        if obj["metadata"]["name"] == LOCATION_CONSENT_NAME:
            self.table.put_memory(_workspace(obj).cluster, enforced=enforced)

    def put_workspace(self, obj: Given) -> None:
        """Take a Workspace, new or changed."""
        labels = obj["metadata"].get("labels") or {}
        self.table.put_workspace(content_of(obj), labels, _workspace(obj))

    def remove_workspace(self, obj: Given) -> None:
        """Take that a Workspace is gone."""
        self.table.remove_workspace(content_of(obj), _workspace(obj))


def content_of(workspace: Given) -> ClusterName:
    """Return the cluster that a Workspace leads to; empty before there is one."""
    return str((workspace.get("spec") or {}).get("cluster", ""))


def _workspace(obj: Given) -> ObjectRef:
    return ObjectRef.of(WORKSPACES.group_resource, obj)
