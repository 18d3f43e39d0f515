"""Table ``difference``, back: what the mailbox does not yet say about an object at the edge.

Two things return, each only where it differs from what the mailbox shows: the marks that tell how
delivery went (``delivery``), and the status that the edge's own controllers wrote.

A status goes back as a JSON patch, because it says exactly what is meant: this whole status, on
this very object. Were the mailbox object replaced meanwhile, the test of its UID fails and nothing
is written. Nobody needs the answers, so they travel together where the hub can take them so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.kinds import GroupVersionResource
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


def status_writeback(o: WritebackObserved) -> Plan:
    """Return what to write in the mailbox so that it tells how one object fares."""
    target = Target(o.gvr, o.ref.name, o.ref.namespace)
    return Plan([*_marks(o, target), *_status(o, target)])


def _marks(o: WritebackObserved, target: Target) -> list[Patch]:
    outcome = o.outcome
    if outcome.state == "Gone" or outcome.reason in _QUIET or not _is_current(o):
        return []
    annotations = marked(o.copy, outcome)
    if annotations is None:
        return []
    patch = {"metadata": {"uid": o.copy["metadata"]["uid"], "annotations": annotations}}
    return [Patch(target, patch, MARKED, quiet=True)]


def _is_current(o: WritebackObserved) -> bool:
    """Tell whether the outcome is about what the mailbox says now."""
    if o.outcome.state != "Applied":
        return True
    if o.record is None:
        return False
    return o.record.desired.options.create_only or o.record.applied == digest(carried(o.copy))


def _status(o: WritebackObserved, target: Target) -> list[Patch]:
    if o.record is None or o.live is None or not o.record.is_of(o.live):
        return []
    status = o.live.get("status")
    if not status or o.copy.get("status") == status:
        return []
    patch = [
        {"op": "test", "path": "/metadata/uid", "value": o.copy["metadata"]["uid"]},
        {"op": "add", "path": "/status", "value": status},
    ]
    part = "status" if o.has_status else ""
    return [Patch(target, patch, RETURNED, kind="json", subresource=part, quiet=True)]
