"""What is to be done about one object that was born at the edge.

Its copy in the mailbox is a report: derived, never edited, gone when the original is gone. It
bears ``edge.kcp.io/upsynced: "true"``; something of the same name without that mark is left
alone. What we placed ourselves does not come up: its status does. Nor does what every cluster
makes for itself, such as its root certificate and the tokens of its accounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skerry.api.edge import UPSYNCED, is_system_object
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.carrying import carried, digest
from skerry.logic.fleet.syncing.downsync import Outcome
from skerry.logic.fleet.syncing.records import Raised

Step = Literal["none", "raise", "report", "remove", "forget"]


@dataclass(frozen=True, slots=True)
class UpObserved:
    """Everything that matters about one edge-born object."""

    ref: ObjectRef
    live: Object | None
    # The edge's type was read completely, so that absence is absence.
    edge_synced: bool
    # The SyncerConfig asks for it; None when there is none to ask.
    covered: bool | None
    # We placed it, or the mailbox wants one of this name here: it goes down, not up.
    placed: bool
    record: Raised | None


@dataclass(frozen=True, slots=True)
class UpDecision:
    """One step: send content, send status, remove the copy, forget, or nothing."""

    step: Step
    outcome: Outcome
    content: Object | None = None
    status: Any = None


_RAISED = Outcome("Applied", "Upsynced")
_NOTHING = Outcome("Gone", "NotUpsynced")


def decide_up(o: UpObserved) -> UpDecision:
    """Return the step that brings the mailbox's report closer to the edge's truth."""
    if o.covered is None:
        return UpDecision("none", Outcome("Waiting", "NoSyncerConfig"))
    if o.placed:
        return UpDecision("forget" if o.record else "none", _NOTHING)
    if o.live is None or not o.covered or is_system_object(o.ref.group_resource, o.live):
        return _absent(o)
    content = raised_content(o.live)
    if o.record is None or o.record.content != digest(content):
        return UpDecision("raise", _RAISED, content, o.live.get("status"))
    if o.live.get("status") and o.record.status != digest(o.live["status"]):
        return UpDecision("report", _RAISED, None, o.live["status"])
    return UpDecision("none", _RAISED)


def _absent(o: UpObserved) -> UpDecision:
    if o.record is None:
        return UpDecision("none", _NOTHING)
    if o.live is None and o.covered and not o.edge_synced:
        return UpDecision("none", Outcome("Waiting", "EdgeAway"))
    return UpDecision("remove", _NOTHING)


def raised_content(obj: Mapping[str, Any]) -> Object:
    """Return what of an edge object its copy in the mailbox shows, status aside."""
    content = carried(obj)
    metadata = content["metadata"]
    notes = {**metadata.get("annotations", {}), UPSYNCED: "true"}
    content["metadata"] = {**metadata, "annotations": notes}
    return content
