"""Table ``difference``, upwards: what is to be done about one object that was born at the edge.

Its copy in the mailbox is a report: derived, never edited, gone when the original is gone. It
bears ``edge.kcp.io/upsynced: "true"``; something of the same name without that mark is left
alone. What we placed ourselves does not come up: its status does. Nor does what every cluster
makes for itself, such as its root certificate and the tokens of its accounts.

The rule of ``evidence`` holds in this direction too: a report is removed because its original is
gone only after the edge's type was read completely.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from skerry.api.edge import UPSYNCED, is_system_object
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.carrying import carried, digest
from skerry.logic.fleet.syncing.outcome import GONE, SyncOutcome
from skerry.logic.fleet.syncing.recorded import UpsyncRecord, upsynced_key
from skerry.logic.fleet.tables.completeness import Verdict, verdict
from skerry.logic.machinery.plan import Action, Apply, Delete, Patch, Plan, Record, Target

_NAMESPACES = GroupVersionResource("", "v1", "namespaces")


@dataclass(frozen=True, slots=True)
class UpsyncObserved:
    """Everything that matters about one edge-born object."""

    ref: ObjectRef
    # The type at the version it is watched at, or was.
    gvr: GroupVersionResource
    live: Object | None
    # The edge's type was read completely, so that absence is absence.
    edge_synced: bool
    # The SyncerConfig asks for it; None when there is none to ask.
    covered: bool | None
    # We placed it, or the mailbox wants one of this name here: it goes down, not up.
    placed: bool
    record: UpsyncRecord | None
    # The mailbox serves the type, and keeps its status apart.
    served: bool = True
    has_status: bool = False
    # The mailbox has another object of this name; None when nobody has looked.
    taken: bool | None = None
    # The mailbox refused the report for want of its Namespace.
    namespace_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsyncPlan(Plan):
    """One step for one report; ``outcome`` is None where there is nothing new to say."""

    ref: ObjectRef
    outcome: SyncOutcome | None = None
    # What to remember once the mailbox has answered an apply with the report's UID.
    record: UpsyncRecord | None = None


_TAKEN = SyncOutcome("Failed", "MailboxNotOurs", "the mailbox has another object of this name")


def upsync(o: UpsyncObserved) -> UpsyncPlan:
    """Return the plan that brings the mailbox's report closer to the edge's truth."""
    plan = _step(o)
    # A type that the mailbox lacks is reported elsewhere; nothing can be done until it is there.
    return plan if o.served else UpsyncPlan(ref=o.ref)


def needs_lookup(o: UpsyncObserved) -> bool:
    """Tell whether the plan depends on whose object bears the name in the mailbox now."""
    if o.taken is not None or (o.record is not None and o.record.mailbox_uid):
        return False
    return any(isinstance(action, Apply) for action in upsync(replace(o, taken=False)))


def _step(o: UpsyncObserved) -> UpsyncPlan:
    if o.covered is None:
        return UpsyncPlan(ref=o.ref)
    if o.placed:
        return UpsyncPlan([_forget(o)] if o.record else (), ref=o.ref)
    if o.live is None or not o.covered or is_system_object(o.ref.group_resource, o.live):
        return _absent(o)
    content = report_content(o.live)
    if o.record is None or o.record.content != digest(content):
        return _raise(o, content)
    status = o.live.get("status")
    if not status or o.record.status == digest(status):
        return UpsyncPlan(ref=o.ref)
    known = replace(o.record, status=digest(status))
    return UpsyncPlan([_status(o, status), _entry(o, known, "StatusReported")], ref=o.ref)


def _absent(o: UpsyncObserved) -> UpsyncPlan:
    """Remove the report of what is gone, or is no longer asked for."""
    if o.record is None:
        return UpsyncPlan(ref=o.ref)
    unread = o.gvr if o.live is None and o.covered and not o.edge_synced else None
    if verdict(None, o.record, same=False, missing=unread) is not Verdict.DELETE:
        return UpsyncPlan(ref=o.ref)
    actions: list[Action] = [_forget(o)]
    if o.record.mailbox_uid:
        reason = "OriginalGone" if o.live is None else "OutOfScope"
        actions.insert(0, Delete(_target(o), reason, uid=o.record.mailbox_uid))
    return UpsyncPlan(actions, ref=o.ref, outcome=GONE)


def _raise(o: UpsyncObserved, content: Object) -> UpsyncPlan:
    """Write the report; its status, which is a part of its own, comes with the next step."""
    if o.taken:
        return UpsyncPlan(ref=o.ref, outcome=_TAKEN)
    actions: list[Action] = []
    if o.namespace_missing:
        name = o.ref.namespace
        place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        actions.append(Apply(Target(_NAMESPACES, name), place, "NamespaceMissing"))
    actions.append(Apply(_target(o), content, "Upsynced"))
    record = UpsyncRecord(o.gvr.version, content=digest(content))
    return UpsyncPlan(actions, ref=o.ref, outcome=GONE, record=record)


def _status(o: UpsyncObserved, status: Any) -> Patch:
    patch = [{"op": "add", "path": "/status", "value": status}]
    part = "status" if o.has_status else ""
    return Patch(_target(o), patch, "StatusReported", kind="json", subresource=part, quiet=True)


def _forget(o: UpsyncObserved) -> Record:
    return _entry(o, None, "Forgotten")


def _entry(o: UpsyncObserved, record: UpsyncRecord | None, reason: str) -> Record:
    return Record(_target(o), {upsynced_key(o.ref): record and record.encode()}, reason)


def _target(o: UpsyncObserved) -> Target:
    return Target(o.gvr, o.ref.name, o.ref.namespace)


def report_content(obj: Mapping[str, Any]) -> Object:
    """Return what of an edge object its report in the mailbox shows, status aside."""
    content = carried(obj)
    metadata = content["metadata"]
    annotations = {**metadata.get("annotations", {}), UPSYNCED: "true"}
    content["metadata"] = {**metadata, "annotations": annotations}
    return content
