"""Table ``difference``, downwards: what is to be done about one object that goes down.

``difference`` compares a row of ``wanted`` (the mailbox, within the scope of the SyncerConfigs)
with the row of ``present`` (the edge), in the light of the row of ``recorded`` (the journal) and
of the evidence, and returns the plan that brings the edge closer:

    wanted, covered      present            plan
    -----------------    ----------------   ------------------------------------------------
    yes                  absent             record the intent, apply
    yes                  ours, differs      apply; recreate if its owner asks and it must be
    yes                  ours, the same     nothing
    yes                  somebody else's    nothing, unless its owner asks to adopt it
    no, doubted          any                as if wanted: the record speaks for the mailbox
    no, believed         ours               delete it, by UID, within the deletion budget
    no, believed         not ours, absent   forget the record

Steps are small on purpose: apply, or delete, or nothing; the next event brings the next one, so
any of them may be lost. What is recorded is recorded before it is done.

Two rules stand above all others. Nothing is deleted but what the record names by UID, created by
us, and whose absence from the mailbox is believed (``evidence``). And what is not ours is never
overwritten, unless its owner says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from skerry.api.edge import RECREATE
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.evidence import Doubt, Evidence, doubt
from skerry.logic.fleet.syncing.outcome import APPLIED, GONE, ORPHANED, SyncOutcome
from skerry.logic.fleet.syncing.present import OURS
from skerry.logic.fleet.syncing.recorded import DownsyncRecord, placed_key, released_key
from skerry.logic.fleet.syncing.wanted import Desired
from skerry.logic.fleet.tables.completeness import Verdict, verdict
from skerry.logic.machinery.edges.scope import DEFINITIONS, NAMESPACES
from skerry.logic.machinery.plan import Action, Apply, Delete, Plan, Record, Target

# What the deletion budget says of one object: not asked yet, held for a person, or allowed.
Budgeted = Literal["unproposed", "held", "allowed"]

# A watch that has not shown our own write after this long has missed it.
OVERLAY_SECONDS = 10.0
# Whether a container has become empty no event tells.
_INSPECT_AGAIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that matters about one object."""

    ref: ObjectRef
    # The row of ``wanted``; None when the mailbox has no wish, or when it cannot be asked.
    wanted: Desired | None
    covered: bool
    # The row of ``present``.
    live: Object | None
    record: DownsyncRecord | None
    evidence: Evidence
    # The edge serves the type.
    served: bool = True
    # Why the edge does not show the object; None when it does.
    unreadable: SyncOutcome | None = None
    # The last apply of this very content was refused because a field cannot change.
    immutable: bool = False
    # For Namespaces and definitions about to go: why they are not empty; None is not known yet.
    in_use: str | None = None
    # The UID of the object that was once left at the edge on purpose; empty when none was.
    released_uid: str = ""
    budget: Budgeted = "unproposed"
    # How much longer an apply without an answer may still take effect.
    settling_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DownsyncPlan(Plan):
    """One step for one object, and how things stand with it once the step is taken."""

    ref: ObjectRef
    outcome: SyncOutcome
    # What the journal says of the object when the plan's entries are written.
    record: DownsyncRecord | None
    # The object would be deleted, or is: a candidate of the deletion budget.
    deletes: bool = False
    # To be tried again later, each time less soon.
    retry: bool = False


def difference(o: Observed) -> DownsyncPlan:
    """Return the plan that brings the edge closer to what the mailbox wants."""
    if not o.served:
        return _unserved(o)
    if o.unreadable is not None:
        return replace(_step(o, o.record, o.unreadable), retry=True)
    if o.wanted is not None and o.covered:
        return _keep(o, o.wanted, None)
    if o.record is None:
        return _unrecorded(o)
    doubted = doubt(o.record, o.evidence, covered=o.covered)
    if verdict(None, o.record, same=False, missing=doubted) is Verdict.DELETE:
        return _remove(o, o.record)
    return _keep(o, o.record.desired, doubted)


def needs_inspection(o: Observed) -> bool:
    """Tell whether the plan depends on what is inside a container that nobody has looked into."""
    if o.ref.group_resource not in (NAMESPACES, DEFINITIONS) or o.in_use is not None:
        return False
    return difference(o).outcome == _INSPECTING


