"""Table ``difference``, back: what the mailbox does not yet say about an object at the edge.

Three things return, each only where it differs from what the mailbox shows: the marks that tell how
delivery went (``delivery``), the status that the edge's own controllers wrote, and the mark with
the cause, should that status not be well (``cause``).

A status goes back as a JSON patch, because it says exactly what is meant: this whole status, on
this very object. Were the mailbox object replaced meanwhile, the test of its UID fails and nothing
is written. Our hub takes marks along with a status, so both are one write; a hub that takes the
status alone (as kcp does) leaves the marks as they were, and the next look writes them. Nobody
needs the answers, so writes of many objects travel together where the hub can take them so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import CAUSE
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.carrying import carried, digest
from skerry.logic.fleet.syncing.delivery import marked
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.machinery.plan import Patch, Plan, Target

# Reasons of the two patches, by which they are counted.
MARKED = "Marked"
RETURNED = "StatusReturned"

# Outcomes that only say that the hub has not been heard yet: nothing to tell it.
_QUIET = frozenset(("HubAway", "NoSyncerConfig"))


@dataclass(frozen=True, slots=True)
class WritebackObserved:
    """One object on both sides."""

    ref: ObjectRef
    # The type at the version it is followed at.
    gvr: GroupVersionResource
    # The object in the mailbox, whole.
    copy: Mapping[str, Any]
    # The row of ``present``.
    live: Mapping[str, Any] | None
    record: DownsyncRecord | None
    outcome: SyncOutcome
    # The mailbox keeps the type's status apart, as a subresource.
    has_status: bool = True
    # Why it is not well at the edge; empty when it is, None when that is not to be reported.
    cause: str | None = None


def status_writeback(o: WritebackObserved) -> Plan:
    """Return what to write in the mailbox so that it tells how one object fares."""
    target = Target(o.gvr, o.ref.name, o.ref.namespace)
    marks, status = {**_marks(o), **_cause(o)}, _status(o)
    if status is None:
        return Plan([_marked(o, target, marks)] if marks else [])
    # A member of what is not there cannot be added; what came with it is written first.
    together = bool(o.copy["metadata"].get("annotations"))
    before = [] if together or not marks else [_marked(o, target, marks)]
    return Plan([*before, _returned(o, target, status, marks if together else {})])


def _marks(o: WritebackObserved) -> dict[str, str | None]:
    outcome = o.outcome
    if outcome.state == "Gone" or outcome.reason in _QUIET or not _is_current(o):
        return {}
    return marked(o.copy, outcome) or {}


def _is_current(o: WritebackObserved) -> bool:
    """Tell whether the outcome is about what the mailbox says now."""
    if o.outcome.state != "Applied":
        return True
    if o.record is None:
        return False
    return o.record.desired.options.create_only or o.record.applied == digest(carried(o.copy))


def _cause(o: WritebackObserved) -> dict[str, str | None]:
    reported = (o.copy["metadata"].get("annotations") or {}).get(CAUSE, "")
    if o.cause is None or o.cause == reported:
        return {}
    return {CAUSE: o.cause or None}


def _status(o: WritebackObserved) -> Any:
    """Return the status to write; None when there is none, or the mailbox has it."""
    if o.record is None or o.live is None or not o.record.is_of(o.live):
        return None
    status = o.live.get("status")
    return None if not status or o.copy.get("status") == status else status


def _marked(o: WritebackObserved, target: Target, marks: dict[str, str | None]) -> Patch:
    patch = {"metadata": {"uid": o.copy["metadata"]["uid"], "annotations": marks}}
    return Patch(target, patch, MARKED, quiet=True)


def _returned(
    o: WritebackObserved, target: Target, status: Any, marks: dict[str, str | None]
) -> Patch:
    patch: list[Object] = [
        {"op": "test", "path": "/metadata/uid", "value": o.copy["metadata"]["uid"]},
        {"op": "add", "path": "/status", "value": status},
    ]
    there = o.copy["metadata"].get("annotations") or {}
    for name, value in marks.items():
        path = f"/metadata/annotations/{name.replace('/', '~1')}"
        if value is not None:
            patch.append({"op": "add", "path": path, "value": value})
        elif name in there:
            patch.append({"op": "remove", "path": path})
    part = "status" if o.has_status else ""
    return Patch(target, patch, RETURNED, kind="json", subresource=part, quiet=True)
