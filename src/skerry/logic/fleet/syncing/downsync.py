"""What is to be done about one object that goes down.

``decide`` looks at the mailbox's wish, the edge's state, the record and the evidence, and returns
one step. Steps are small on purpose: apply, or delete, or nothing; the next event brings the next
one, so any of them may be lost.

When the mailbox's silence is not believed, the record speaks for the mailbox: the edge goes on
running what it was last told to run, and repairs it too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.evidence import Doubt, Evidence, doubt
from skerry.logic.fleet.syncing.projection import OURS
from skerry.logic.fleet.syncing.records import Desired, Placed
from skerry.logic.machinery.edges.scope import DEFINITIONS, NAMESPACES
from skerry.logic.machinery.plan import Apply, Delete, Plan, Target

State = Literal["Applied", "Waiting", "Failed", "Held", "Gone"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How things stand with one object, in one word and one sentence."""

    state: State
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that matters about one object."""

    ref: ObjectRef
    # What the mailbox has; None when it has nothing, or when it cannot be asked.
    wanted: Desired | None
    covered: bool
    # The edge's object in reduced form.
    live: Object | None
    record: Placed | None
    evidence: Evidence
    # The last apply of this very content was refused because a field cannot change.
    immutable: bool = False
    # For Namespaces and definitions about to go: why they are not empty; None is not known yet.
    in_use: str | None = None
    # The edge's object is one that was left there on purpose.
    released: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """One step. ``record`` is what to remember before it is taken; None forgets."""

    plan: Plan
    outcome: Outcome
    record: Placed | None
    # Ask whether the container is in use, then decide again.
    look_inside: bool = False
    # This would be a deletion if the budget allowed.
    pending_deletion: bool = False


APPLIED = Outcome("Applied", "Applied")
_GONE = Outcome("Gone", "Removed")
# No longer ours, and left where it is: its owner asked for that, or it was there before us.
ORPHANED = Outcome("Gone", "Orphaned")


def decide(o: Observed) -> Decision:
    """Return the step that brings the edge closer to what the mailbox wants."""
    if o.wanted is not None and o.covered:
        return _keep(o, o.wanted, None)
    if o.record is None:
        return _unrecorded(o)
    doubted = doubt(o.record, o.evidence, covered=o.covered)
    if doubted is not None:
        return _keep(o, o.record.desired, doubted)
    return _remove(o, o.record)


def _unrecorded(o: Observed) -> Decision:
    """Something nobody wants, and of which we do not know that we placed it: not our concern."""
    if o.live is not None and o.live.get(OURS) and not o.released:
        message = "it bears our field manager but no record says that this syncer placed it"
        return Decision(Plan(), Outcome("Held", "NotRecorded", message), None)
    return Decision(Plan(), _GONE, None)


def _keep(o: Observed, wanted: Desired, doubted: Doubt | None) -> Decision:
    """Have *wanted* at the edge; *doubted* is why it is kept although the mailbox lacks it."""
    record = _recorded(o, wanted, doubted)
    ready = APPLIED if doubted is None else Outcome("Held", doubted.reason, doubted.message)
    live = o.live
    if live is None:
        # What we make now has another UID than what was there: until the edge has told it, the
        # record is an intent again, or a crash would leave an object nobody answers for.
        intent = replace(record, edge_uid="", applied="", ours="", created=True)
        return Decision(_applied(o, wanted, "Missing", force=False), ready, intent)
    if live["metadata"].get("deletionTimestamp"):
        message = "it is being deleted at the edge and will be made anew"
        return Decision(Plan(), Outcome("Waiting", "BeingDeleted", message), record)
    if not _ours(o, live):
        return _meet(o, wanted, live, record)
    if wanted.options.create_only:
        known = replace(record, edge_uid=live["metadata"].get("uid", ""))
        return Decision(Plan(), ready, known)
    current = record.applied == wanted.digest
    if current and live[OURS] == record.ours:
        return Decision(Plan(), ready, record)
    if o.immutable:
        return _immutable(o, wanted, live, record)
    reason = "Drifted" if current else "Changed"
    return Decision(_applied(o, wanted, reason, force=True), ready, record)


def _recorded(o: Observed, wanted: Desired, doubted: Doubt | None) -> Placed:
    """Return what to remember: the newest wish, and what was known of the edge's object."""
    if doubted is not None and o.record is not None:
        return o.record
    known = o.record or Placed(wanted)
    # A later revision of the same content is no news, and news are written to disk.
    same = replace(wanted, revision=known.desired.revision) == known.desired
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
    return bool(live.get(OURS)) and (o.record is None or not o.record.edge_uid)


