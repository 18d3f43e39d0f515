"""Verdicts on all destinations, at the cost of what changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.api.kcp.rollouts import Phase
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


ILL = Evidence(translated=True, unwell=True, message="no such image")


def test_a_slot_that_is_put_again_as_it_was_is_not_judged_again() -> None:
    asked: list[str] = []

    def elapsed(since: str) -> float:
        asked.append(since)
        return 0.0

    made = Judging(elapsed)
    state = State("Progressing", 3, 42, "d", 41, in_flight=(Batch("t", BitMap([1])),))
    made.turn(SPEC, state, Verdicts(3))
    made.put(1, Seen(42, "oslo", WELL))
    made.step(0)
    assert asked == ["t"]
    made.put(1, Seen(42, "oslo", WELL))
    made.step(1)
    assert asked == ["t"], "nothing is new and nothing is due"
    made.put(1, Seen(42, "rome", WELL))
    made.step(2)
    assert asked == ["t", "t"]


def test_what_is_published_does_not_change_any_more() -> None:
    made, _ = judging()
    made.put(1, Seen(42, "oslo", WELL))
    made.step(0)
    published = made.step(10).verdicts
    made.drop(1)
    made.step(11)
    assert list(published.good) == [1]


def test_an_unknown_slot_may_be_dropped_and_a_known_one_be_put_again() -> None:
    made, _ = judging()
    made.drop(9)
    made.put(1, Seen(42, "oslo", WELL))
    made.step(0)
    made.step(10)
    made.drop(1)
    made.put(1, Seen(42, "oslo", WELL))
    assert not made.step(11).verdicts.good, "it is another edge, and has shown nothing yet"
    assert list(made.step(21).verdicts.good) == [1]


def test_nothing_is_due_for_a_slot_that_was_dropped() -> None:
    made, _ = judging()
    made.put(1, Seen(42, "oslo", WELL))
    assert made.step(0).again == 10
    made.drop(1)
    assert made.step(1).again is None


@pytest.mark.parametrize("phase", ["Completed", "RolledBack", "RollingBack", "Settling"])
def test_nobody_is_judged_by_a_rollout_that_is_not_under_way(phase: Phase) -> None:
    made, state = judging(flown=1000.0)
    made.turn(SPEC, replace(state, phase=phase), Verdicts(3))
    made.put(1, Seen(42, "oslo", ILL))
    found = made.step(0).verdicts
    assert (list(found.bad), list(found.unavailable), list(found.settled)) == ([], [1], [1])


@pytest.mark.parametrize("phase", ["Progressing", "Soaking", "Awaiting", "Paused"])
def test_verdicts_go_on_while_a_rollout_waits(phase: Phase) -> None:
    made, state = judging(flown=1000.0)
    made.turn(SPEC, replace(state, phase=phase), Verdicts(3))
    made.put(1, Seen(42, "oslo", ILL))
    assert list(made.step(0).verdicts.bad) == [1]


def test_a_slot_that_is_good_and_falls_ill_is_bad_although_nothing_is_in_flight() -> None:
    made, state = judging()
    made.put(1, Seen(42, "oslo", WELL))
    made.step(0)
    assert list(made.step(10).verdicts.good) == [1]
    made.turn(SPEC, replace(state, in_flight=()), Verdicts(3))
    made.put(1, Seen(42, "oslo", ILL))
    first = made.step(11)
    assert (list(first.verdicts.good), first.again) == ([1], 10)
    found = made.step(21).verdicts
    assert (list(found.good), list(found.bad)) == ([], [1])
    assert found.failures == (
        {"slot": 1, "location": "oslo", "reason": "Unhealthy", "message": "no such image"},
    )


def test_who_was_unwell_before_the_rollout_is_excused() -> None:
    made, state = judging(flown=1000.0)
    made.turn(SPEC, replace(state, unwell_before=BitMap([1])), Verdicts(3))
    for slot in (1, 2):
        made.put(slot, Seen(42, f"edge-{slot}", ILL))
    found = made.step(0).verdicts
    assert (list(found.excused), list(found.bad)) == ([1], [2])
    assert [each["slot"] for each in found.failures] == [2]


def test_of_many_that_are_bad_a_few_are_named_and_their_messages_are_short() -> None:
    made = Judging(lambda _: 1000.0)
    slots = BitMap(range(1, 10))
    state = State("Progressing", 3, 42, "d", 41, in_flight=(Batch("t", slots),))
    made.turn(SPEC, state, Verdicts(3))
    for slot in slots:
        made.put(slot, Seen(42, f"edge-{slot}", replace(ILL, message="x" * 1000)))
    found = made.step(0).verdicts
    assert found.bad == slots
    assert [each["slot"] for each in found.failures] == [1, 2, 3, 4, 5]
    assert {len(each["message"]) for each in found.failures} == {256}


def test_why_a_slot_was_bad_is_not_forgotten_by_a_process_that_starts() -> None:
    made, state = judging(flown=1000.0)
    made.put(1, Seen(42, "oslo", ILL))
    published = made.step(0).verdicts
    again = Judging(lambda _: 0.0)
    again.turn(SPEC, state, published)
    again.put(1, Seen(42, "oslo", WELL))
    assert again.step(0).verdicts.failures == published.failures
    bare = Judging(lambda _: 0.0)
    bare.turn(SPEC, state, replace(published, failures=({"slot": 7}, {})))
    bare.put(1, Seen(42, "oslo", WELL))
    assert [each["reason"] for each in bare.step(0).verdicts.failures] == ["Bad"]


def test_who_was_excused_is_excused_after_a_restart_until_it_is_well() -> None:
    _, state = judging()
    again = Judging(lambda _: 1000.0)
    again.turn(SPEC, replace(state, unwell_before=BitMap([1])), Verdicts(3, excused=BitMap([1])))
    again.put(1, Seen(42, "oslo", ILL))
    assert list(again.step(0).verdicts.excused) == [1]
    again.put(1, Seen(42, "oslo", WELL))
    again.step(1)
    found = again.step(11).verdicts
    assert (list(found.excused), list(found.good)) == ([], [1])


def test_only_a_newcomer_that_was_unfit_is_unfit_after_a_restart() -> None:
    _, state = judging()
    again = Judging(lambda _: 0.0)
    joining = replace(state, joining=BitMap([1]), in_flight=())
    again.turn(SPEC, joining, Verdicts(3, unfit=BitMap([1, 2])))
    for slot in (1, 2):
        again.put(slot, Seen(41, f"edge-{slot}", Evidence(translated=True)))
    assert list(again.step(0).verdicts.unfit) == [1]


def test_other_terms_are_asked_of_everybody_at_once() -> None:
    made, state = judging()
    made.put(1, Seen(42, "oslo", WELL))
    assert not made.step(0).verdicts.good
    quick = read_spec({"judge": {"minReady": "2s", "deadline": "60s"}, "offline": {"after": "30s"}})
    made.turn(quick, state, Verdicts(3))
    assert made.step(1).again == 1
    assert list(made.step(2).verdicts.good) == [1]


def test_how_long_an_edge_may_be_silent_is_asked_anew_when_it_changes() -> None:
    made, state = judging(flown=20.0)
    made.put(1, Seen(42, "oslo", Evidence(silent_since="t", translated=True)))
    assert not made.step(0).verdicts.absent
    short = replace(SPEC, offline_after=20.0)
    made.turn(short, state, Verdicts(3))
    assert list(made.step(0).verdicts.absent) == [1]


def test_an_edge_that_was_never_heard_of_is_absent_at_once() -> None:
    made, _ = judging()
    made.put(1, Seen(42, "oslo", Evidence(silent_since="")))
    found = made.step(0)
    assert (list(found.verdicts.absent), found.again) == ([1], None)
    made.put(1, Seen(42, "oslo", replace(WELL, well=False)))
    found = made.step(1)
    assert (list(found.verdicts.absent), list(found.verdicts.unavailable)) == ([], [1])


def test_delivered_are_those_whose_edge_applied_the_target_and_no_other_revision() -> None:
    made, _ = judging()
    applied = replace(WELL, delivered=True)
    made.put(1, Seen(42, "oslo", applied))
    made.put(2, Seen(41, "rome", applied))
    found = made.step(0).verdicts
    assert (list(found.delivered), list(found.settled)) == ([1], [1, 2])


def test_the_next_moment_is_the_earliest_of_all_slots() -> None:
    made, _ = judging(flown=45.0)
    made.put(1, Seen(42, "oslo", WELL))
    made.put(2, Seen(42, "rome", Evidence(translated=True)))
    assert made.step(0).again == 10
    made.put(1, Seen(42, "oslo", Evidence(translated=True)))
    assert made.step(1).again == pytest.approx(9), "an old entry may wake once in vain"


def test_whoever_is_assigned_later_is_judged_from_then_on() -> None:
    made, state = judging()
    made.put(7, Seen(42, "oslo", WELL))
    assert made.step(0).again is None
    later = replace(state, in_flight=(*state.in_flight, Batch("u", BitMap([7]))))
    made.turn(SPEC, later, Verdicts(3))
    assert made.step(5).again == 10
    assert list(made.step(15).verdicts.good) == [7]


evidences = st.builds(
    Evidence,
    silent_since=st.sampled_from([None, None, None, "", "t"]),
    translated=st.booleans(),
    well=st.booleans(),
    unwell=st.booleans(),
    refusal=st.sampled_from(["", "", "Rejected"]),
    fails=st.sampled_from([False, False, None, True]),
)
puts = st.tuples(
    st.integers(1, 4),
    st.none() | st.builds(Seen, st.sampled_from([41, 42]), st.just("oslo"), evidences),
    st.sampled_from([0, 1, 10, 100]),
)


@given(st.lists(puts, max_size=25))
def test_no_slot_has_two_verdicts_and_none_that_is_gone_has_any(
    history: list[tuple[int, Seen | None, int]],
) -> None:
    made = Judging(lambda _: 40.0)
    flying = (Batch("t", BitMap([1, 2])),)
    state = State("Progressing", 3, 42, "d", 41, in_flight=flying, joining=BitMap([3]))
    made.turn(SPEC, state, Verdicts(3))
    now, there = 0.0, dict[int, Seen]()
    for slot, seen, seconds in history:
        now += seconds
        if seen is None:
            made.drop(slot)
            there.pop(slot, None)
        else:
            made.put(slot, seen)
            there[slot] = seen
        found = made.step(now).verdicts
        assert not found.good & found.bad
        assert not found.good & found.excused
        assert not found.bad & found.excused
        assert not found.joined & found.unfit
        assert not found.absent & found.unavailable
        assert found.joined | found.unfit <= BitMap([3])
        assert found.good | found.bad <= BitMap(s for s, e in there.items() if e.revision == 42)
        assert found.settled == BitMap(s for s, e in there.items() if e.evidence.translated)
        assert made.slots() == set(there)
        assert {each["slot"] for each in found.failures} <= set(found.bad | found.unfit)
        assert made.step(now).verdicts == found, "a second step at the same time finds nothing new"


def test_a_newcomer_at_the_target_is_good_like_any_other_and_never_bad() -> None:
    made, state = judging()
    made.turn(SPEC, replace(state, joining=BitMap([1]), in_flight=()), Verdicts(3))
    made.put(1, Seen(42, "oslo", WELL))
    made.step(0)
    well = made.step(10).verdicts
    assert (list(well.good), list(well.joined)) == ([1], [1])
    made.put(1, Seen(42, "oslo", Evidence(translated=True, fails=True)))
    ill = made.step(11).verdicts
    assert (list(ill.good), list(ill.bad), list(ill.unfit)) == ([], [], [1])


def test_who_was_there_before_is_no_newcomer_however_good_it_is() -> None:
    made, _ = judging()
    made.put(1, Seen(42, "oslo", WELL))
    made.step(0)
    found = made.step(10).verdicts
    assert (list(found.good), list(found.joined), list(found.unfit)) == ([1], [], [])


def test_a_rollout_that_goes_on_judges_what_it_saw_while_it_rested() -> None:
    made, state = judging(flown=1000.0)
    made.turn(SPEC, replace(state, phase="Settling"), Verdicts(3))
    made.put(1, Seen(42, "oslo", ILL))
    assert not made.step(0).verdicts.bad
    made.turn(SPEC, state, Verdicts(3))
    assert list(made.step(1).verdicts.bad) == [1]
