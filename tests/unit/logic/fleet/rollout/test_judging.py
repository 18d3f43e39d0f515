"""Verdicts on all destinations, at the cost of what changes."""

from __future__ import annotations

from dataclasses import replace

from pyroaring import BitMap

from skerry.logic.fleet.rollout.judging import Judging, Seen
from skerry.logic.fleet.rollout.spec import read_spec
from skerry.logic.fleet.rollout.state import Batch, State, Verdicts
from skerry.logic.fleet.rollout.verdict import Evidence

SPEC = read_spec({"judge": {"minReady": "10s", "deadline": "60s"}, "offline": {"after": "30s"}})
WELL = Evidence(translated=True, well=True)


def judging(flown: float = 0.0) -> tuple[Judging, State]:
    made = Judging(lambda _: flown)
    state = State("Progressing", 3, 42, "d", 41, in_flight=(Batch("t", BitMap([1, 2])),))
    made.turn(SPEC, state, Verdicts(3))
    return made, state


def test_a_slot_is_judged_when_its_time_has_come_without_any_event() -> None:
    made, _ = judging()
    made.put(1, Seen(42, "oslo", WELL))
    first = made.step(0)
    assert (list(first.verdicts.good), first.again) == ([], 10)
    assert list(made.step(10).verdicts.good) == [1]


def test_slots_that_the_status_does_not_name_are_not_judged() -> None:
    made, _ = judging()
    made.put(7, Seen(42, "oslo", WELL))
    made.put(8, Seen(41, "rome", WELL))
    assert not made.step(0).verdicts.good
    assert not made.step(100).verdicts.good


def test_what_was_published_counts_after_a_restart() -> None:
    _, state = judging()
    again = Judging(lambda _: 0.0)
    again.turn(SPEC, state, Verdicts(3, good=BitMap([1]), bad=BitMap([2])))
    again.put(1, Seen(42, "oslo", Evidence(translated=True)))
    again.put(2, Seen(42, "rome", WELL))
    found = again.step(0).verdicts
    assert (list(found.good), list(found.bad)) == ([1], [2])


def test_another_attempt_judges_anew() -> None:
    made, _ = judging()
    made.put(1, Seen(42, "oslo", WELL))
    made.step(0)
    assert made.step(10).verdicts.good
    made.turn(SPEC, State("Progressing", 4, 42, "d", 41), Verdicts())
    assert not made.step(11).verdicts.good


def test_a_silent_edge_is_absent_after_a_while_and_never_bad() -> None:
    silent = Evidence(silent_since="t", translated=True, unwell=True)
    made, _ = judging(flown=20.0)
    made.put(1, Seen(42, "oslo", silent))
    first = made.step(0)
    assert (list(first.verdicts.absent), first.again) == ([], 10)
    late, _ = judging(flown=1000.0)
    late.put(1, Seen(42, "oslo", silent))
    found = late.step(0).verdicts
    assert (list(found.absent), list(found.bad), list(found.unavailable)) == ([1], [], [])


def test_a_bad_slot_is_named_with_its_reason_and_expressions_that_fail_are_counted() -> None:
    made, _ = judging(flown=100.0)
    made.put(1, Seen(42, "oslo", Evidence(None, True, False, True, message="no such image")))
    made.put(2, Seen(42, "rome", Evidence(None, True, True, fails=None)))
    found = made.step(0)
    assert found.verdicts.failures[0]["location"] == "oslo"
    assert found.verdicts.failures[0]["message"] == "no such image"
    assert found.errors == 1


def test_a_slot_that_goes_takes_its_verdict_along() -> None:
    made, _ = judging()
    made.put(1, Seen(42, "oslo", WELL))
    made.step(0)
    made.step(10)
    made.drop(1)
    assert made.step(11).verdicts.good == BitMap()
    assert made.slots() == set()


def test_what_was_thought_at_another_revision_is_void() -> None:
    made, state = judging()
    made.turn(SPEC, replace(state, joining=BitMap([1]), in_flight=()), Verdicts(3))
    made.put(1, Seen(41, "oslo", WELL))
    made.step(0)
    assert list(made.step(10).verdicts.joined) == [1]
    made.turn(SPEC, state, Verdicts(3))
    made.put(1, Seen(42, "oslo", WELL))
    assert not made.step(11).verdicts.good
    assert list(made.step(21).verdicts.good) == [1]


def test_a_newcomer_that_is_bad_is_named_as_unfit_also_after_a_restart_until_it_is_well() -> None:
    made, state = judging(flown=100.0)
    joining = replace(state, joining=BitMap([1]))
    made.turn(SPEC, joining, Verdicts(3))
    made.put(1, Seen(41, "oslo", Evidence(None, True, False, True, message="no such image")))
    found = made.step(0).verdicts
    assert (list(found.unfit), list(found.bad), list(found.joined)) == ([1], [], [])
    assert found.failures[0]["message"] == "no such image"
    again = Judging(lambda _: 0.0)
    again.turn(SPEC, joining, found)
    again.put(1, Seen(41, "oslo", WELL))
    assert list(again.step(0).verdicts.unfit) == [1]
    well = again.step(10).verdicts
    assert (list(well.unfit), list(well.joined)) == ([], [1])
