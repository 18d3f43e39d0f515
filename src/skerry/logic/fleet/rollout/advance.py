"""The phases of a Rollout and what leads from one to the next: a state machine, as a table.

``TABLE``, at the end of this file, is the whole of it and is meant to be read first. When more
destinations fail than ``judge.failures`` allows, ``onFailure`` says what becomes of the rollout:
everything returns to the last good revision, it pauses, or it goes on.

Each row has the phases that it applies to, a condition, and the next state. The first row whose
condition holds is taken, and the table is read again from the top until no row applies. Rows never
say which destination runs which revision: that is ``assign``, which follows from the state alone.

The order of the rows is the policy. What a person forces goes before everything, then what makes
the attempt pointless (a newer revision, an abort), then what speaks against it (too many are bad),
and only then what lets it go on. So a wave that is full and good in the same moment in which it
has one bad destination too many fails, and a promotion cannot overtake an abort.

The usual way is Completed, then for each wave Progressing until every member has a verdict,
Soaking while nothing gets worse, perhaps Awaiting a person, and Completed with the target as the
new stable revision. The way back is Rolling back until every mailbox that can be seen has the
stable revision again, and Rolled back; a revert by hand takes it too, unpaced, for it goes to what
is known to run. Paused ends when what is bad was accepted or is well again, by an abort, or by a
newer revision.

Each turn (``_entered``) begins another attempt, and verdicts name the attempt they are about. The
summarizer writes them later and elsewhere: without the number, what it said of the attempt before
would be taken for evidence about this one. Of whom nothing is said yet is waiting, not good.

Rows are pure and lead on: reading the table twice from one situation gives the same state, and a
process that dies anywhere begins from what the status has. Whoever adds a row asks what undoes it;
two rows that undo each other are a circle, which ``advance`` reports as a bug and does not follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from pyroaring import BitMap

from skerry.api.kcp.rollouts import Phase
from skerry.kit.invariant import invariant
from skerry.logic.fleet.rollout.clocks import provable
from skerry.logic.fleet.rollout.state import (
    AWAITING,
    COMPLETED,
    MAX_NAMED,
    NOT_QUIET,
    PAUSED,
    PROGRESSING,
    ROLLED_BACK,
    ROLLING_BACK,
    SETTLING,
    SOAKING,
    Failure,
    Quiet,
    Situation,
    State,
)
from skerry.logic.fleet.rollout.view import AT_REST, UNDER_WAY, View
from skerry.logic.fleet.rollout.waves import opened

# Every row leads on; a wave is passed once. More rows than this in one step are a circle.
_MAX_STEPS = 200


class Row(NamedTuple):
    """One row of the table."""

    phases: tuple[Phase, ...]
    name: str
    holds: Callable[[View], bool]
    then: Callable[[View], State]


def advance(given: Situation) -> State:
    """Return the state that *given* leads to now."""
    view = View(given, given.state)
    for _ in range(_MAX_STEPS):
        row = next(
            (row for row in TABLE if view.state.phase in row.phases and row.holds(view)), None
        )
        if row is None:
            return view.state
        view = View(given, row.then(view))
    invariant(False, f"a rollout that goes round in circles, at {view.state.phase}")
    return view.state


# -- beginning -------------------------------------------------------------------------------


def _first(view: View) -> bool:
    return not view.state.stable and view.given.live > 0


def _adopt(view: View) -> State:
    """Take the first revision for what runs everywhere: it is what does, or will by joining."""
    number = view.given.live
    digest = view.given.revisions[number].digest if number in view.given.revisions else ""
    new = not view.given.places
    return _entered(
        view.state, COMPLETED, target=number, digest=digest, stable=number, unproven=new
    )


def _forced(view: View) -> bool:
    """Tell whether a person names a revision that is not at rest everywhere yet."""
    wanted = view.given.spec.force
    state = view.state
    return wanted in view.given.revisions and not (
        state.phase in AT_REST and state.target == wanted and state.stable == wanted
    )


def _force(view: View) -> State:
    """Take the forced revision for stable at once: there are no waves, and nobody is judged."""
    number = view.given.spec.force
    phase: Phase = COMPLETED if number == view.given.live else ROLLED_BACK
    digest = view.given.revisions[number].digest
    there = {"target": number, "digest": digest, "stable": number, "unproven": False}
    return _entered(view.state, phase, **there)


def _may_start(view: View) -> bool:
    """Tell whether there is another revision to go to, which is not known to be bad.

    What was given up in this very step is, though its verdict is yet to be written: with nobody to
    bring back, a return is over where it begins, and would begin again.
    """
    wanted, failure = view.given.revisions.get(view.destination), view.state.failure
    if wanted is None or view.given.spec.force:
        return False
    given_up = 0 if failure is None or failure == view.given.state.failure else failure.revision
    if given_up == wanted.number:
        return False
    return wanted.verdict != "Bad" or (wanted.number == view.undone and not _undo_failed(view))


def _undo_failed(view: View) -> bool:
    """Tell whether what a person goes back to was brought out for that wish, and was bad.

    A wish is met once. The annotation stays, and without this the bad revision would come to its
    canary again and again; who means it sets another, or has the revision tried again.
    """
    failure = view.state.failure
    return failure is not None and (failure.revision, failure.undo) == (
        view.undone,
        view.given.wishes.undo,
    )


def _undo(view: View) -> tuple[int, int]:
    """Return the wish that the target is brought out for; zeros where it is for none."""
    return view.given.wishes.undo if view.undone == view.state.target else (0, 0)


def _news(view: View) -> bool:
    """Tell whether something else than what runs is wanted.

    After a return the bad revision is still the live one: it is not wanted again until somebody
    cuts another or asks for it by hand (``_may_start``).
    """
    wanted = view.destination
    if view.state.phase == COMPLETED and wanted == view.state.stable:
        return False
    if view.state.phase == ROLLED_BACK and wanted == view.state.stable:
        # Back at what runs: there is nothing to bring anywhere.
        return _may_start(view) and view.state.target != wanted
    return _may_start(view)


def _start(view: View) -> State:
    number = view.destination
    state = view.state
    digest = view.given.revisions[number].digest
    if number == state.stable:
        # A revert: everybody goes straight back, unpaced.
        return _entered(state, ROLLING_BACK, target=number, digest=digest, failure=None)
    started = _entered(state, PROGRESSING, target=number, digest=digest, failure=None)
    return _opened(view, started, 1, BitMap())


def _superseded(view: View) -> bool:
    """Tell whether a newer revision ends this attempt; a queue lets one under way finish first.

    What is paused or on its way back has nothing to finish, so there even a queue gives way.
    """
    if view.destination == view.state.target or not _may_start(view):
        return False
    queued = view.given.spec.supersede == "Queue"
    return not queued or view.state.phase in (PAUSED, ROLLING_BACK)


# -- waves -----------------------------------------------------------------------------------


def _opened(view: View, state: State, number: int, before: BitMap) -> State:
    given = view.given
    wave = given.spec.wave(number)
    already = BitMap(
        place.slot for place in given.places if place.revision not in (state.stable, 0)
    )
    found = opened(wave, state.digest, given.places, before, view.verdicts.absent, already)
    return replace(
        state,
        phase=PROGRESSING,
        wave=number,
        wave_name=wave.name,
        opened=given.now,
        quiet=NOT_QUIET,
        members=found,
        bad_seen=0,
    )


def _is_last(view: View) -> bool:
    return view.state.wave >= view.given.spec.last


def _passed(view: View) -> State:
    """Open the next wave, or end.

    Only here a target becomes stable: from then on a return leads to it, and to nothing before.
    """
    state = view.state
    if _is_last(view):
        return replace(
            state,
            phase=COMPLETED,
            stable=state.target,
            unproven=False,
            wave=0,
            wave_name="",
            opened="",
            quiet=NOT_QUIET,
            members=BitMap(),
            bad_seen=0,
            failure=None,
        )
    return _opened(view, state, state.wave + 1, view.members)


def _adds_nobody(view: View) -> bool:
    """Tell whether a wave holds nobody at all: it has nothing to show, and nobody waits for it."""
    return not view.members


def _full(view: View) -> bool:
    """Tell whether everybody has a verdict and enough of them are good.

    Both are asked: without the first, ten quick edges would speak for a thousand; without the
    second, a wave of silent edges would pass by having nobody to wait for.
    """
    return not view.waiting and len(view.good) >= _evidence(view)


def _evidence(view: View) -> int:
    """Return how many must be Good; of a last wave all that there can be suffice."""
    wanted = view.given.spec.judge.evidence
    return min(wanted, len(view.reachable)) if _is_last(view) else wanted


def _soak(view: View) -> State:
    """Begin to be quiet, or begin anew: time counts from here, and only while the gate holds."""
    return replace(
        view.state,
        phase=SOAKING,
        quiet=Quiet(view.given.now if view.given.gate.holds else ""),
        bad_seen=len(view.bad),
    )


def _disturbed(view: View) -> bool:
    """Tell whether more are bad than when it began, or the gate opened or closed since."""
    state = view.state
    more = len(view.bad) > state.bad_seen
    return more or bool(state.quiet.since) != view.given.gate.holds


def _disproved(view: View) -> bool:
    """Tell whether those who spoke for the target do so no more; who left has spoken."""
    return bool(view.members) and len(view.good) < _evidence(view)


def _soaked(view: View) -> bool:
    quiet = view.state.quiet
    soak = view.given.spec.wave(view.state.wave).soak
    return bool(quiet.since) and (not soak or view.given.elapsed(quiet) >= soak)


def _proven(view: View) -> Quiet:
    """Return how much of a soak is to be noted: who starts anew counts on from there."""
    quiet, soak = view.state.quiet, view.given.spec.wave(view.state.wave).soak
    return quiet._replace(proven=provable(soak, view.given.elapsed(quiet), quiet.proven))


def _asks(view: View) -> bool:
    return view.given.spec.wave(view.state.wave).approval


def _promoted(view: View) -> bool:
    state = view.state
    named = f"{state.target}/{state.wave_name}" if state.wave_name else f"{state.target}/"
    return view.given.wishes.promote == named


def _approved(view: View) -> bool:
    return f"{view.state.digest}/{view.state.wave_name}" in view.given.approved


# -- failure ---------------------------------------------------------------------------------


def _aborted(view: View) -> bool:
    return view.given.wishes.abort == view.state.target


def _exceeded(view: View) -> bool:
    """Tell whether more are Bad than may be, and than somebody agreed to."""
    bad = len(view.bad)
    revision, accepted = view.given.wishes.accept
    if revision == view.state.target and bad <= accepted:
        return False
    return view.given.spec.judge.failures.exceeded(bad, len(view.members))


def _fails(view: View) -> bool:
    """Tell whether there are too many bad ones to go on, and that was not said before.

    Who continues in spite of failures, or is paused already, says it once for each revision.
    """
    failure = view.state.failure
    known = failure is not None and failure.revision == view.state.target
    keeps = view.given.spec.on_failure == "Continue" or view.state.phase == PAUSED
    return _exceeded(view) and not (known and keeps)


def _failed(view: View) -> State:
    """Note who is bad and do what the policy says.

    A revision with an object that must not be rolled back pauses where others return: the harm of
    going back is not known here, and a person's to weigh.
    """
    state, bad = view.state, view.bad
    named = [each for each in view.verdicts.failures if each.get("slot", 0) in bad]
    reason = str(named[0].get("reason") or "Bad") if named else "Bad"
    text = "; ".join(
        f"{each.get('location') or each.get('slot')}: {each.get('message') or each.get('reason')}"
        for each in named[:3]
    )
    message = f"{len(bad)} of {len(view.members | bad)} destinations are bad"
    said = f"{message}: {text}" if text else message
    failure = Failure(state.target, reason, said, tuple(bad)[:MAX_NAMED], _undo(view))
    policy = view.given.spec.on_failure
    if policy == "Continue":
        return replace(state, failure=failure)
    if policy == "Pause" or view.target.one_way:
        if policy != "Pause":
            why = "it holds an object that must not be rolled back"
            failure = replace(failure, message=f"{failure.message}; {why}")
        return replace(state, phase=PAUSED, failure=failure)
    return _entered(state, ROLLING_BACK, failure=failure)


def _abort(view: View) -> State:
    failure = Failure(view.state.target, "Aborted", "somebody aborted the rollout")
    return _entered(view.state, ROLLING_BACK, failure=failure)


def _found_bad(view: View) -> bool:
    """Tell whether the target is known to be bad, and nobody asks for it all the same.

    Its verdict is written before the return begins: who died in between may find that the edge it
    was for has left, and nobody is bad any more.
    """
    return view.target.verdict == "Bad" and view.given.wishes.undo[0] != view.state.target


def _take_back(view: View) -> State:
    failure = Failure(view.state.target, "FoundBad", "the revision was found bad before")
    return _entered(view.state, ROLLING_BACK, failure=view.state.failure or failure)


def _accepted(view: View) -> bool:
    return not _exceeded(view)


def _resume(view: View) -> State:
    return replace(view.state, phase=PROGRESSING, failure=None)


def _returned(view: View) -> bool:
    """Tell whether every mailbox that can be seen has the stable revision again."""
    back, found = view.given.at(view.state.stable), view.verdicts
    return not view.returning - found.absent and not back - found.absent - found.settled


def _back(view: View) -> State:
    state = view.state
    phase: Phase = COMPLETED if state.target == state.stable else ROLLED_BACK
    return replace(state, phase=phase)


def _entered(state: State, phase: Phase, **more: object) -> State:
    """Return *state* at a turn: another attempt, in no wave, with nobody in flight."""
    fresh = {
        "wave": 0,
        "wave_name": "",
        "opened": "",
        "quiet": NOT_QUIET,
        "members": BitMap(),
        "bad_seen": 0,
        "in_flight": (),
        "unwell_before": BitMap(),
        **more,
    }
    return replace(state, phase=phase, attempt=state.attempt + 1, **fresh)  # type: ignore[arg-type]


_ANY: Final[tuple[Phase, ...]] = (*UNDER_WAY, *AT_REST, ROLLING_BACK, SETTLING)
_GATED: Final[tuple[Phase, ...]] = (PROGRESSING, SOAKING, AWAITING)

TABLE: Final[tuple[Row, ...]] = (
    Row(_ANY, "a person forces a revision", _forced, _force),
    Row((SETTLING,), "the first revision was cut", _first, _adopt),
    Row(AT_REST, "another revision is wanted", _news, _start),
    Row((*UNDER_WAY, ROLLING_BACK), "a newer revision takes its place", _superseded, _start),
    Row(UNDER_WAY, "a person aborts", _aborted, _abort),
    Row(UNDER_WAY, "too many are bad", _fails, _failed),
    Row((PAUSED,), "a person accepts what is bad", _accepted, _resume),
    Row(_GATED, "its revision is bad already", _found_bad, _take_back),
    Row((ROLLING_BACK,), "everybody is back", _returned, _back),
    Row(_GATED, "a person promotes the wave", _promoted, _passed),
    Row((PROGRESSING,), "the wave has no destinations", _adds_nobody, _passed),
    Row((PROGRESSING,), "the wave is full and good", _full, _soak),
    Row((SOAKING, AWAITING), "too few are good any more", _disproved,
        lambda view: replace(view.state, phase=PROGRESSING, quiet=NOT_QUIET)),
    Row((SOAKING,), "it is not quiet, or quiet again", _disturbed, _soak),
    Row((SOAKING,), "quiet for long enough, and approval is asked",
        lambda view: _soaked(view) and _asks(view),
        lambda view: replace(view.state, phase=AWAITING)),
    Row((SOAKING,), "quiet for long enough", _soaked, _passed),
    Row((SOAKING,), "more of its soak is proven", lambda view: view.state.quiet != _proven(view),
        lambda view: replace(view.state, quiet=_proven(view))),
    Row((AWAITING,), "it was approved", _approved, _passed),
)  # fmt: skip