def _meet(o: Observed, wanted: Desired, live: Object, record: Placed) -> Decision:
    """Decide about an object that was there before us."""
    before_us = replace(record, edge_uid="", applied="", ours="", created=False)
    if o.ref.group_resource == NAMESPACES:
        # A namespace is a place, not a thing: ours or not, objects go into it.
        return Decision(_applied(o, wanted, "Joined", force=False), APPLIED, before_us)
    if wanted.options.adopt:
        return Decision(_applied(o, wanted, "Adopted", force=True), APPLIED, before_us)
    message = (
        "an object of this name exists at the edge and was not placed by this syncer; annotate "
        "the source with edge.kcp.io/adopt=true to take it over"
    )
    return Decision(Plan(), Outcome("Failed", "NotOurs", message), o.record)


def _immutable(o: Observed, wanted: Desired, live: Object, record: Placed) -> Decision:
    if wanted.options.recreate:
        return Decision(_deleted(o, live, "Recreated"), APPLIED, record)
    message = (
        "the change is to a field that cannot change; annotate the source with "
        "edge.kcp.io/recreate=true to have the object deleted and made anew"
    )
    return Decision(Plan(), Outcome("Failed", "ImmutableField", message), record)


def _remove(o: Observed, record: Placed) -> Decision:
    """Remove what we placed and nobody wants any more."""
    live = o.live
    if live is None or not record.is_of(live):
        return Decision(Plan(), _GONE, None)
    options = record.desired.options
    if options.orphan or options.create_only or not record.created:
        return Decision(Plan(), ORPHANED, None)
    if live["metadata"].get("deletionTimestamp"):
        return Decision(Plan(), Outcome("Waiting", "BeingDeleted"), record)
    if o.ref.group_resource in (NAMESPACES, DEFINITIONS):
        if o.in_use is None:
            return Decision(Plan(), Outcome("Waiting", "LookingInside"), record, look_inside=True)
        if o.in_use:
            return Decision(Plan(), Outcome("Held", "InUse", o.in_use), record)
    if not o.evidence.within_budget:
        held = Outcome("Held", "DeletionHeld", "too much would be deleted at once")
        return Decision(Plan(), held, record, pending_deletion=True)
    plan = _deleted(o, live, "Unwanted" if o.covered else "OutOfScope")
    return Decision(plan, Outcome("Waiting", "Deleting"), record, pending_deletion=True)


def _target(o: Observed, version: str) -> Target:
    gvr = GroupVersionResource(o.ref.group, version, o.ref.resource)
    return Target(gvr, o.ref.name, o.ref.namespace)


def _applied(o: Observed, wanted: Desired, reason: str, *, force: bool) -> Plan:
    target = _target(o, wanted.version)
    return Plan([Apply(target, wanted.content, reason, force=force or wanted.options.adopt)])


def _deleted(o: Observed, live: Object, reason: str) -> Plan:
    version = o.record.desired.version if o.record else o.wanted.version if o.wanted else ""
    target = _target(o, version)
    uid = live["metadata"].get("uid", "")
    return Plan([Delete(target, reason, uid=uid, propagation="Background")])
