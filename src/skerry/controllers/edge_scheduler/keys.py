"""What wakes a placement: itself, its slices, and whatever the index says it depends on.

The handlers here are the only writers of the index. Each remembers what woke a placement last,
for the log line that tells of the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    LOCATION_CONSENT_NAME,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    SINGLE_PLACEMENT_SLICES,
    edge_placement_ref,
    placement_of_slice,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.written import WrittenSlices
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.consent_record import is_enforced
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.index import PlacementIndex
from skerry.logic.fleet.placement.records import (
    is_being_deleted,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.slices import base_names

NAME = "edge-scheduler"

_log = Logger(NAME)


class Cause(NamedTuple):
    """What woke a placement."""

    kind: str
    ref: ObjectRef


class Waking:
    """Keeps the index up with what informers tell, and adds the placements touched."""

    def __init__(
        self,
        index: PlacementIndex,
        written: WrittenSlices,
        add: Callable[[ObjectRef], None],
        look_at_status: Callable[[ObjectRef], None],
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
        self._causes: dict[ObjectRef, Cause] = {}

    def cause(self, ref: ObjectRef) -> Cause:
        """Return what woke *ref* last, and forget it."""
        return self._causes.pop(ref, Cause("EdgePlacement", ref))

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
        if old is not None and new is not None and _stage(old) == _stage(new):
            # Only the status, or nothing of ours: no slice depends on it.
            self._look_at_status(ref)
            return
        _log.info("queueing EdgePlacement", v=2, key=ref.qualified_name)
        if new is None:
            self._index.remove_placement(ref)
        else:
            _tell_observed(old, new)
            placement = placement_of(new)
            self._index.put_placement(placement)
            if placement.workspaces is not None:
                self._follow_workspaces()
        self._wake([ref], Cause("EdgePlacement", ref))
        if old is None or new is None:
            # Another placement's further slices may have to give way to this one's own.
            bases = [edge_placement_ref(ref.cluster, name) for name in base_names(ref.name)]
            known = [base for base in bases if self._index.placement(base) is not None]
            self._wake(known, Cause("EdgePlacement", ref))

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(LOCATIONS.group_resource, obj)
        if new is None or is_being_deleted(new):
            touched = self._index.remove_location(ref)
        else:
            touched = self._index.put_location(location_of(new))
        self._told("Location", ref, touched)

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(SYNC_TARGETS.group_resource, obj)
        if new is None or is_being_deleted(new):
            touched = self._index.remove_sync_target(ref)
        else:
            touched = self._index.put_sync_target(sync_target_of(new))
        self._told("SyncTarget", ref, touched)

    def workspace_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        cluster = ((obj or {}).get("spec") or {}).get("cluster", "")
        if obj is None or not cluster:
            return
        ref = ObjectRef.of(WORKSPACES.group_resource, obj)
        if new is None:
            touched = self._index.remove_workspace(cluster, ref)
        else:
            labels = new["metadata"].get("labels") or {}
            touched = self._index.put_workspace(cluster, labels, ref)
        self._told("Workspace", ref, touched)

    def grant_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(LOCATION_GRANTS.group_resource, obj)
        if new is None or is_being_deleted(new):
            touched = self._index.remove_grant(ref)
        else:
            grant = grant_of(new)
            touched = self._index.put_grant(grant)
            if grant.enforces and not self._index.consent.is_remembered(ref.cluster):
                self._unrecorded.add(ref.cluster)
                touched |= self._index.put_memory(ref.cluster, enforced=True)
            self._follow_workspaces()
        self._report([ref.cluster])
        self._told("LocationGrant", ref, touched)

    def consent_changed(self, old: Object | None, new: Object | None) -> None:
        """Take what a LocationConsent remembers, once it has caught up with the grants."""
        obj = new or old
        if obj is None or obj["metadata"]["name"] != LOCATION_CONSENT_NAME:
            return
        ref, enforced = ObjectRef.of(LOCATION_CONSENTS.group_resource, obj), is_enforced(new)
        if enforced or new is None:
            self._unrecorded.discard(ref.cluster)
        if ref.cluster in self._unrecorded:
            enforced = True
        if enforced:
            self._follow_workspaces()
        touched = self._index.put_memory(ref.cluster, enforced=enforced)
        self._report([ref.cluster])
        self._told("LocationConsent", ref, touched)

    def slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Wake whose slice it is, unless it is we who wrote it."""
        obj = new or old
        if obj is None or (new is not None and self._written.wrote(new)):
            return
        changed = ObjectRef.of(SINGLE_PLACEMENT_SLICES.group_resource, obj)
        # Also whose it was: somebody may have taken it from its owner.
        owners = {placement_of_slice(each) for each in (old, new) if each is not None}
        for owner in sorted({changed.name, *owners}):
            ref = edge_placement_ref(changed.cluster, owner)
            if self._index.placement(ref) is not None:
                self._wake([ref], Cause("SinglePlacementSlice", changed))

    def _told(self, kind: str, ref: ObjectRef, touched: Iterable[ObjectRef]) -> None:
        _log.info(f"queueing {kind}", v=3, key=ref.qualified_name)
        if self._index.consent.is_used:
            self._report(self._index.consent.take_changed())
        # Sorted, here and wherever a set becomes a queue: a run can then be told from its seed.
        self._wake(sorted(touched), Cause(kind, ref))

    def _wake(self, refs: Iterable[ObjectRef], cause: Cause) -> None:
        for ref in refs:
            self._causes[ref] = cause
            self._add(ref)


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
