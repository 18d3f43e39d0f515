"""What wakes a placement: itself, its slices, and whatever the index says it depends on.

The handlers here are the only writers of the index. Each remembers what woke a placement last,
for the log line that tells of the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from skerry.api.edge import LOCATION_CONSENT_NAME
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.written import WrittenSlices
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.consent_record import is_enforced
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.index import PlacementIndex
from skerry.logic.fleet.placement.records import (
    Place,
    is_leaving,
    location_of,
    place_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.slices import base_names, placement_name

NAME = "edge-scheduler"
LOCATIONS = GroupVersionResource("scheduling.kcp.io", "v1alpha1", "locations")
SYNC_TARGETS = GroupVersionResource("workload.kcp.io", "v1alpha1", "synctargets")
WORKSPACES = GroupVersionResource("tenancy.kcp.io", "v1alpha1", "workspaces")

_log = Logger(NAME)


class Cause(NamedTuple):
    """What woke a placement."""

    kind: str
    place: Place


class Waking:
    """Keeps the index up with what informers tell, and adds the placements touched."""

    def __init__(
        self,
        index: PlacementIndex,
        written: WrittenSlices,
        add: Callable[[Place], None],
        look_at_status: Callable[[Place], None],
        follow_workspaces: Callable[[], None],
        report: Callable[[Iterable[str]], None],
    ) -> None:
        """*report* gets the inventory workspaces with news about their grants."""
        self._report = report
        # Inventory workspaces that enforce, and whose LocationConsent does not say so yet.
        self._unrecorded: set[str] = set()
        self._index = index
        self._written = written
        self._add = add
        self._look_at_status = look_at_status
        self._follow_workspaces = follow_workspaces
        self._causes: dict[Place, Cause] = {}

    def cause(self, place: Place) -> Cause:
        """Return what woke *place* last, and forget it."""
        return self._causes.pop(place, Cause("EdgePlacement", place))

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        place = place_of(obj)
        if old is not None and new is not None and _stage(old) == _stage(new):
            # Only the status, or nothing of ours: no slice depends on it.
            self._look_at_status(place)
            return
        _log.info("queueing EdgePlacement", v=2, key=str(place))
        if new is None:
            self._index.remove_placement(place)
        else:
            _tell_observed(old, new)
            placement = placement_of(new)
            self._index.put_placement(placement)
            if placement.workspaces is not None:
                self._follow_workspaces()
        self._wake([place], Cause("EdgePlacement", place))
        if old is None or new is None:
            # Another placement's further slices may have to give way to this one's own.
            bases = [Place(place.cluster, name) for name in base_names(place.name)]
            known = [base for base in bases if self._index.placement(base) is not None]
            self._wake(known, Cause("EdgePlacement", place))

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        place = place_of(obj)
        if new is None or is_leaving(new):
            touched = self._index.remove_location(place)
        else:
            touched = self._index.put_location(location_of(new))
        self._told("Location", place, touched)

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        place = place_of(obj)
        if new is None or is_leaving(new):
            touched = self._index.remove_sync_target(place)
        else:
            touched = self._index.put_sync_target(sync_target_of(new))
        self._told("SyncTarget", place, touched)

    def workspace_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        cluster = ((obj or {}).get("spec") or {}).get("cluster", "")
        if obj is None or not cluster:
            return
        place = place_of(obj)
        if new is None:
            touched = self._index.remove_workspace(cluster, place)
        else:
            labels = new["metadata"].get("labels") or {}
            touched = self._index.put_workspace(cluster, labels, place)
        self._told("Workspace", place, touched)

    def grant_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        place = place_of(obj)
        if new is None or is_leaving(new):
            touched = self._index.remove_grant(place)
        else:
            grant = grant_of(new)
            touched = self._index.put_grant(grant)
            if grant.enforces and not self._index.consent.is_remembered(place.cluster):
                self._unrecorded.add(place.cluster)
                touched |= self._index.put_memory(place.cluster, enforced=True)
            self._follow_workspaces()
        self._report([place.cluster])
        self._told("LocationGrant", place, touched)

    def consent_changed(self, old: Object | None, new: Object | None) -> None:
        """Take what a LocationConsent remembers, once it has caught up with the grants."""
        obj = new or old
        if obj is None or obj["metadata"]["name"] != LOCATION_CONSENT_NAME:
            return
        place, enforced = place_of(obj), is_enforced(new)
        if enforced or new is None:
            self._unrecorded.discard(place.cluster)
        if place.cluster in self._unrecorded:
            enforced = True
        if enforced:
            self._follow_workspaces()
        touched = self._index.put_memory(place.cluster, enforced=enforced)
        self._report([place.cluster])
        self._told("LocationConsent", place, touched)

    def slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Wake whose slice it is, unless it is we who wrote it."""
        obj = new or old
        if obj is None or (new is not None and self._written.wrote(new)):
            return
        cluster, name = place_of(obj)
        # Also whose it was: somebody may have taken it from its owner.
        owners = {placement_name(each) for each in (old, new) if each is not None}
        for owner in sorted({name, *owners}):
            place = Place(cluster, owner)
            if self._index.placement(place) is not None:
                self._wake([place], Cause("SinglePlacementSlice", Place(cluster, name)))

    def _told(self, kind: str, place: Place, touched: Iterable[Place]) -> None:
        _log.info(f"queueing {kind}", v=3, key=str(place))
        if self._index.consent.is_used:
            self._report(self._index.consent.take_changed())
        # Sorted, here and wherever a set becomes a queue: a run can then be told from its seed.
        self._wake(sorted(touched), Cause(kind, place))

    def _wake(self, places: Iterable[Place], cause: Cause) -> None:
        for place in places:
            self._causes[place] = cause
            self._add(place)


def _stage(placement: Object) -> tuple[object, ...]:
    """Return what of a placement matters to its slices."""
    metadata = placement["metadata"]
    return (metadata.get("uid"), metadata.get("deletionTimestamp"), placement.get("spec"))


def _tell_observed(old: Object | None, new: Object) -> None:
    verbosity = 2 if old is None else 4
    if _log.enabled(verbosity):
        metadata = {k: v for k, v in new["metadata"].items() if k != "managedFields"}
        shown = {**new, "metadata": metadata}
        _log.info("Observed add" if old is None else "Observed update", v=verbosity, obj=shown)
