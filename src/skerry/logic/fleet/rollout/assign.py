"""Which slots get which revision now.

Nobody is assigned the target but members of the open wave, and never more at once than the pace
allows: those in flight, and those that are not well, everywhere and in each group. An edge that is
not well already may be assigned where that is the limit, since it cannot become one more.

Returns are not paced: what is bad is taken back from everybody at once, and during freezes too.

Three streams share the slots, and each has its own limit. The *wave* brings members to the target,
as ``pace`` allows. *Newcomers* are let in at the stable revision as ``joining`` allows, or at the
target where a wave that takes everybody it selects has passed already; then they take a place of
the pace as well. *Stragglers*, left behind by an older rollout because they were silent or frozen,
are brought to the stable revision, and count as joining: they are as unproven as a newcomer.

What the status says is written before the slices. So the state returned here names those in flight
before anybody is, and a process that dies in between has assigned fewer than the status says and
never more; the next one finds them without the target and assigns them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from skerry.logic.fleet.rollout.spec import Pace, Portion
from skerry.logic.fleet.rollout.state import (
    AWAITING,
    MAX_BATCHES,
    PROGRESSING,
    ROLLING_BACK,
    SETTLING,
    SOAKING,
    Batch,
    Situation,
    State,
)
from skerry.logic.fleet.rollout.view import AT_REST, View
from skerry.logic.fleet.rollout.waves import WaveMember, has_passed, opened, ordered

_GATED = (PROGRESSING, SOAKING, AWAITING)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Revisions by slot, for those that change; newcomers let in; and the state that goes along.

    ``newcomers`` are the slots of those let in, with their revision.
    """

    revisions: dict[int, int] = field(default_factory=dict)
    newcomers: dict[int, int] = field(default_factory=dict)
    state: State = field(default_factory=State)
    # Why nobody was assigned though somebody could be; empty otherwise.
    held: str = ""


def in_flight(view: View) -> BitMap:
    """Return those that were given the target and have no verdict, as far as they are heard of."""
    found = view.verdicts
    target = view.given.at(view.state.target)
    return target - found.good - found.bad - found.excused - found.unfit - found.absent


def assign(given: Situation, state: State, newcomers: Sequence[WaveMember] = ()) -> Assignment:
    """Return what changes for slots now that the rollout has come to *state*.

    *newcomers* are destinations that are in no slice, each with the slot it gets if it is let in.
    """
    view = View(given, state)
    if state.phase == SETTLING or not state.stable:
        return Assignment(state=state)
    if given.spec.force and given.spec.force == state.stable:
        everybody = {p.slot: state.stable for p in given.places if p.revision != state.stable}
        admitted = {place.slot: state.stable for place in newcomers}
        return Assignment(everybody, admitted, replace(state, joining=BitMap()))
    changes = _returns(view) if state.phase == ROLLING_BACK else _taken_over(view)
    if state.phase == ROLLING_BACK and changes and state.attempt == given.state.attempt:
        # Somebody is brought back late: what is known of mailboxes is about other slices.
        state = replace(state, attempt=state.attempt + 1)
        view = View(given, state)
    chosen, held, budget = list[int](), "", None
    if state.phase in _GATED and not given.spec.paused:
        budget = _Budget(view)
        chosen, held = _next(view, budget)
        changes |= dict.fromkeys(chosen, state.target)
    state, joins = _joining(view, changes, newcomers, budget)
    # Who is brought to the target by a wave is judged as one of it, newcomer or not.
    state = replace(state, joining=state.joining - BitMap(chosen))
    return Assignment(changes, joins, _tracked(View(given, state), changes), held)


def _returns(view: View) -> dict[int, int]:
    """Return everybody to the stable revision whom the rollout has moved."""
    return dict.fromkeys(view.returning, view.state.stable)


def _taken_over(view: View) -> dict[int, int]:
    """Pin those that have no revision to the stable one: it is what they run."""
    return {place.slot: view.state.stable for place in view.given.places if not place.revision}


# -- the target ------------------------------------------------------------------------------