_INSPECTING = SyncOutcome("Waiting", "LookingInside")
_DELETING = SyncOutcome("Waiting", "Deleting")
_BEING_DELETED = SyncOutcome(
    "Waiting", "BeingDeleted", "it is being deleted at the edge and will be created again"
)
_FINALIZING = SyncOutcome("Waiting", "Finalizing", "it is being deleted and has finalizers")
_HELD = SyncOutcome("Held", "DeletionHeld", "too much would be deleted at once")


def _unserved(o: Observed) -> DownsyncPlan:
    """Wait for a type that the edge lacks: nothing can be done, only remembered."""
    if o.wanted is not None and o.covered:
        gvr = _target(o, o.wanted.version).gvr
        kind = f"{gvr.resource}.{gvr.version}.{gvr.group}".rstrip(".")
        message = f"the edge does not serve {kind}; the object waits for its definition"
        return _step(o, o.record, SyncOutcome("Waiting", "KindUnknown", message))
    plan = difference(replace(o, served=True, live=None))
    entries = [action for action in plan if isinstance(action, Record)]
    if len(entries) == len(plan):
        return plan
    return replace(plan, actions=entries, requeue_after_seconds=None)


def _unrecorded(o: Observed) -> DownsyncPlan:
    """Something nobody wants, and of which we do not know that we placed it: not our concern."""
    live = o.live
    if live is not None and live.get(OURS) and live["metadata"].get("uid") != o.released_uid:
        message = "it bears our field manager but no record says that this syncer placed it"
        return _step(o, None, SyncOutcome("Held", "NotRecorded", message))
    return _step(o, None, GONE)


def _keep(o: Observed, wanted: Desired, doubted: Doubt | None) -> DownsyncPlan:
    """Have *wanted* at the edge; *doubted* is why it is kept although the mailbox lacks it."""
    record = _recorded(o, wanted, doubted)
    ready = APPLIED if doubted is None else SyncOutcome("Held", doubted.reason, doubted.message)
    live = o.live
    if live is None:
        # What we make now has another UID than what was there: until the edge has reported it, the
        # record is an intent again, or a crash would leave an object nobody answers for.
        intent = replace(record, edge_uid="", applied="", ours="", created=True)
        return _applied(o, wanted, "Missing", ready, intent, force=False)
    if live["metadata"].get("deletionTimestamp"):
        return _step(o, record, _BEING_DELETED)
    if not _ours(o, live):
        return _meet(o, wanted, record)
    if wanted.options.create_only:
        return _step(o, replace(record, edge_uid=live["metadata"].get("uid", "")), ready)
    current = record.applied == wanted.digest
    if current and live[OURS] == record.ours:
        return _step(o, record, ready)
    if o.immutable:
        return _immutable(o, wanted, live, record)
    return _applied(o, wanted, "Drifted" if current else "Changed", ready, record, force=True)


def _recorded(o: Observed, wanted: Desired, doubted: Doubt | None) -> DownsyncRecord:
    """Return what to remember: the newest wish, and what was known of the edge's object."""
    if doubted is not None and o.record is not None:
        return o.record
    known = o.record or DownsyncRecord(wanted)
    # A later revision of the same content is no news, and news are written to disk. Nor is an owner
    # where none was recorded: records of an earlier version have none.
    owner = wanted.owner if known.desired.owner else ""
    same = replace(wanted, revision=known.desired.revision, owner=owner) == known.desired
    return replace(
        known,
        desired=known.desired if same else wanted,
        store=o.evidence.store or known.store,
        config_revision=o.evidence.config_revision or known.config_revision,
    )


def _ours(o: Observed, live: Object) -> bool:
    if o.record is not None and o.record.is_of(live):
        return True
    # A lost record: the server itself says that we applied this object.
    return bool(live.get(OURS)) and (o.record is None or o.record.is_intent)


def _meet(o: Observed, wanted: Desired, record: DownsyncRecord) -> DownsyncPlan:
    """Decide about an object that was there before us."""
    before_us = replace(record, edge_uid="", applied="", ours="", created=False)
    if o.ref.group_resource == NAMESPACES:
        # A namespace is a place, not a thing: ours or not, objects go into it.
        return _applied(o, wanted, "Joined", APPLIED, before_us, force=False)
    if wanted.options.adopt:
        return _applied(o, wanted, "Adopted", APPLIED, before_us, force=True)
    message = (
        "an object of this name exists at the edge and was not placed by this syncer; annotate "
        "the source with edge.kcp.io/adopt=true to take it over"
    )
    return _step(o, o.record, SyncOutcome("Failed", "NotOurs", message))


