"""What to write so that the slices of a placement hold its destinations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skerry.api.edge import SINGLE_PLACEMENT_SLICES, placement_of_slice, slice_owner
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.observe import Gone, Observed
from skerry.logic.fleet.placement.pages import MAX_DESTINATIONS, PageWrite, pages
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    corrected_metadata,
    member,
    metadata_is_right,
    new_slice,
    page_number,
    unpacked_members,
)
from skerry.logic.machinery.plan import Action, Create, Delete, Plan, Target, Update


@dataclass(frozen=True, slots=True)
class SlicePlan(Plan):
    """A plan for one placement, and what was found for it.

    The first *receivers* of its actions may be carried out in any order, the others only when all
    of those have been: see ``logic.fleet.placement.pages``.
    """

    observed: Observed | Gone | None = None
    receivers: int = 0


def decide(observed: Observed | Gone, limit: int = MAX_DESTINATIONS) -> SlicePlan:
    """Create, correct and delete slices until they are as they should be.

    With an invalid selector nothing is known to be right, so nothing is touched. The slices of a
    placement that is gone are the garbage collector's.
    """
    if isinstance(observed, Gone) or observed.result.errors:
        return SlicePlan(observed=observed)
    wanted = {member(each): each for each in observed.destinations}
    current = _current(observed)
    found = pages(current, list(wanted), observed.page_names, limit)
    receivers = [
        action
        for write in _with_restated(observed, current, found.receivers, found.givers)
        if (action := _written(observed, write, wanted)) is not None
    ]
    givers = [
        action for write in found.givers if (action := _removed(observed, write.name)) is not None
    ]
    return SlicePlan([*receivers, *givers], observed=observed, receivers=len(receivers))


def _current(observed: Observed) -> dict[str, Sequence[int]]:
    """Return what pages hold; last those that nobody reads as this placement's.

    What such a page has lost its owner with is best restored where it is.
    """
    name = observed.ref.name
    ordered = sorted(
        observed.slices,
        key=lambda each: (
            placement_of_slice(observed.slices[each]) != name,
            page_number(name, each) or 0,
            each,
        ),
    )
    return {each: unpacked_members(observed.slices[each]["members"]) for each in ordered}


def _with_restated(
    observed: Observed,
    current: Mapping[str, Sequence[int]],
    receivers: Iterable[PageWrite[int]],
    givers: Iterable[PageWrite[int]],
) -> Iterable[PageWrite[int]]:
    """Yield writes, and one for each page that is right but for its owner or label."""
    named = {write.name for write in (*receivers, *givers)}
    yield from receivers
    for name in observed.page_names:
        held = observed.slices.get(name)
        if held is None or name in named or metadata_is_right(held["metadata"], observed.owner):
            continue
        yield PageWrite(name, tuple(current[name]))


def _written(
    observed: Observed, write: PageWrite[int], wanted: Mapping[int, Destination]
) -> Action | None:
    target = Target(SINGLE_PLACEMENT_SLICES, write.name, cluster=observed.ref.cluster)
    destinations = [wanted[each] for each in write.members or ()]
    obj = new_slice(write.name, observed.owner, destinations)
    held = observed.slices.get(write.name)
    if held is None:
        # Somebody else's slice of that name is not as good: observe again and take it over.
        return Create(target, obj, reason="SliceMissing", exclusive=True)
    same = list(unpacked_members(held["members"])) == list(write.members or ())
    obj["metadata"] = corrected_metadata(held["metadata"], observed.owner)
    return Update(target, obj, reason="OwnerChanged" if same else "DestinationsChanged")


def _removed(observed: Observed, name: str) -> Action | None:
    """Return the deletion of a slice that holds nothing any more, exactly as it was seen.

    Only of one that is this placement's for certain: its owner says so, or it has no owner, and
    both its name and its label are those of this placement.
    """
    held = observed.slices[name]
    if not _is_own(observed, name, held):
        return None
    return Delete(
        Target(SINGLE_PLACEMENT_SLICES, name, cluster=observed.ref.cluster),
        reason="SliceSurplus",
        uid=held["metadata"]["uid"],
        resource_version=held["metadata"]["resourceVersion"],
    )


def _is_own(observed: Observed, name: str, held: Object) -> bool:
    owner = slice_owner(held["metadata"])
    if owner is not None:
        return owner == observed.owner
    placement = observed.ref.name
    return page_number(placement, name) is not None and placement_of_slice(held) == placement
