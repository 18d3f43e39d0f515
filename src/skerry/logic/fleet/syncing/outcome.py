"""How things stand with one object: in one word for machines, one sentence for people.

Every difference says it along with its plan; marks on mailbox objects and conditions of the
SyncerConfig are made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skerry.api.errors import ApiError, Conflict, Forbidden, NotFound
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.access import missing_rule

State = Literal["Applied", "Waiting", "Failed", "Held", "Gone"]


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """The state, with a reason in Kubernetes' manner and a message where there is more to say."""

    state: State
    reason: str
    message: str = ""


_VERBS = frozenset(("get", "list", "watch", "create", "update", "patch", "delete"))

APPLIED = SyncOutcome("Applied", "Applied")
GONE = SyncOutcome("Gone", "Removed")
# No longer ours, and left where it is: its owner asked for that, or it was there before us.
ORPHANED = SyncOutcome("Gone", "Orphaned")


# Reasons of what is still at the edge and no longer desired there.
REMOVING = frozenset(
    ("Deleting", "DeletionHeld", "Finalizing", "InUse", "LookingInside", "NotRecorded")
)


def refused(error: ApiError, verb: str, ref: ObjectRef) -> SyncOutcome:
    """Say in the hub's words what the edge said to *verb* of *ref*."""
    if isinstance(error, Forbidden):
        # RBAC says who cannot do what; admission says why this object may not be.
        _, cannot, what = error.message.partition(" cannot ")
        if cannot:
            # An apply of what is not there yet needs ``create`` as well; the edge says which.
            reported = what.partition(" ")[0]
            named = reported if reported in _VERBS else verb
            rule = missing_rule(named, ref.group_resource, ref.namespace)
            return SyncOutcome("Failed", "EdgeForbidden", rule)
        return SyncOutcome("Failed", "Rejected", error.message)
    if isinstance(error, Conflict):
        return SyncOutcome("Failed", "FieldConflict", error.message)
    if isinstance(error, NotFound):
        return SyncOutcome("Waiting", "DependencyMissing", error.message)
    reason = "Rejected" if error.code < 500 else "EdgeFailing"
    return SyncOutcome("Failed", reason, error.message)
