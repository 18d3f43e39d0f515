"""What to write so that slices say what the index says."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.edge import SINGLE_PLACEMENT_SLICES, slice_owner
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.observe import Observed
from skerry.controllers.edge_scheduler.written import HeldSlice
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    DESTINATIONS_PER_SLICE,
    WantedSlice,
    corrected_metadata,
    metadata_is_right,
    new_slice,
    wanted_slices,
)
from skerry.logic.machinery.plan import NOTHING, Action, Create, Delete, Plan, Target, Update


@dataclass(frozen=True, slots=True)
class SlicePlan(Plan):
    """A plan, and what the slices of a placement hold once it has been carried out.

    Without a *ref* nobody needs to remember that.
    """

    ref: ObjectRef | None = None
    destinations: tuple[Destination, ...] = ()


def decide(observed: Observed, per_slice: int = DESTINATIONS_PER_SLICE) -> Plan:
    """Create, correct and delete slices until they are as wanted.

    With an invalid selector nothing is known to be right, so nothing is touched.
    """
    if observed.result.errors:
        return NOTHING
    wanted = wanted_slices(observed.ref.name, observed.destinations, observed.taken, per_slice)
    actions: list[Action] = []
    for each in wanted:
        actions += _written(observed, each, observed.slices.get(each.name))
    actions += _surplus(observed, {each.name for each in wanted})
    ref = observed.ref if observed.tracked else None
    return SlicePlan(actions, unordered=True, ref=ref, destinations=observed.destinations)


def _written(observed: Observed, wanted: WantedSlice, held: HeldSlice | None) -> list[Action]:
    target = Target(SINGLE_PLACEMENT_SLICES, wanted.name, cluster=observed.ref.cluster)
    if held is None:
        obj = new_slice(wanted, observed.owner)
        # Somebody else's slice of that name is not as good: look again and take it over.
        return [Create(target, obj, reason="SliceMissing", exclusive=True)]
    right = metadata_is_right(held.metadata, wanted, observed.owner)
    if right and held.digest == wanted.digest:
        return []
    obj = new_slice(wanted, observed.owner)
    obj["metadata"] = corrected_metadata(held.metadata, wanted, observed.owner)
    reason = "DestinationsChanged" if held.digest != wanted.digest else "OwnerChanged"
    return [Update(target, obj, reason=reason)]


def _surplus(observed: Observed, wanted: set[str]) -> list[Action]:
    """Return the deletion of further slices that hold nothing any more.

    Only of slices that name exactly this placement as their owner, and only as they were seen.
    """
    return [
        Delete(
            Target(SINGLE_PLACEMENT_SLICES, name, cluster=observed.ref.cluster),
            reason="SliceSurplus",
            uid=held.metadata["uid"],
            resource_version=held.metadata["resourceVersion"],
        )
        for name, held in observed.slices.items()
        if name not in wanted and slice_owner(held.metadata) == observed.owner
    ]
