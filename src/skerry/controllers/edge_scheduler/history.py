"""DecisionRecords of what happens to slices: made before they are written, in the same reconcile.

What a plan changes about destinations becomes decisions (``decided``, pure). They are written as
records before the slices of the plan (``history_writer``): no slice ever changes without one.

Who leaves is known by name, though the cache of slices keeps numbers only: ``Members`` remembers
each destination once, however many placements have it.

A story follows from the slices that are there and those that are to be, and from nothing else: not
from what the last story was. So a process that has just started records the same as one that has
run for weeks, and a plan that failed half way is recorded for what is left of it. What a record
says besides (who caused it, by which rule a destination was selected) is asked at that moment and
may be less than the truth; that destinations joined or left never is.

Three things look like a change and are none. Slices of a deleted namesake hold destinations which
this placement never had: they begin with it. A destination whose slot is larger than a bitmap takes
is known by its key, without its slot. And a hold whose confirmation was recorded already may stand
in the book once more, when the write that followed had a conflict: it is passed over.

    slices hold   are to hold   recorded first
    nothing       a b           a and b joined
    a b           b c           c joined, a left
    a b           a b           nothing, unless a revision or a slot of one is another
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import orjson

from skerry.api.edge import (
    ROLLOUTS,
    slice_owner,
)
from skerry.api.objects import Object, revision_of
from skerry.controllers.edge_scheduler import observed as observing
from skerry.controllers.edge_scheduler.authors import author_of
from skerry.controllers.edge_scheduler.guards import Note
from skerry.controllers.edge_scheduler.observed import CREATED, Gathered, Observed, Recording
from skerry.logic.fleet.history.difference import Because, Causes, Difference, Move, decisions
from skerry.logic.fleet.history.observations import (
    BATCH_SECONDS,
    Seen,
    by_slot,
    observed_since,
    seen_in,
)
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import (
    Cause,
    Decision,
    Reason,
    Subject,
)
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import (
    Assigned,
    assigned_members,
    destinations_in,
    lean_slice,
    member,
    unpacked_members,
)
from skerry.logic.fleet.rollout.state import ROLLING_BACK, State

# Slots that a bitmap can hold; whoever has a larger one is known by its key.
_MAX_SLOT = 1 << 31
DELETED = Reason("PlacementDeleted", "the EdgePlacement was deleted")
_MOVED = Reason("RevisionAssigned", "")


class Members:
    """Destinations by their members, for those that are in slices."""

    def __init__(self) -> None:
        self._known: dict[int, Destination] = {}
        self._prune_at = 10_000

    def lean(self, obj: Object) -> Object:
        """Return what the cache keeps of a slice, and remember who is in it."""
        lean = lean_slice(obj)
        members = unpacked_members(lean["members"])
        if any(each not in self._known for each in members):
            self.note(destinations_in(obj))
        return lean

    def note(self, destinations: Iterable[Destination]) -> None:
        """Remember destinations that are in a slice, or are about to be."""
        for each in destinations:
            self._known[member(each)] = each

    def get(self, number: int) -> Destination | None:
        """Return the destination that a member stands for."""
        return self._known.get(number)

    def prune(self, slices: Callable[[], Iterable[Object]]) -> None:
        """Forget who is in no slice any more, when there may be as many of them as of others."""
        if len(self._known) < self._prune_at:
            return
        held = {each for piece in slices() for each in unpacked_members(piece["members"])}
        self._known = {number: each for number, each in self._known.items() if number in held}
        self._prune_at = max(10_000, 2 * len(self._known))


@dataclass(frozen=True, slots=True)
class Story:
    """What is to be recorded before slices are written, and what they hold at present."""

    subject: Subject
    decisions: tuple[Decision, ...]
    # Asked for only where a checkpoint is due: there may be ten thousand.
    present: Callable[[], tuple[Standing, ...]] = tuple
    is_empty: bool = True
    # The newest revision of a slice there is; what is decided follows from it.
    follows: int = 0
    # Slices that hold the destinations: one is written at once, several one after another.
    pages: int = 1
    # Somebody leaves of whom nothing but a number is known.
    is_incomplete: bool = False
    # The placement was made since we lead and has no slice: nothing was recorded about it yet.
    is_first: bool = False
    # The hold that a person has confirmed, if any.
    released: str = ""
    # Slices of a namesake that was deleted are taken over, and nothing else is to be said: its
    # records would be taken for this placement's, whose own begin with what it has, nothing.
    succeeds: bool = False


class Recorded(NamedTuple):
    """What is to be recorded before a plan is carried out.

    ``seen`` is what of a Rollout is recorded then. ``requeue_after_seconds``: there is more to
    record, in a batch with what comes until then.
    """

    story: Story | None = None
    seen: Seen | None = None
    requeue_after_seconds: float | None = None


# -- deciding --------------------------------------------------------------------------------


def recorded(
    observed: Observed,
    wanted: Mapping[int, Destination] | None = None,
    assigned: Mapping[int, Assigned] = MappingProxyType({}),
    rolled: State | None = None,
    notes: Sequence[Note] = (),
) -> Recorded:
    """Return what is to be recorded of a change of the slices to *wanted*; None: they stay.

    *rolled* is what its Rollout has decided, *notes* what guards have.
    """
    recording = observed.history
    if recording is None:
        return Recorded()
    present, given = _present(observed)
    difference = Difference()
    if wanted is not None:
        difference = _difference(recording, present, given, wanted, assigned)
    left = 0 if wanted is None else sum(1 for each in present if each not in wanted)
    # The book still has a hold when what was confirmed has gone: that was recorded.
    notes = [each for each in notes if each.confirmed or each.hold != recording.released]
    about_guards = [_noted(observed, recording, given, each) for each in notes]
    seen, observations, wait = _observations(observed, given, at_once=bool(difference))
    found = [*about_guards, *observations]
    if difference or left:
        found += decisions(
            difference,
            causes_of(observed.causes, _placement_cause(observed, recording, first=not present)),
            recording.why_joined,
            recording.why_left,
            Because(why_moved(rolled), _rollout_cause(observed)),
        )
    succeeds = not found and wanted is not None and _succeeds(observed)
    if not found and not succeeds and not left:
        return Recorded(None, seen, wait)
    versions = [each["metadata"].get("resourceVersion") for each in observed.slices.values()]
    story = Story(
        Subject(observed.ref.name, observed.owner.uid, recording.generation),
        tuple(found),
        lambda: tuple(_standings(present, _named_by(recording, wanted), given)),
        not present,
        max(map(revision_of, versions), default=revision_of(recording.resource_version)),
        len(observed.slices),
        is_incomplete=len(difference.left) < left,
        is_first=not observed.slices and _was_created(observed),
        released=next((each.hold for each in notes if each.confirmed), ""),
        succeeds=succeeds,
    )
    return Recorded(story, seen, wait)


def _difference(
    recording: Recording,
    present: Mapping[int, None],
    given: Mapping[int, Assigned],
    wanted: Mapping[int, Destination],
    assigned: Mapping[int, Assigned],
) -> Difference:
    joined = (each for each in wanted if each not in present)
    left = (each for each in present if each not in wanted)
    moved = (
        each
        for each in (present if given or assigned else ())
        if each in wanted and given.get(each) != assigned.get(each)
    )
    return Difference(
        tuple(_standing(wanted[each], assigned.get(each)) for each in joined),
        tuple(_standings(left, recording.destination, given)),
        tuple(_move(wanted[each], given.get(each), assigned.get(each)) for each in moved),
    )


def _noted(
    observed: Observed, recording: Recording, given: Mapping[int, Assigned], note: Note
) -> Decision:
    """Return what guards have decided as a decision; a person's word is its cause."""
    causes = causes_of(observed.causes, ())
    if note.confirmed:
        change, by = f"confirm={note.hold}", recording.changed_by
        version = recording.resource_version
        cause = observing.Cause("EdgePlacement", observed.ref, change, version, by)
        causes = causes_of(Gathered((cause,), 1), ())
    standings = tuple(_standing(each, given.get(member(each))) for each in note.destinations)
    reason = Reason(note.code, f"{note.hold}: {note.text}")
    return Decision(note.change, standings, reason, causes.known, causes.total)


