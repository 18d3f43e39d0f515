"""The scheduler's part of a rollout: which destination gets which revision now.

The scheduler is the sole writer of slices and of a Rollout's status, but for ``status.verdicts``,
which are the summarizer's: it applies its fields server-side, so neither ever writes the other's.

The order of writes is the promise: what became of a revision, then the Rollout's status, then
slices. A process that dies in between has assigned nobody that the status does not know of.

The parts, in the order in which ``roll`` asks them:

* ``_units``: the edges of the placement. An edge that several Locations lead to moves as one: two
  entries of a slice for one mailbox must not name two revisions.
* ``_situation``: everything the state machine may look at, as values. Nothing of it is read again
  later, so a decision is about one moment.
* ``advance`` and ``assign`` (``logic.fleet.rollout``): which phase, and which slot gets what.
* ``_staying``: destinations that nobody wants any more and that leave at the pace of the rollout.

A slot is a number that a destination keeps for as long as it is in the slices. Bitmaps of slots are
what waves, verdicts and evidence are made of; a number is given once, so that what was said of one
destination is never taken for what is said of the next. Destinations that were there before the
Rollout have none: they get theirs in one pass and revisions in the next, hence the zero seconds
until it is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from pyroaring import BitMap

from skerry.api.edge import (
    ABORT,
    ACCEPT,
    API_VERSION,
    PLACEMENT_REVISIONS,
    PROMOTE,
    ROLLOUT_APPROVALS,
    ROLLOUTS,
    UNDO,
    SliceOwner,
)
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.observed import Observed, ObservedRollout
from skerry.controllers.edge_scheduler.rollout_finalizer import (
    kept,
    released,
    without_finalizer,
)
from skerry.controllers.edge_scheduler.staged_removal import finalized, is_taken_away
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.records import Destination, is_being_deleted
from skerry.logic.fleet.placement.slices import Assigned, member, unpacked_members
from skerry.logic.fleet.placement.slots import Slots, slots_in
from skerry.logic.fleet.rollout.advance import advance
from skerry.logic.fleet.rollout.assign import Assignment, assign
from skerry.logic.fleet.rollout.clocks import seconds_until_due
from skerry.logic.fleet.rollout.conditions import NO_PLACEMENT, conditions, counts, invalid
from skerry.logic.fleet.rollout.departing import depart
from skerry.logic.fleet.rollout.state import (
    AWAITING,
    COMPLETED,
    ROLLED_BACK,
    ROLLING_BACK,
    SOAKING,
    Situation,
    State,
    Wishes,
    approval_name,
    moment,
    number_in,
    pair_in,
    state_of,
    verdicts_of,
    written,
)
from skerry.logic.fleet.rollout.waves import WaveMember
from skerry.logic.machinery.conditions import set_conditions
from skerry.logic.machinery.plan import Action, Announcement, Apply, Create, Patch, Target

_NO_LABELS: Mapping[str, str] = MappingProxyType({})


class Rolled(NamedTuple):
    """What a rollout makes of a decision: destinations let in, what they are given, and writes."""

    observed: Observed
    assigned: Mapping[int, Assigned] | None = None
    before: tuple[Action, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    requeue_after_seconds: float | None = None
    state: State | None = None


class _Unit(NamedTuple):
    """An edge, and the destinations of the placement that lead to it: usually one.

    ``fresh`` are slots for those of them that have none.
    """

    place: WaveMember
    destinations: tuple[Destination, ...]
    fresh: tuple[int, ...]
    is_new: bool


def roll(observed: Observed) -> Rolled:
    """Decide which destinations are let in and which revision each gets."""
    found = observed.rollout
    if found is None:
        return Rolled(observed, before=tuple(finalized(observed)))
    slots = slots_in(observed.slices.values())
    units = list(_units(observed, found, slots))
    if is_taken_away(observed):
        units = [unit for unit in units if not unit.is_new]
    if found.spec.errors:
        text = "; ".join(str(each) for each in found.spec.errors)
        actions = _status_apply(
            observed.ref, found.object, invalid("InvalidSpec", text), {}, found.now
        )
        return _unmoved(observed, units, slots.assigned, tuple(actions))
    given = _situation(found, units)
    if found.spec.force and found.spec.force not in found.revisions:
        decision = Assignment(state=given.state)
    else:
        newcomers = [unit.place for unit in units if unit.is_new]
        decision = assign(given, advance(given), newcomers)
    admitted, assigned = _given(units, slots.assigned, decision)
    staying = _staying(observed, found, given, decision.state, slots.assigned)
    decision = replace(decision, state=replace(decision.state, departing=staying.departing))
    admitted += staying.destinations
    before = tuple(_writes(observed, found, given, decision))
    return Rolled(
        replace(observed, destinations=tuple(sorted(admitted))),
        {**assigned, **staying.assigned},
        before,
        tuple(_news(found, given.state, decision.state)),
        0.0 if _are_unnumbered(units) else _again(found, decision.state),
        decision.state,
    )


def _are_unnumbered(units: Sequence[_Unit]) -> bool:
    """Tell whether some were there before the Rollout: they get slots now, and revisions next."""
    return any(not unit.is_new and not unit.place.slot for unit in units)


def _units(observed: Observed, found: ObservedRollout, slots: Slots) -> Iterator[_Unit]:
    """Yield the edges of a placement; where several Locations lead to one, it moves as one.

    Newcomers come with the slot they get if they are let in.
    """
    given_to, following = slots
    there: set[int] = set()
    for piece in observed.slices.values():
        there.update(unpacked_members(piece["members"]))
    by_edge: dict[str, list[Destination]] = {}
    for each in sorted(observed.destinations):
        by_edge.setdefault(each.uid, []).append(each)
    for uid, destinations in by_edge.items():
        keys = [member(each) for each in destinations]
        if len(keys) == 1 and (only := given_to.get(keys[0])) is not None:
            [first] = destinations
            place = WaveMember(only.slot, uid, found.labels.get(first, _NO_LABELS), only.revision)
            yield _Unit(place, (first,), (), False)
            continue
        pairs = list(zip(keys, destinations, strict=True))
        held = [(given_to[key], each) for key, each in pairs if key in given_to]
        known = [each for key, each in pairs if key in there]
        given, first = min(held) if held else (Assigned(0), (known or destinations)[0])
        labels = found.labels.get(first, _NO_LABELS)
        numbers = tuple(range(following, following := following + len(destinations) - len(held)))
        slot = given.slot if known else numbers[0]
        yield _Unit(
            WaveMember(slot, uid, labels, given.revision), tuple(destinations), numbers, not known
        )


def _situation(found: ObservedRollout, units: Sequence[_Unit]) -> Situation:
    """Return what the state machine decides from; an approval counts by digest and wave.

    Newcomers are left out: they are let in by ``assign``, and have no say about the target. How
    long it has been quiet is known of the present quiet only; any other began just now.
    """
    status = found.object.get("status") or {}
    state = state_of(status)
    places = [unit.place for unit in units if not unit.is_new and unit.place.slot]
    frozen = BitMap(
        unit.place.slot
        for unit in units
        if unit.place.slot and unit.destinations[0] in found.frozen
    )
    approved = frozenset(
        f"{spec.get('digest')}/{spec.get('wave')}"
        for each in found.approvals.values()
        if (each.get("status") or {}).get("approved") is True and (spec := each.get("spec") or {})
    )
    known = state.quiet.since
    return Situation(
        found.spec,
        state,
        verdicts_of(status, state.attempt),
        places,
        found.revisions,
        found.live,
        moment(found.now),
        lambda quiet: found.quiet_seconds if quiet.since == known else 0.0,
        wishes_of(found.object),
        approved,
        found.gate,
        frozen,
    )


def wishes_of(rollout: Object) -> Wishes:
    """Read what people ask for by annotations; what is malformed asks for nothing."""
    notes = rollout["metadata"].get("annotations") or {}
    return Wishes(
        notes.get(PROMOTE, ""),
        number_in(notes.get(ABORT, "")),
        pair_in(notes.get(ACCEPT, "")),
        pair_in(notes.get(UNDO, "")),
    )


def _given(
    units: Sequence[_Unit], slots: Mapping[int, Assigned], decision: Assignment
) -> tuple[list[Destination], dict[int, Assigned]]:
    """Return who is let in, and what everybody is given."""
    admitted: list[Destination] = []
    assigned: dict[int, Assigned] = {}
    for unit in units:
        revision = decision.revisions.get(unit.place.slot, unit.place.revision)
        if unit.is_new:
            if unit.place.slot not in decision.newcomers:
                continue
            revision = decision.newcomers[unit.place.slot]
        fresh = iter(unit.fresh)
        for each in unit.destinations:
            key = member(each)
            held = slots.get(key)
            admitted.append(each)
            if held is None or held.revision != revision:
                held = Assigned(held.slot if held is not None else next(fresh), revision)
            assigned[key] = held
    return admitted, assigned


class _Staying(NamedTuple):
    """Destinations that nobody wants and that stay for now; and all that are on the way out."""

    destinations: tuple[Destination, ...] = ()
    assigned: Mapping[int, Assigned] = {}
    departing: BitMap = BitMap()


def _staying(
    observed: Observed,
    found: ObservedRollout,
    given: Situation,
    state: State,
    slots: Mapping[int, Assigned],
) -> _Staying:
    """Return who leaves later, because enough are leaving already; it is given what it had.

    Of whom nothing but a number is known goes at once: the slice could not name it.
    """
    wanted = {member(each) for each in observed.destinations}
    unwanted = {each.slot: key for key, each in slots.items() if key not in wanted}
    if not unwanted and not given.state.departing:
        return _Staying()
    known = {
        slot: destination
        for slot, key in unwanted.items()
        if observed.history is not None
        and (destination := observed.history.destination(key)) is not None
    }
    stays, departing = depart(
        found.spec.leave_pace,
        given.state.departing,
        BitMap(each.slot for each in slots.values()),
        BitMap(unwanted),
        BitMap(
            slot
            for slot in unwanted
            if slot not in known or found.goes(known[slot], observed.refused)
        ),
        given.verdicts.left,
    )
    back = state.stable if state.phase == ROLLING_BACK else 0
    return _Staying(
        tuple(known[slot] for slot in stays),
        {unwanted[slot]: Assigned(slot, back or slots[unwanted[slot]].revision) for slot in stays},
        departing,
    )


def _unmoved(
    observed: Observed,
    units: Sequence[_Unit],
    slots: Mapping[int, Assigned],
    before: tuple[Action, ...],
) -> Rolled:
    """Leave everybody where they are, and let nobody in: what is asked for makes no sense."""
    admitted, assigned = _given(units, slots, Assignment())
    return Rolled(replace(observed, destinations=tuple(sorted(admitted))), assigned, before)


def _again(found: ObservedRollout, state: State) -> float | None:
    """Return after how many seconds there is more to do without any event.

    That is when a freeze ends or a soak is over. Whoever starts observes all, and computes it anew.
    """
    thaws = (until - found.now for until in found.frozen.values())
    thaw = min((max(each.total_seconds(), 0.01) for each in thaws), default=None)
    soaked = _soaked_again(found, state)
    return thaw if soaked is None or (thaw is not None and thaw < soaked) else soaked


def _soaked_again(found: ObservedRollout, state: State) -> float | None:
    """Return when a wave will have soaked, or more of it is proven, if it goes on being quiet."""
    if state.phase != SOAKING or not state.quiet.since:
        return None
    known = state_of(found.object.get("status") or {}).quiet.since == state.quiet.since
    passed = found.quiet_seconds if known else 0.0
    return seconds_until_due(found.spec.wave(state.wave).soak, passed, state.quiet.proven)


def orphan_writes(ref: ObjectRef, obj: Object, now: datetime) -> Iterator[Action]:
    """Yield what is to be written of a Rollout whose placement is not there."""
    if is_being_deleted(obj):
        yield from without_finalizer(ref, obj)
        return
    text = f"there is no EdgePlacement {ref.name}"
    yield from _status_apply(ref, obj, invalid(NO_PLACEMENT, text), {}, now)


# -- what is written ---------------------------------------------------------------------------


def _writes(
    observed: Observed, found: ObservedRollout, given: Situation, decision: Assignment
) -> Iterator[Action]:
    """Yield what precedes slices, in the order that the module promises; only what changes."""
    ref, obj, state = observed.ref, found.object, decision.state
    yield from _judged(ref, found, state)
    if state.phase == AWAITING:
        yield from _asked_for(observed, found, state)
    numbers = counts(given, decision)
    fields = {
        **written(state),
        "counts": numbers,
        "progress": f"{numbers['target']}/{numbers['destinations']}",
    }
    yield from kept(ref, obj)
    yield from _status_apply(ref, obj, conditions(given, decision), fields, found.now)
    yield from released(ref, found, state)
    yield from finalized(observed, state)


def _judged(ref: ObjectRef, found: ObservedRollout, state: State) -> Iterator[Action]:
    """Yield what a revision is to say became of it."""
    wanted: dict[int, str] = {}
    if state.failure is not None and state.phase in (ROLLING_BACK, ROLLED_BACK):
        wanted[state.failure.revision] = "Bad"
    if state.phase == COMPLETED:
        wanted[state.stable] = "Good"
    for number, verdict in wanted.items():
        known = found.revisions.get(number)
        if known is not None and known.verdict != verdict:
            target = Target(PLACEMENT_REVISIONS, found.names[number], cluster=ref.cluster)
            patch = {"status": {"verdict": verdict}}
            yield Patch(target, patch, f"Revision{verdict}", subresource="status",
                        retry_on_conflict=True, absent_is_fine=True)  # fmt: skip


def _asked_for(observed: Observed, found: ObservedRollout, state: State) -> Iterator[Action]:
    """Yield the request for a person's approval, once for each content of the revision.

    An approval names the digest: one that was given for something else does not count.
    """
    name = approval_name(observed.ref.name, state.target, state.wave_name)
    known = found.approvals.get(name)
    if known is not None and (known.get("spec") or {}).get("digest") == state.digest:
        return
    uid = str(found.object["metadata"].get("uid", ""))
    asked = f"may revision {state.target} go on after wave {state.wave_name}?"
    yield Create(
        Target(ROLLOUT_APPROVALS, name, cluster=observed.ref.cluster),
        {
            "apiVersion": API_VERSION,
            "kind": "RolloutApproval",
            "metadata": {
                "name": name,
                "ownerReferences": [
                    {**SliceOwner(observed.ref.name, uid).reference(), "kind": "Rollout"}
                ],
            },
            "spec": {
                "rollout": observed.ref.name,
                "revision": state.target,
                "digest": state.digest,
                "wave": state.wave_name,
                "asked": asked,
            },
        },
        reason="ApprovalNeeded",
    )


def _status_apply(
    ref: ObjectRef,
    obj: Object,
    applied: Sequence[Object],
    fields: Mapping[str, Any],
    now: datetime,
) -> Iterator[Action]:
    """Yield the application of our part of the status, unless it says the same already."""
    old = obj.get("status") or {}
    ours = {each["type"] for each in applied}
    before = [each for each in old.get("conditions") or () if each["type"] in ours]
    dated = set_conditions(before, applied, rfc3339(now))
    wanted = {
        **_present(fields),
        "observedGeneration": int(obj["metadata"].get("generation") or 0),
        "conditions": sorted(dated, key=lambda each: str(each["type"])),
    }
    present = {key: value for key, value in old.items() if key != "verdicts"}
    present["conditions"] = sorted(before, key=lambda each: str(each["type"]))
    if wanted == present:
        return
    body = {
        "apiVersion": API_VERSION,
        "kind": "Rollout",
        "metadata": {"name": ref.name, "uid": obj["metadata"].get("uid", "")},
        "status": wanted,
    }
    target = Target(ROLLOUTS, ref.name, cluster=ref.cluster)
    yield Apply(target, body, "RolloutMoved", subresource="status")


def _present(fields: Any) -> Any:
    """Return fields without those that are null: applying leaves them out."""
    if isinstance(fields, Mapping):
        return {key: _present(value) for key, value in fields.items() if value is not None}
    if isinstance(fields, list):
        return [_present(each) for each in fields]
    return fields


def _news(found: ObservedRollout, old: State, new: State) -> Iterator[Announcement]:
    """Yield an Event for each turn of a rollout."""
    if new.failure is not None and new.failure != old.failure:
        yield Announcement(found.object, "Warning", new.failure.reason, new.failure.message)
    begun = 1 if new.attempt != old.attempt else old.wave + 1
    for number in range(begun, new.wave):
        wave = found.spec.wave(number)
        if wishes_of(found.object).promote != f"{new.target}/{wave.name}":
            text = f"revision {new.target}: wave {wave.name} selects nobody and is passed"
            yield Announcement(found.object, "Normal", "WaveEmpty", text)
    if new.phase != old.phase or new.wave != old.wave:
        where = f" {new.wave_name}" if new.wave_name else ""
        text = f"revision {new.target}: {new.phase}{where}"
        yield Announcement(found.object, "Normal", f"Rollout{new.phase}", text)
