"""Which event enqueues which placement: its own, its slices', and what the index depends on.

The handlers here are the only writers of the index. Each notes the object that enqueued a
placement last, for the log line about the outcome.

What is enqueued, besides the status of a placement and the reports on grants and guards:

    EdgePlacement: spec, labels, deletion   it; created or gone: also whose further slice it names
    EdgePlacement: finalizers alone         it, without a cause, unless guards just wrote theirs
    EdgePlacement: anything else            nothing; its status, which others write parts of
    Location, SyncTarget, Workspace, grant  the placements that the index returns as touched
    PlacementGuard: spec                    every placement that it may be about
    SinglePlacementSlice                    its owner, the one before, and whom its name names

A missed event needs no handling here: an informer that has to list anew calls its handlers with the
differences, so the index follows the state whatever a watch has lost.

Until every informer has been read (*is_started*) the inventory fills the index and enqueues nobody:
the answer would change with each Location that is read. Each placement is enqueued by its own first
event, and waits in the queue until the loops begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skerry.api.edge import (
    CONFIRM,
    EDGE_PLACEMENTS,
    LOCATION_CONSENT_NAME,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    SINGLE_PLACEMENT_SLICES,
    edge_placement_ref,
    placement_of_slice,
    wants_staged_removal,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object, labels_of
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.authors import author_of
from skerry.controllers.edge_scheduler.guard_status import GuardReports
from skerry.controllers.edge_scheduler.observe import NAME
from skerry.controllers.edge_scheduler.observed import CREATED, Cause
from skerry.controllers.edge_scheduler.placement_cache import Causes
from skerry.kit.log import Logger
from skerry.logic.fleet.guards.spec import guard_of
from skerry.logic.fleet.placement.consent_record import is_enforced
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import grant_of
from skerry.logic.fleet.placement.records import (
    is_being_deleted,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.fleet.placement.slices import base_names

# Labels that a cause names; the others are counted. It is one line in a log, and in a record.
_MAX_LABELS = 3

_log = Logger(NAME)


class EventHandlers:
    """Keeps the index up with events of informers, and enqueues the placements they touch."""

    def __init__(
        self,
        index: DestinationTable,
        take_echo: Callable[[Object], bool],
        causes: Causes,
        enqueue: Callable[[ObjectRef], None],
        enqueue_status: Callable[[ObjectRef], None],
        follow_workspaces: Callable[[], None],
        enqueue_consent: Callable[[Iterable[str]], None],
        guards: GuardReports,
        *,
        is_started: Callable[[], bool] = lambda: True,
        verified: bool = True,
    ) -> None:
        """*take_echo* says whether an event of a slice is of our own write (``write_overlay``).

        *enqueue_consent* gets the inventory workspaces with news about their grants, *guards*
        hears of guards and of what they hold. Until *is_started* events tell what there is, and not
        what has changed. *verified*: the hub itself says who changed an object.
        """
        self.verified = verified
        self._guards = guards
        self._is_started = is_started
        self._enqueue_consent = enqueue_consent
        # Inventory workspaces that enforce, and whose LocationConsent does not say so yet.
        self._unrecorded: set[str] = set()
        self._index = index
        self._take_echo = take_echo
        self._causes = causes
        self._enqueue = enqueue
        self._enqueue_status = enqueue_status
        self._follow_workspaces = follow_workspaces

    def placement_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a placement; most of its events are of its status and change no slice.

        Guards take every one of them, since what they hold is written in that status.
        """
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(EDGE_PLACEMENTS.group_resource, obj)
        self._guards.placement_changed(ref, new)
        is_same = old is not None and new is not None and _stage(old) == _stage(new)
        if is_same and _finalizers(old) == _finalizers(new):
            # Only the status, or nothing of ours: no slice depends on it.
            self._enqueue_status(ref)
            return
        if self._is_finalized(ref, old, new) and is_same:
            return
        _log.info("queueing EdgePlacement", v=2, key=ref.qualified_name)
        if new is None:
            self._index.remove_placement(ref)
        else:
            _log_observed(old, new)
            placement = placement_of(new)
            self._index.put_placement(placement)
            if placement.workspaces is not None:
                self._follow_workspaces()
        if is_same:
            # A finalizer came or went: guards go on from there, and nobody changed his mind.
            self._enqueue(ref)
            return
        cause = self._cause("EdgePlacement", ref, old, new)
        self._enqueue_all([ref], cause)
        if old is None or new is None:
            # Another placement's further slices may have to give way to this one's own.
            bases = [edge_placement_ref(ref.cluster, name) for name in base_names(ref.name)]
            known = [base for base in bases if self._index.placement(base) is not None]
            self._enqueue_all(known, cause)

    def _is_finalized(self, ref: ObjectRef, old: Object | None, new: Object | None) -> bool:
        """Tell whether guards have just given a placement their finalizer, and went on.

        The plan that wrote it has written slices too, so the event asks for nothing new.
        """
        if old is None or new is None:
            return False
        return self._guards.state.take_finalizer(ref, old, new)

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a Location. One that is being deleted is gone, whatever keeps the object."""
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(LOCATIONS.group_resource, obj)
        if new is None or is_being_deleted(new):
            touched = self._index.remove_location(ref)
        else:
            touched = self._index.put_location(location_of(new))
        self._touched("Location", ref, touched, old, new)

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a SyncTarget; when it goes, so does what guards keep at it though nobody selects it.

        A heartbeat touches nobody, unless by it the SyncTarget becomes available.
        """
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(SYNC_TARGETS.group_resource, obj)
        if new is None or is_being_deleted(new):
            touched = self._index.remove_sync_target(ref) | self._guards.state.keeping(ref)
        else:
            touched = self._index.put_sync_target(sync_target_of(new))
        self._touched("SyncTarget", ref, touched, old, new)

    def workspace_changed(self, old: Object | None, new: Object | None) -> None:
        """Take the labels and the place of a workspace, once it has a logical cluster."""
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
        self._touched("Workspace", ref, touched, old, new)

    def grant_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a grant; one that enforces closes its workspace at once.

        The LocationConsent that remembers this is written later, by the loop for reports. Until it
        is seen to say so, the workspace stands in ``_unrecorded``: an event of the LocationConsent
        from before must not open it again.
        """
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
        self._enqueue_consent([ref.cluster])
        self._touched("LocationGrant", ref, touched, old, new)

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
        self._enqueue_consent([ref.cluster])
        self._touched("LocationConsent", ref, touched, old, new)

    def guard_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a guard; every placement it may be about is decided on anew."""
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(PLACEMENT_GUARDS.group_resource, obj)
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            self._guards.enqueue(ref)
            return
        known = self._guards.state.guards
        if new is None:
            known.remove(ref)
        else:
            known.put(guard_of(new))
            self._follow_workspaces()
            self._guards.enqueue(ref)
        placements = (each.ref for each in self._index.placements())
        touched = {each for each in placements if known.reaches(ref, each)}
        self._touched("PlacementGuard", ref, touched, old, new)

    def rollout_changed(self, placement: ObjectRef, kind: str, changed: ObjectRef) -> None:
        """Enqueue the placement of a Rollout, of a revision or of an approval.

        Whether there is such a placement is not asked: of a Rollout without one that is to be said.
        """
        self._enqueue_all([placement], Cause(kind, changed))

    def slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Enqueue the placement of a slice, unless the event is of our own write.

        A deletion is never passed over: ours are rare, and anybody else's is to be undone.
        """
        obj = new or old
        if obj is None or (new is not None and self._take_echo(new)):
            return
        changed = ObjectRef.of(SINGLE_PLACEMENT_SLICES.group_resource, obj)
        # Its former placement too: somebody may have taken it from its owner.
        owners = {placement_of_slice(each) for each in (old, new) if each is not None}
        for owner in sorted({changed.name, *owners}):
            ref = edge_placement_ref(changed.cluster, owner)
            if self._index.placement(ref) is not None:
                self._enqueue_all([ref], self._cause("SinglePlacementSlice", changed, old, new))

    def _touched(
        self,
        kind: str,
        ref: ObjectRef,
        touched: set[ObjectRef],
        old: Object | None,
        new: Object | None,
    ) -> None:
        """Enqueue the placements that an object touched, and the reports on grants that it did."""
        _log.info(f"queueing {kind}", v=3, key=ref.qualified_name)
        if self._index.consent.is_used:
            self._enqueue_consent(self._index.consent.take_changed())
        # Sorted, here and wherever a set becomes a queue: a run then repeats from its seed. Before
        # the start nothing is decided, and each placement is enqueued by its own first event.
        if touched and self._is_started():
            self._enqueue_all(sorted(touched), self._cause(kind, ref, old, new))

    def _cause(self, kind: str, ref: ObjectRef, old: Object | None, new: Object | None) -> Cause:
        """Return what an event tells of its cause; of a deletion nobody says whose it was."""
        metadata = (new or old or {}).get("metadata") or {}
        by = author_of(kind, new, verified=self.verified) if new is not None else ""
        version = str(metadata.get("resourceVersion", ""))
        uid = str(metadata.get("uid", "")) if new is None else ""
        return Cause(kind, ref, _change(old, new), version, by, uid, initial=not self._is_started())

    def _enqueue_all(self, refs: Iterable[ObjectRef], cause: Cause) -> None:
        for ref in refs:
            self._causes.note(ref, cause)
            self._enqueue(ref)


def _change(old: Object | None, new: Object | None) -> str:
    """Return what changed about an object, in a few words.

    Labels come first: selectors read them, so they are mostly why a decision changed. What the
    cache does not keep of an object cannot be named, and is just "changed".
    """
    if new is None:
        return "deleted"
    if old is None:
        return CREATED
    before, after = labels_of(old), labels_of(new)
    if before != after:
        words = [f"{key}={after[key]}" for key in after if before.get(key) != after[key]]
        words += [f"{key} removed" for key in before if key not in after]
        more = f" and {len(words) - _MAX_LABELS} more" if len(words) > _MAX_LABELS else ""
        return f"label {', '.join(words[:_MAX_LABELS])}{more}"
    if old.get("spec") != new.get("spec"):
        return "spec changed"
    return "changed"


def _stage(placement: Object) -> tuple[object, ...]:
    """Return what of a placement matters to its slices; labels and a confirmation do to guards,
    and how it is to be taken away to its Rollout."""
    metadata = placement["metadata"]
    return (
        metadata.get("uid"),
        metadata.get("deletionTimestamp"),
        placement.get("spec"),
        metadata.get("labels"),
        (metadata.get("annotations") or {}).get(CONFIRM),
        wants_staged_removal(placement),
    )


def _finalizers(placement: Object | None) -> object:
    return ((placement or {}).get("metadata") or {}).get("finalizers")


def _log_observed(old: Object | None, new: Object) -> None:
    verbosity = 2 if old is None else 4
    if _log.enabled(verbosity):
        metadata = {k: v for k, v in new["metadata"].items() if k != "managedFields"}
        shown = {**new, "metadata": metadata}
        _log.info("Observed add" if old is None else "Observed update", v=verbosity, obj=shown)
