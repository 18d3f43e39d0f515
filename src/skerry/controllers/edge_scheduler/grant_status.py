"""The status of a LocationGrant: what it selects, whom it names, and whether it is enforced.

Whether a workspace is closed is remembered in its LocationConsent (``consent``), so ``Enforced`` is
True only when that says so: from then on not even deleting the grant opens the workspace.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from skerry.api.edge import API_VERSION, ENFORCE, LOCATION_GRANTS, ConsentMode
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.grants import Grant
from skerry.logic.machinery.conditions import condition, set_conditions
from skerry.logic.machinery.plan import Action, Target, Update

ENFORCED = "Enforced"


class SeenGrant(NamedTuple):
    """A grant, its object, and how many Locations and workspaces it is about."""

    grant: Grant
    object: Object
    locations: int
    workspaces: int


def grant_status(
    seen: SeenGrant, mode: ConsentMode | None, record: Object | None, now: datetime
) -> Action | None:
    """Return the update of a grant's status; None when it is up to date.

    It goes by the LocationConsent that was seen, not by the one that this plan writes: so
    ``Enforced`` comes one reconcile later, when the memory of it is there for certain.
    """
    old = seen.object.get("status") or {}
    wanted = {
        **old,
        "observedGeneration": int(seen.object["metadata"].get("generation") or 0),
        "locations": seen.locations,
        "workspaces": seen.workspaces,
        "conditions": set_conditions(
            old.get("conditions") or (), [_enforced(seen, mode, record)], rfc3339(now)
        ),
    }
    if wanted == old:
        return None
    target = Target(LOCATION_GRANTS, seen.grant.ref.name, cluster=seen.grant.ref.cluster)
    obj = {
        "apiVersion": API_VERSION,
        "kind": "LocationGrant",
        **seen.object,
        "status": wanted,
    }
    return Update(target, obj, "GrantEvaluated", subresource="status")


def _enforced(seen: SeenGrant, mode: ConsentMode | None, record: Object | None) -> Object:
    if seen.grant.errors:
        return condition(ENFORCED, False, "Invalid", "; ".join(seen.grant.errors))
    if not seen.grant.enforces:
        text = "the grant admits nobody: others enforce" if mode == ENFORCE else ""
        return condition(ENFORCED, False, "Observing", text)
    if (record or {}).get("mode") != ENFORCE:
        # From the moment this is True, not even deleting the grant opens the workspace.
        return condition(
            ENFORCED, False, "Pending", "the workspace's LocationConsent is being written"
        )
    return condition(ENFORCED, True, "Enforced", "")
