"""What to write so that the slices of a placement hold its destinations.

Each part takes an ``Observed`` and hands on one with other destinations::

    observed   the index: who is selected, admitted and there
    allow      plus those that guards keep, minus those that a freeze keeps out (``guards``)
    roll       minus newcomers that wait their turn, plus those that leave later (``rollout_plan``)
    pages      which slice holds whom, and in which order slices are written
    recorded   what of that is new, as decisions (``history``)

The order matters. Guards see everything that is to go, before a Rollout spreads it over an hour: a
loss taken in small steps would pass every budget that counts one decision. The Rollout comes after
them, so it paces only what may go at all. The history comes last: it has what is written, and not
what was asked for.

The built-in floor has guards asked where nothing else did. It is counted here, on what would be
written, and is exceeded by more than 50 that are also more than half of what is there.

    there   wanted   go   limit   comes to
       40        0   40      50   they go, unasked
       60       10   50      50   they go, unasked
       60        9   51      50   ``examine``: come back at once, with guards asked
      200       90  110     100   the same
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skerry.api.edge import (
    NEXT_SLOT,
    SINGLE_PLACEMENT_SLICES,
    placement_of_slice,
    slice_owner,
)
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.guards import Allowed, allow, exceeds_floor
from skerry.controllers.edge_scheduler.history import Story, recorded
from skerry.controllers.edge_scheduler.observed import Gone, Kept, Observation, Observed
from skerry.controllers.edge_scheduler.rollout_plan import roll
from skerry.logic.fleet.history.observations import Seen
from skerry.logic.fleet.placement.pages import MAX_DESTINATIONS, Pages, PageWrite, pages
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    Assigned,
    assigned_members,
    corrected_metadata,
    member,
    metadata_is_right,
    new_slice,
    page_number,
    unpacked_members,
)
from skerry.logic.fleet.placement.slots import FIRST_SLOT, next_known, slots_in
from skerry.logic.machinery.plan import Action, Create, Delete, Plan, Target, Update


@dataclass(frozen=True, slots=True)
class SlicePlan(Plan):
    """A plan for one placement, and what was found for it.

    *before* is carried out first, in order. Then the first *receivers* of its actions may be in any
    order, the others one by one when all of those have been: see ``logic.fleet.placement.pages``.
    *examine*: guards have to be asked, and the placement observed anew for them. *undecided*: it
    comes back before anything is decided, and what led here will have led there. *finalizes*: the
    first of *before* is the finalizer of guards, which records follow.
    """

    observed: Observation | None = None
    receivers: int = 0
    before: tuple[Action, ...] = ()
    examine: bool = False
    undecided: bool = False
    finalizes: bool = False
    # What is to be recorded before any of it, and what of a Rollout is recorded then.
    story: Story | None = None
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What slices are to say: destinations by member, what they are given, the next slot."""

    destinations: Mapping[int, Destination]
    assigned: Mapping[int, Assigned]
    next_slot: int

    def given(self, members: Iterable[int]) -> dict[int, Assigned]:
        """Return what some of them are given."""
        if not self.assigned:
            return {}
        return {each: self.assigned[each] for each in members if each in self.assigned}


def _guarded(allowed: Allowed) -> SlicePlan:
    """Return the plan where guards let no slice be touched."""
    return SlicePlan(
        (),
        allowed.announcements,
        allowed.requeue_after_seconds,
        observed=allowed.observed,
        before=allowed.before,
        undecided=allowed.undecided,
        story=recorded(allowed.observed, notes=allowed.notes).story,
    )


def _examined(observed: Observed) -> SlicePlan:
    """Return the plan to come back at once and have guards asked."""
    return SlicePlan(requeue_after_seconds=0.0, observed=observed, examine=True, undecided=True)