def _observations(
    observed: Observed, given: Mapping[int, Assigned], *, at_once: bool
) -> tuple[Seen | None, list[Decision], float | None]:
    """Return what of a Rollout is recorded after this, what is news, and when to come back.

    News waits for company, but not *at_once*, when something is decided that may follow from it.
    """
    recording, rollout = observed.history, observed.rollout
    if recording is None or rollout is None:
        return None, [], None
    status = rollout.object.get("status") or {}
    if recording.seen is None:
        return seen_in(status), [], None
    before, ago = recording.seen
    standings = dict(by_slot(_standings(given, recording.destination, given)))
    found = observed_since(before, status, standings, rollout.now)
    if found and not at_once and ago < BATCH_SECONDS:
        return before, [], BATCH_SECONDS - ago
    return (before.followed_by(seen_in(status)) if found else before), found, None


def _move(destination: Destination, before: Assigned | None, after: Assigned | None) -> Move:
    return Move(_standing(destination, before), _standing(destination, after))


def _was_created(observed: Observed) -> bool:
    """Tell whether we saw the placement being created."""
    return any(
        each.change == CREATED and each.ref == observed.ref and not each.initial
        for each in observed.causes.known
    )


def ended(gone: observing.Gone, count: int) -> Story | None:
    """Return the end of a placement as a story; None where nobody saw it go."""
    newest = gone.causes.newest
    if newest is None or not newest.uid or newest.kind != "EdgePlacement":
        return None
    causes = causes_of(gone.causes, ())
    decision = Decision("Left", (), DELETED, causes.known, causes.total, everybody=count)
    return Story(Subject(gone.ref.name, newest.uid), (decision,))


