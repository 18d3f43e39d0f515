"""A rollout in words: its conditions and counts, for people and for tools that wait.

``Ready`` is what kstatus and Argo CD look at: True when everybody who can be reached has the
revision that the workspace is at. ``Stalled`` is True when nothing will happen without a person.

    phase                               Progressing  Ready  Stalled
    Settling, Awaiting, RollingBack     True         False  False
    Progressing, Soaking                True         False  True while it lacks what it waits for
    Paused after a failure              False        False  True
    Completed                           False        True   False
    RolledBack                          False        False  True, for a failure

Completed is ``Ready`` when everybody who is heard of has the revision. ``Stalled`` is True in any
phase while too many newcomers fail, and ``Progressing`` False while ``spec.paused``. To wait for
approval is no stall: the spec asks for it. A return ends with ``Ready`` False, however well
everybody is: what runs is not what the workspace has.
"""

from __future__ import annotations

from typing import Any, Final

from skerry.logic.fleet.rollout.assign import Assignment, in_flight
from skerry.logic.fleet.rollout.state import (
    AWAITING,
    PAUSED,
    PROGRESSING,
    ROLLED_BACK,
    ROLLING_BACK,
    SETTLING,
    SOAKING,
    Situation,
)
from skerry.logic.fleet.rollout.view import AT_REST, UNDER_WAY, View
from skerry.logic.machinery.conditions import condition

VALID: Final = "Valid"
PROGRESSING_CONDITION: Final = "Progressing"
READY: Final = "Ready"
STALLED: Final = "Stalled"

NO_PLACEMENT: Final = "NoPlacement"


def invalid(reason: str, message: str) -> list[dict[str, Any]]:
    """Return the conditions of a Rollout that cannot be carried out."""
    return [
        condition(VALID, False, reason, message),
        condition(PROGRESSING_CONDITION, False, reason, message),
        condition(READY, False, reason, message),
        condition(STALLED, True, reason, message),
    ]


def conditions(given: Situation, found: Assignment) -> list[dict[str, Any]]:
    """Return what there is to say of a rollout that has come to a state."""
    force = given.spec.force
    if force and force not in given.revisions:
        return invalid("UnknownRevision", f"spec.force.revision: there is no revision {force}")
    view = View(given, found.state)
    moving, reason, text = _progress(view, found)
    stall, why = _stall(view, found)
    ready = _is_ready(view, found)
    return [
        condition(VALID, True, VALID, ""),
        condition(PROGRESSING_CONDITION, moving, reason, text),
        condition(READY, ready, "Completed" if ready else reason, text),
        condition(STALLED, bool(stall), stall or "NotStalled", why),
    ]


def _is_ready(view: View, found: Assignment) -> bool:
    """Tell whether the live revision is stable, and at everybody who is heard of.

    Who is given it in this very step counts, as the condition is written along with the step. Edges
    that are silent hold nothing back, nor do newcomers that were not let in yet.
    """
    state = view.state
    if state.phase not in AT_REST or state.phase == ROLLED_BACK or state.stable != view.given.live:
        return False
    there = {p.slot for p in view.given.places if p.revision == state.stable}
    behind = view.given.slots - view.verdicts.absent
    return all(slot in there or slot in found.revisions for slot in behind)


def _progress(view: View, found: Assignment) -> tuple[bool, str, str]:
    """Return whether something is under way, and which phase it is, as a reason and in words."""
    state, given = view.state, view.given
    target, total = len(given.at(state.target)), len(given.places)
    counted = f"revision {state.target} at {target} of {total} destinations"
    wave = f"wave {state.wave_name}" if state.wave_name else "the last wave"
    if state.phase in UNDER_WAY and given.spec.paused:
        return False, PAUSED, f"paused in {wave}: {counted}"
    match state.phase:
        case "Settling":
            return True, SETTLING, "waiting for the first revision"
        case "Progressing":
            return True, PROGRESSING, f"{wave}: {counted}{f'; {found.held}' if found.held else ''}"
        case "Soaking":
            gate = given.gate
            return True, SOAKING, f"{wave} is full: {gate.message if not gate.holds else counted}"
        case "Awaiting":
            return True, AWAITING, f"{wave} waits for approval: {counted}"
        case "RollingBack":
            return True, ROLLING_BACK, f"returning to revision {state.stable}"
        case "Completed":
            return False, "Completed", f"revision {state.stable} at {total} destinations"
        case _:
            why = f": {state.failure.message}" if state.failure is not None else ""
            return False, state.phase, f"revision {state.target} failed{why}"


def _stall(view: View, found: Assignment) -> tuple[str, str]:
    """Return why nothing will happen without a person; empty when something will.

    The first that applies: a failure that stopped the attempt, a gate that others hold shut,
    newcomers that fail. Only a wave under way can have too little evidence, or be held by a limit.
    ``spec.paused`` is no stall: whoever set it knows.
    """
    state, given = view.state, view.given
    if state.phase in (PAUSED, ROLLED_BACK) and state.failure is not None:
        return state.failure.reason, state.failure.message
    if state.phase == SOAKING and not given.gate.holds:
        return given.gate.reason, given.gate.message
    unfit = len(state.joining & view.verdicts.unfit)
    if given.spec.judge.failures.exceeded(unfit, len(given.places)):
        text = "destination is" if unfit == 1 else "destinations are"
        return "JoiningFailed", f"{unfit} new {text} bad at revision {state.stable}"
    if state.phase != PROGRESSING or given.spec.paused:
        return "", ""
    wanted, there = given.spec.judge.evidence, len(view.reachable)
    if there < wanted and state.wave < given.spec.last and view.members:
        text = f"{wanted} destinations must be good, and {there} of the wave can be reached"
        return "TooLittleEvidence", text
    if not view.waiting and len(view.good) < wanted and view.members:
        text = f"{wanted} destinations must be good, and {len(view.good)} are"
        return "TooLittleEvidence", text
    if found.held and not found.revisions:
        return "Held", found.held
    return "", ""


def counts(given: Situation, found: Assignment) -> dict[str, int]:
    """Return destinations by verdict, as they will be when the assignment is written."""
    view = View(given, found.state)
    verdicts, slots = view.verdicts, given.slots
    target = given.at(found.state.target)
    arriving = {s for s, revision in found.revisions.items() if revision == found.state.target}
    departing = {s for s in target if found.revisions.get(s, found.state.target) !=
                 found.state.target}  # fmt: skip
    fresh = arriving - set(target)
    at_rest = found.state.phase in AT_REST
    return {
        "destinations": len(slots) + len(found.newcomers),
        "target": len(target) + len(fresh) - len(departing)
        + sum(r == found.state.target for r in found.newcomers.values()),
        "good": len(verdicts.good & slots),
        "bad": len(verdicts.bad & slots),
        "excused": len(verdicts.excused & slots),
        "waiting": 0 if at_rest else len(in_flight(view)) + len(fresh),
        "absent": len(verdicts.absent & slots),
        "unavailable": len(verdicts.unavailable & slots),
    }  # fmt: skip