def decide(
    observed: Observation,
    limit: int = MAX_DESTINATIONS,
    assigned: Mapping[int, Assigned] | None = None,
    *,
    floor: bool = False,
) -> SlicePlan:
    """Create, correct and delete slices until they are as they should be.

    With an invalid selector nothing is known to be right, so nothing is touched. The slices of a
    placement that is gone are the garbage collector's. *assigned* is what the destinations of a
    placement with a Rollout are given, by member. With *floor* the built-in guard counts.
    """
    if isinstance(observed, Gone):
        return SlicePlan(observed=observed, before=observed.actions)
    if isinstance(observed, Kept) or observed.result.errors:
        return SlicePlan(observed=observed)
    allowed = allow(observed)
    observed = allowed.observed
    if allowed.finished:
        return _guarded(allowed)
    current, unasked = _current(observed), floor and observed.guarded is None
    # Before a Rollout spreads it over time: what is taken away slowly is taken away all the same.
    if unasked and observed.rollout is not None and _departs(observed, current):
        return _examined(observed)
    rolled = roll(observed)
    observed = rolled.observed
    given = assigned or rolled.assigned or {}
    wanted = _wanted(observed, given)
    if unasked and exceeds_floor(current.values(), wanted.destinations):
        return _examined(observed)
    found = pages(current, list(wanted.destinations), observed.page_names, limit)
    receivers = [
        _written(observed, write, wanted)
        for write in (*found.receivers, *_restated(observed, current, found, wanted))
    ]
    givers = [
        action for write in found.givers if (action := _given(observed, write, wanted)) is not None
    ]
    actions = [*receivers, *givers]
    record = recorded(
        observed, wanted.destinations if actions else None, given, rolled.state, allowed.notes
    )
    return SlicePlan(
        actions,
        (*allowed.announcements, *rolled.announcements),
        _earlier(
            allowed.requeue_after_seconds,
            rolled.requeue_after_seconds,
            record.requeue_after_seconds,
        ),
        observed=observed,
        receivers=len(receivers),
        before=(*allowed.before, *rolled.before),
        finalizes=allowed.finalizes,
        story=record.story,
        seen=record.seen,
    )


def _departs(observed: Observed, current: Mapping[str, Sequence[int]]) -> bool:
    """Tell whether more is to go than goes unasked."""
    return exceeds_floor(current.values(), {member(each) for each in observed.destinations})


def _wanted(observed: Observed, given: Mapping[int, Assigned]) -> _Wanted:
    """Return what slices are to say; the next slot never falls below what any of them says."""
    following = max((each.slot + 1 for each in given.values()), default=FIRST_SLOT)
    return _Wanted(
        {member(each): each for each in observed.destinations},
        given,
        max(following, slots_in(observed.slices.values()).next),
    )


def _earlier(*seconds: float | None) -> float | None:
    return min((each for each in seconds if each is not None), default=None)


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


def _restated(
    observed: Observed, current: Mapping[str, Sequence[int]], found: Pages[int], wanted: _Wanted
) -> Iterable[PageWrite[int]]:
    """Yield writes of pages that hold the right destinations, and say something else of them.

    The owner, the label, or what destinations are given. And the first page says which slot comes
    next before a page that knows it goes away.
    """
    named = {write.name for write in (*found.receivers, *found.givers)}
    for name in observed.page_names:
        held = observed.slices.get(name)
        if held is None or name in named:
            continue
        forgets = found.givers and name == observed.page_names[0]
        if (
            not metadata_is_right(held["metadata"], observed.owner)
            or wanted.given(current[name]) != assigned_members(held)
            or (forgets and next_known(held) < wanted.next_slot)
        ):
            yield PageWrite(name, tuple(current[name]))


def _written(observed: Observed, write: PageWrite[int], wanted: _Wanted) -> Action:
    """Return the write of a whole page, on the version that was observed.

    Annotations and further labels that others have put on it stay.
    """
    target = Target(SINGLE_PLACEMENT_SLICES, write.name, cluster=observed.ref.cluster)
    members = write.members or ()
    entries = [wanted.destinations[each] for each in members]
    given = {wanted.destinations[k]: v for k, v in wanted.given(members).items()}
    obj = new_slice(write.name, observed.owner, entries, given)
    held = observed.slices.get(write.name)
    if held is not None:
        obj["metadata"] = corrected_metadata(held["metadata"], observed.owner)
    if wanted.next_slot > FIRST_SLOT:
        annotations = obj["metadata"].get("annotations") or {}
        obj["metadata"]["annotations"] = {**annotations, NEXT_SLOT: str(wanted.next_slot)}
    if held is None:
        # Somebody else's slice of that name is not as good: observe again and take it over.
        return Create(target, obj, reason="SliceMissing", exclusive=True)
    return Update(target, obj, reason=_reason(observed, held, members, wanted))


def _reason(observed: Observed, held: Object, members: Sequence[int], wanted: _Wanted) -> str:
    """Return why a page is written.

    ``DestinationsKept``: so that others may give up what it holds, or forget which slot comes next.
    """
    if list(unpacked_members(held["members"])) != list(members):
        return "DestinationsChanged"
    if wanted.given(members) != assigned_members(held):
        return "RevisionsChanged"
    right = metadata_is_right(held["metadata"], observed.owner)
    return "DestinationsKept" if right else "OwnerChanged"


def _given(observed: Observed, write: PageWrite[int], wanted: _Wanted) -> Action | None:
    if write.members is None:
        return _removed(observed, write.name)
    return _written(observed, write, wanted)


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
    # Without an owner, a label or a name alone proves nothing: anybody may have made it.
    owner = slice_owner(held["metadata"])
    if owner is not None:
        return owner == observed.owner
    placement = observed.ref.name
    return page_number(placement, name) is not None and placement_of_slice(held) == placement
