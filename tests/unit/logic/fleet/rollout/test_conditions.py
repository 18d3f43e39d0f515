"""A rollout in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skerry.logic.fleet.rollout.advance import advance
from skerry.logic.fleet.rollout.assign import Assignment, assign
from skerry.logic.fleet.rollout.conditions import conditions, counts
from skerry.logic.fleet.rollout.spec import read_spec
from skerry.logic.fleet.rollout.state import Failure, Gate, Situation, State, Verdicts
from skerry.logic.fleet.rollout.waves import WaveMember
from tests.kit.chain.rollout_fleet import Fleet

SPEC: dict[str, Any] = {
    "judge": {"minReady": "0s", "deadline": "60s"},
    "pace": {"concurrency": "100%", "maxUnavailable": "100%"},
    "waves": [{"name": "canary", "until": 2}],
}


def fleet(**spec: Any) -> Fleet:
    made = Fleet({**SPEC, **spec}, 4)
    made.edit()
    made.run(rounds=3)
    return made


def said(made: Fleet) -> dict[str, tuple[str, str]]:
    given = made.situation()
    found = conditions(given, assign(given, advance(given)))
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def test_a_rollout_at_rest_is_ready_and_one_under_way_progresses() -> None:
    made = fleet()
    assert said(made)["Ready"] == ("True", "Completed")
    made.edit()
    made.schedule()
    found = said(made)
    assert (found["Ready"][0], found["Progressing"]) == ("False", ("True", "Progressing"))
    assert found["Stalled"][0] == "False"


def test_too_little_evidence_stalls_with_numbers() -> None:
    made = fleet(judge={**SPEC["judge"], "evidence": 3})
    made.edit()
    made.run(rounds=3)
    given = made.situation()
    found = conditions(given, assign(given, advance(given)))
    [stalled] = [each for each in found if each["type"] == "Stalled"]
    assert (stalled["status"], stalled["reason"]) == ("True", "TooLittleEvidence")
    assert "3" in stalled["message"]
    assert "2" in stalled["message"]


def test_a_closed_gate_and_a_failure_stall() -> None:
    made = fleet()
    made.edit()
    made.gate = Gate(False, "QueryMissing", "there is no StatusQuery web-errors")
    made.run(rounds=3)
    assert said(made)["Stalled"] == ("True", "QueryMissing")
    made.gate = Gate()
    made.run(rounds=3)
    made.edit(poison=True)
    made.run(seconds=30, rounds=6)
    assert said(made)["Stalled"] == ("True", "DeadlineExceeded")
    assert said(made)["Ready"][0] == "False"


def test_a_pause_is_shown() -> None:
    made = fleet(paused=True)
    made.edit()
    made.run(rounds=2)
    assert said(made)["Progressing"] == ("False", "Paused")


def test_force_of_nothing_is_invalid() -> None:
    made = fleet(force={"revision": 9, "reason": "x"})
    assert said(made)["Valid"] == ("False", "UnknownRevision")


def test_counts_are_of_what_will_be_written() -> None:
    made = fleet()
    made.edit()
    given = made.situation()
    found = counts(given, assign(given, advance(given)))
    assert (found["destinations"], found["target"], found["waiting"]) == (4, 2, 2)


def test_before_the_first_revision_a_rollout_settles() -> None:
    made = Fleet(SPEC, 4)
    assert said(made)["Progressing"] == ("True", "Settling")


def test_a_wave_that_is_good_waits_for_who_approves_the_next() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2, "approval": "Required"}])
    made.edit()
    made.run(rounds=4)
    assert made.state().phase == "Awaiting"
    assert said(made)["Progressing"] == ("True", "Awaiting")


def progress(state: State, spec: dict[str, Any] | None = None, **more: Any) -> tuple[str, str, str]:
    """Return status, reason and message of Progressing for a rollout of three places."""
    places = [
        WaveMember(slot, f"edge-{slot}", {}, revision)
        for slot, revision in ((1, 4), (2, 4), (3, 5))
    ]
    given = Situation(
        read_spec(spec or {}), state, Verdicts(), places, {}, 5, "", lambda _: 0.0, **more
    )
    found = {each["type"]: each for each in conditions(given, Assignment(state=state))}
    each = found["Progressing"]
    return each["status"], each["reason"], each["message"]


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        (State(), "True", "waiting for the first revision"),
        (
            State("Progressing", 1, 5, stable=4, wave=1, wave_name="early"),
            "True",
            "wave early: revision 5 at 1 of 3 destinations",
        ),
        (
            State("Awaiting", 1, 5, stable=4, wave=1, wave_name="early"),
            "True",
            "wave early waits for approval",
        ),
        (State("Soaking", 1, 5, stable=4, wave=2), "True", "the last wave is full"),
        (State("RollingBack", 2, 5, stable=4), "True", "returning to revision 4"),
        (State("Completed", 2, 5, stable=5), "False", "revision 5 at 3 destinations"),
        (
            State("RolledBack", 2, 5, stable=4, failure=Failure(5, "Bad", "too hot")),
            "False",
            "revision 5 failed: too hot",
        ),
    ],
)
def test_each_phase_says_where_it_stands_in_numbers(state: State, status: str, words: str) -> None:
    found = progress(state)
    assert (found[0], found[1]) == (status, state.phase)
    assert words in found[2]


def test_a_pause_by_hand_is_said_in_place_of_the_phase() -> None:
    under_way = State("Progressing", 1, 5, stable=4, wave=1, wave_name="early")
    found = progress(under_way, {"paused": True})
    assert found[:2] == ("False", "Paused")
    assert found[2].startswith("paused in wave early")
    assert progress(State("Completed", 1, 5, stable=5), {"paused": True})[1] == "Completed"


def test_a_closed_gate_says_why_nothing_counts() -> None:
    soaking = State("Soaking", 1, 5, stable=4, wave=1, wave_name="early")
    gate = Gate(False, "QueryMissing", "there is no StatusQuery")
    assert progress(soaking, gate=gate)[2] == "wave early is full: there is no StatusQuery"


def stalled(made: Fleet, found: Assignment | None = None) -> dict[str, Any]:
    given = made.situation()
    listed = conditions(given, found or assign(given, advance(given)))
    [condition] = [each for each in listed if each["type"] == "Stalled"]
    return condition


def test_newcomers_that_fail_stall_however_the_rollout_goes() -> None:
    made = fleet(judge={**SPEC["judge"], "deadline": "5s"})
    for _ in range(2):
        made.join().ill = True
    made.run(seconds=10, rounds=4)
    found = stalled(made)
    assert found["reason"] == "JoiningFailed"
    assert found["message"].startswith("2 new destinations are bad at revision")


def test_a_wave_whose_edges_were_unwell_before_has_too_little_to_show() -> None:
    made = fleet(judge={**SPEC["judge"], "deadline": "5s", "evidence": 2})
    for edge in made.edges.values():
        edge.ill = True
    made.run(rounds=2)
    made.edit()
    made.run(seconds=10, rounds=4)
    found = stalled(made)
    assert found["reason"] == "TooLittleEvidence"
    assert found["message"] == "2 destinations must be good, and 0 are"


def test_what_a_limit_holds_back_is_no_stall_once_something_moves() -> None:
    made = fleet()
    made.edit()
    given = made.situation()
    moving = assign(given, advance(given))
    held = replace(moving, held="no more at once", revisions={})
    assert stalled(made, held)["reason"] == "Held"
    assert stalled(made, replace(moving, held="no more at once"))["status"] == "False"