def _present(observed: Observed) -> tuple[dict[int, None], dict[int, Assigned]]:
    """Return the members of all slices, and what they are given.

    Slices of a namesake that was deleted are taken over; for this placement they begin now.
    """
    members: dict[int, None] = {}
    given: dict[int, Assigned] = {}
    for piece in observed.slices.values():
        owner = slice_owner(piece["metadata"])
        if owner is not None and owner.uid != observed.owner.uid:
            continue
        members.update(dict.fromkeys(unpacked_members(piece["members"])))
        given.update(assigned_members(piece))
    return members, given


def _succeeds(observed: Observed) -> bool:
    """Tell whether slices hold destinations of a namesake that was deleted."""
    return any(
        piece["members"]
        for piece in observed.slices.values()
        if (owner := slice_owner(piece["metadata"])) is not None
        and owner.uid != observed.owner.uid
        and owner.name == observed.owner.name
    )


def _named_by(
    recording: Recording, wanted: Mapping[int, Destination] | None
) -> Callable[[int], Destination | None]:
    """Return what names the members of slices: those that stay are known by name in any case."""
    staying = wanted or {}
    return lambda each: recording.destination(each) or staying.get(each)


def _standings(
    members: Iterable[int],
    destination: Callable[[int], Destination | None],
    given: Mapping[int, Assigned],
) -> Iterable[Standing]:
    for each in members:
        found = destination(each)
        if found is not None:
            yield _standing(found, given.get(each))


def _standing(destination: Destination, assigned: Assigned | None) -> Standing:
    if assigned is None or assigned.slot >= _MAX_SLOT:
        return Standing(destination)
    return Standing(destination, assigned.slot, assigned.revision or None)


def why_moved(rolled: State | None) -> Reason:
    """Return why destinations get another revision, as their Rollout has it."""
    if rolled is None:
        return _MOVED
    if rolled.failure is not None and rolled.phase == ROLLING_BACK:
        return Reason("Rollback", f"rollback: {rolled.failure.message}")
    if rolled.wave:
        named = f"wave {rolled.wave_name}" if rolled.wave_name else "the last wave"
        return Reason("WaveOpened", named)
    if not rolled.stable:
        return Reason("SlotAssigned", "slots for its Rollout")
    return Reason("RevisionAssigned", f"revision {rolled.stable} is the stable one")


def _rollout_cause(observed: Observed) -> Causes:
    """Return the Rollout as the cause of revisions; without one, what led to the reconcile."""
    if observed.rollout is None:
        return causes_of(observed.causes, ())
    obj = observed.rollout.object
    metadata = obj["metadata"]
    verified = observed.history is None or observed.history.verified
    by = author_of("Rollout", obj, verified=verified)
    version = str(metadata.get("resourceVersion", ""))
    ref = observed.ref._replace(resource=ROLLOUTS.resource, name=metadata["name"])
    return causes_of(Gathered((observing.Cause("Rollout", ref, "", version, by),), 1), ())


def _placement_cause(
    observed: Observed, recording: Recording, *, first: bool
) -> tuple[observing.Cause, ...]:
    """Return the placement itself as the cause of its first slices, if no other is known."""
    if not first:
        return ()
    version, by = recording.resource_version, recording.changed_by
    return (observing.Cause("EdgePlacement", observed.ref, CREATED, version, by),)


def causes_of(gathered: Gathered, otherwise: Sequence[observing.Cause]) -> Causes:
    """Return causes as records tell them; what was there at the start caused nothing."""
    real = [each for each in gathered.known if not each.initial]
    total = gathered.total - (len(gathered.known) - len(real))
    if not real:
        real, total = list(otherwise), len(otherwise)
    return Causes(tuple(dict.fromkeys(map(_cause, real))), total)


def _cause(cause: observing.Cause) -> Cause:
    user, audit_id, manager = changed_by(cause.changed_by)
    return Cause(
        cause.kind,
        cause.ref.name,
        cause.ref.cluster,
        resource_version=cause.resource_version,
        change=cause.change,
        user=user,
        audit_id=audit_id,
        manager=manager,
    )


def changed_by(annotation: str) -> tuple[str, str, str]:
    """Return user, audit ID and manager of ``edge.kcp.io/changed-by``; empty where it says none."""
    try:
        said = orjson.loads(annotation) if annotation else {}
    except orjson.JSONDecodeError:
        return "", "", ""
    if not isinstance(said, dict):
        return "", "", ""
    return str(said.get("user", "")), str(said.get("auditID", "")), str(said.get("manager", ""))