def _next(view: View, budget: _Budget) -> tuple[list[int], str]:
    """Return the members of the wave that are assigned now, or why none is.

    Those that have neither the stable revision nor none go first: they run what a superseded
    rollout gave them, which nobody wants. A reason is given only where nothing moves at all; while
    somebody is in flight the limit is no news.
    """
    given, state = view.given, view.state
    candidates = [
        place
        for place in given.places
        if place.slot in state.members and place.revision != state.target
    ]
    if not candidates:
        return [], ""
    absent = view.verdicts.absent
    if given.spec.offline_policy != "Assign":
        candidates = [place for place in candidates if place.slot not in absent]
    thawed = [place for place in candidates if place.slot not in given.frozen]
    if not thawed:
        return [], "a freeze holds every destination that is next" if candidates else ""
    wave = given.spec.wave(state.wave)
    order = ordered(state.digest, thawed, wave.spread_by)
    order.sort(key=lambda place: place.revision in (state.stable, 0))
    chosen = [place.slot for place in order if budget.take(place)]
    return chosen, "" if chosen or in_flight(view) else budget.reason


class _Budget:
    """How many may still be in flight and unwell, everywhere and in each group.

    Who is in flight counts as unwell too, whatever it reports: it is about to restart what it runs.
    A silent edge that is assigned all the same (``offline.policy: Assign``) takes no room, since
    nothing happens there until it is heard of; then it is in flight like any other.
    """

    def __init__(self, view: View) -> None:
        pace = view.given.spec.pace
        self._pace = pace
        self._flying = in_flight(view)
        self._unwell = view.verdicts.unavailable & view.given.slots
        self._absent = view.verdicts.absent
        self._groups: dict[tuple[str, ...], _Room] = {}
        self.reason = ""
        for place in view.given.places:
            for group in groups_of(pace, place):
                self._groups.setdefault(group, _Room()).count(
                    place.slot in self._flying,
                    place.slot in self._flying or place.slot in self._unwell,
                )

    def take(self, place: WaveMember) -> bool:
        """Tell whether one more may be assigned, and count it."""
        groups = list(groups_of(self._pace, place))
        silent, unwell = place.slot in self._absent, place.slot in self._unwell
        for group in groups:
            room = self._groups.setdefault(group, _Room())
            if not silent and room.flying >= self._pace.concurrency.of(room.total):
                self.reason = f"{room.flying} are in flight{_shown(group)}"
                return False
            limit = self._pace.max_unavailable.of(room.total)
            if not unwell and room.unwell >= limit:
                self.reason = f"{room.unwell} are not well{_shown(group)}; {limit} may be"
                return False
        for group in groups:
            self._groups[group].take(flies=not silent, falls=not silent and not unwell)
        return True


@dataclass(slots=True)
class _Room:
    """Counts of one group."""

    total: int = 0
    flying: int = 0
    unwell: int = 0

    def count(self, flies: bool, is_unwell: bool) -> None:
        self.total += 1
        self.flying += flies
        self.unwell += is_unwell

    def take(self, *, flies: bool, falls: bool) -> None:
        self.flying += flies
        self.unwell += falls


def groups_of(pace: Pace, place: WaveMember) -> Iterator[tuple[str, ...]]:
    """Yield the groups in which a destination counts: all, and one for each label of the pace."""
    yield ()
    for key in pace.per:
        yield (key, place.labels.get(key, ""))


def _shown(group: tuple[str, ...]) -> str:
    return f" where {group[0]} is {group[1] or 'absent'}" if group else ""


# -- newcomers, and those that come back -----------------------------------------------------


def _joining(
    view: View, changes: dict[int, int], newcomers: Sequence[WaveMember], budget: _Budget | None
) -> tuple[State, dict[int, int]]:
    """Bring up who is behind, let newcomers in, and return the state with who is on the way.

    When more of those on the way are unfit than ``judge.failures`` allows, nobody more comes in.
    Nothing is taken back: a newcomer that fails may be what is wrong, and the others run well.
    """
    given, state, found = view.given, view.state, view.verdicts
    current = given.at(state.stable) | given.at(state.target)
    waiting = (state.joining & current) - found.joined - found.good - found.absent
    unproven = state.unproven and not _is_proven(view)
    if unproven and state.phase == ROLLING_BACK:
        # Having been there before says nothing: they were moved on before they were judged.
        waiting |= view.returning
    room = _room(given.spec.join_pace, given, newcomers) - len(waiting - found.unfit)
    if given.spec.judge.failures.exceeded(len(waiting & found.unfit), len(given.places)):
        room = 0
    behind = [slot for slot in _behind(view, changes) if slot not in given.frozen]
    brought = behind[: max(min(room, _spare(view)), 0)]
    changes |= dict.fromkeys(brought, state.stable)
    room -= len(brought)
    admitted: dict[int, int] = {}
    first = newcomers if not unproven else _first_of(view, waiting, newcomers)
    for place in newcomers:
        if len(admitted) >= room:
            break
        passed = budget is not None and has_passed(given.spec, state.wave, place)
        ready = passed and budget is not None and budget.take(place)
        if ready or place in first:
            admitted[place.slot] = state.target if ready else state.stable
    joining = waiting | BitMap(brought) | BitMap(admitted)
    return replace(state, joining=joining, unproven=unproven), admitted