def _immutable(o: Observed, wanted: Desired, live: Object, record: DownsyncRecord) -> DownsyncPlan:
    if wanted.options.recreate:
        return _step(o, record, APPLIED, _deletion(o, live, "Recreated"))
    message = (
        "the change is to a field that cannot change; annotate the source with "
        f"{RECREATE}=true to have the object deleted and created again"
    )
    return _step(o, record, SyncOutcome("Failed", "ImmutableField", message))


def _remove(o: Observed, record: DownsyncRecord) -> DownsyncPlan:
    """Remove what we placed and nobody wants any more."""
    live = o.live
    if live is None or not record.is_of(live):
        return _step(o, None, GONE)
    options = record.desired.options
    if options.orphan or options.create_only or not record.created:
        return _step(o, None, ORPHANED)
    if live["metadata"].get("deletionTimestamp"):
        return _step(o, record, _FINALIZING)
    if o.ref.group_resource in (NAMESPACES, DEFINITIONS):
        if o.in_use is None:
            return _step(o, record, _INSPECTING)
        if o.in_use:
            in_use = _step(o, record, SyncOutcome("Held", "InUse", o.in_use))
            return replace(in_use, requeue_after_seconds=_INSPECT_AGAIN_SECONDS)
    match o.budget:
        case "unproposed":
            # Whatever else is missing is judged with it, so it is proposed before it is deleted.
            plan = replace(_step(o, record, _DELETING), requeue_after_seconds=0.0)
        case "held":
            plan = _step(o, record, _HELD)
        case "allowed":
            reason = "Unwanted" if o.covered else "OutOfScope"
            plan = _step(o, record, _DELETING, _deletion(o, live, reason))
    return replace(plan, deletes=True)


# -- plans -----------------------------------------------------------------------------------


def _applied(
    o: Observed,
    wanted: Desired,
    reason: str,
    outcome: SyncOutcome,
    record: DownsyncRecord,
    *,
    force: bool,
) -> DownsyncPlan:
    target = _target(o, wanted.version)
    action = Apply(target, wanted.content, reason, force=force or wanted.options.adopt)
    # The answer is laid over the watch for a while; then the watch alone is asked again.
    return replace(_step(o, record, outcome, action), requeue_after_seconds=OVERLAY_SECONDS + 1)


def _deletion(o: Observed, live: Object, reason: str) -> Delete:
    known = o.record.desired if o.record else o.wanted
    target = _target(o, known.version if known else "")
    return Delete(target, reason, uid=live["metadata"].get("uid", ""), propagation="Background")


def _step(
    o: Observed, record: DownsyncRecord | None, outcome: SyncOutcome, *requests: Action
) -> DownsyncPlan:
    """Return the plan that remembers *record*, then makes *requests*."""
    if record is None and o.record and o.record.is_intent and o.settling_seconds > 0:
        # What is not there yet may still come: the intent stays until it cannot.
        return DownsyncPlan(
            ref=o.ref,
            outcome=outcome,
            record=o.record,
            requeue_after_seconds=o.settling_seconds,
        )
    actions = [*_entries(o, record, outcome), *requests]
    return DownsyncPlan(actions, ref=o.ref, outcome=outcome, record=record)


def _entries(o: Observed, record: DownsyncRecord | None, outcome: SyncOutcome) -> list[Action]:
    """Return what changes in the journal; what is left at the edge on purpose is noted too."""
    if record == o.record:
        return []
    entries: dict[str, object] = {placed_key(o.ref): record and record.encode()}
    left = outcome == ORPHANED and o.live is not None
    uid = str(o.live["metadata"].get("uid") or "") if left and o.live else ""
    if uid != o.released_uid:
        entries[released_key(o.ref)] = uid or None
    known = record or o.record
    target = _target(o, known.desired.version if known else "")
    reason = "Forgotten" if record is None else "Intended" if record.is_intent else "Known"
    return [Record(target, entries, reason)]


def _target(o: Observed, version: str) -> Target:
    gvr = GroupVersionResource(o.ref.group, version, o.ref.resource)
    return Target(gvr, o.ref.name, o.ref.namespace)