def _is_proven(view: View) -> bool:
    """Tell whether enough newcomers are well at a first revision that nobody had run before."""
    found, there = view.verdicts, view.given.at(view.state.stable)
    shown = (found.joined | found.good) & (there - found.unavailable - found.absent)
    return len(shown) >= view.given.spec.judge.evidence


def _first_of(view: View, waiting: BitMap, newcomers: Sequence[WaveMember]) -> Sequence[WaveMember]:
    """Return the newcomers that may have a stable revision that nobody has proven.

    They come in the order of the waves: the next when those of the wave before are well there.
    Whoever is at another revision, or unwell at this one, has shown nothing. One that is unfit
    delays nobody by itself: too many of them stop everybody.
    """
    given, state, found = view.given, view.state, view.verdicts
    if not given.spec.waves:
        return newcomers
    away = given.slots - given.at(state.stable)
    waiting = (waiting | away | (found.unavailable & given.slots)) - found.unfit - found.absent
    before = given.slots - waiting
    everybody = [*given.places, *newcomers]
    unjudged = waiting | BitMap(place.slot for place in newcomers)
    for number in range(1, given.spec.last + 1):
        wave = given.spec.wave(number)
        held = opened(wave, state.digest, everybody, before, found.absent, BitMap())
        if held & unjudged:
            return [place for place in newcomers if place.slot in held]
        before = held
    return newcomers


def _behind(view: View, changes: Iterable[int]) -> Iterator[int]:
    """Yield those that an older rollout left behind and that are heard of again."""
    state, decided = view.state, set(changes)
    usual = {state.stable, 0} if state.phase in AT_REST else {state.stable, state.target, 0}
    for place in view.given.places:
        if place.revision in usual or place.slot in decided or place.slot in view.verdicts.absent:
            continue
        # A newer one that was superseded goes when its turn comes.
        if state.phase in AT_REST or place.revision < state.stable:
            yield place.slot


def _room(portion: Portion, given: Situation, newcomers: Sequence[WaveMember]) -> int:
    return portion.of(len(given.places) + len(newcomers))


def _limit(view: View) -> int:
    return view.given.spec.pace.concurrency.of(len(view.given.places))


def _spare(view: View) -> int:
    return _limit(view) - len(view.state.joining & view.given.at(view.state.stable))


# -- what is remembered ----------------------------------------------------------------------


def _tracked(view: View, changes: dict[int, int]) -> State:
    """Return the state with the times from which deadlines count, and who was unwell before.

    Slots assigned together share a batch, so that ten thousand take a few bitmaps. Beyond
    ``MAX_BATCHES`` the two oldest become one with the later time: a deadline may come late by that,
    and never early. Who is unwell when it is assigned is excused later on.
    """
    state, given, found = view.state, view.given, view.verdicts
    fresh = BitMap(slot for slot, revision in changes.items() if revision == state.target)
    if state.phase in AT_REST or state.phase == ROLLING_BACK:
        fresh = BitMap()
    flying = in_flight(view) if state.phase not in AT_REST else BitMap()
    flying |= state.joining
    kept = [Batch(each.since, each.slots & (flying - fresh)) for each in state.in_flight]
    kept = [each for each in kept if each.slots]
    # Those that were silent and are heard of again have their whole time before them.
    fresh |= flying.difference(*(each.slots for each in kept)) if kept else flying
    if fresh:
        kept.append(Batch(given.now, fresh))
    while len(kept) > MAX_BATCHES:
        first, second, *rest = kept
        kept = [Batch(second.since, first.slots | second.slots), *rest]
    assigned = BitMap(slot for slot in changes)
    unwell = (state.unwell_before - assigned) | (fresh & found.unavailable & assigned)
    return replace(state, in_flight=tuple(kept), unwell_before=unwell & given.slots)
