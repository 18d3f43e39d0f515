"""The rollout that a change would start."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.rollout.foresight import Prospect, RolloutForeseen, foreseen_rollout
from skerry.logic.fleet.rollout.spec import read_spec
from skerry.logic.fleet.rollout.state import State
from skerry.logic.fleet.rollout.text import foreseen_lines
from skerry.logic.fleet.rollout.waves import WaveMember

COMPLETED = State("Completed", 1, 2, "d", 2)


def prospect(
    edges: int = 20, state: State = COMPLETED, frozen: dict[int, str] | None = None, **spec: Any
) -> RolloutForeseen:
    places = [
        WaveMember(n, f"u{n}", {"ring": "canary" if n == 1 else "rest", "site": f"s{n % 2}"}, 2)
        for n in range(1, edges + 1)
    ]
    names = {place.slot: f"e{place.slot}" for place in places}
    absent = BitMap(range(edges - 1, edges + 1))
    read = read_spec(spec)
    given = Prospect("web", read, state, places, names, 10.0, absent, frozen or {})
    return foreseen_rollout(given)


WAVES = [
    {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}, "soak": "30m"},
    {"name": "early", "until": "25%", "approval": True},
]


def test_every_wave_says_how_many_it_adds_and_whom_where_that_is_known() -> None:
    found = prospect(waves=WAVES, pace={"concurrency": 2, "maxUnavailable": 2})
    assert [(each.name, each.added, each.batches) for each in found.waves] == [
        ("canary", 1, 1),
        ("early", 4, 2),
        ("", 15, 7),
    ]
    canary, early, _ = found.waves
    assert (canary.names, early.names) == (("e1",), ())
    assert canary.seconds == 30 + 30 * 60
    assert found.seconds == 10 + canary.seconds + 2 * 30 + 7 * 30
    shown = found.as_json()
    assert (shown["approvals"], shown["absent"], shown["stable"]) == (1, 2, 2)


def test_the_group_that_takes_longest_decides() -> None:
    found = prospect(pace={"concurrency": 4, "maxUnavailable": 9, "per": ["site"]})
    [everybody] = found.waves
    # Four at once of all 18 that are heard of; nine of them in either site.
    assert everybody.batches == 5


def test_what_would_hold_it_is_said() -> None:
    queued = prospect(
        state=State("Soaking", 1, 3, "d", 2),
        frozen={1: "fleet/night", 2: "fleet/night"},
        waves=WAVES,
        paused=True,
        supersede="Queue",
        judge={"evidence": 3, "external": ["smoke"]},
    )
    assert queued.holds == (
        "spec.paused is true",
        "revision 3 is under way: it waits for that",
        "fleet/night freezes content at 2 of 20 destinations",
        "wave canary: 3 must be good, and 1 can be reached",
        "condition smoke must be True after each wave",
    )


def test_it_takes_a_few_lines() -> None:
    first, *lines = foreseen_lines(prospect(waves=WAVES))
    assert first.startswith("  Rollout web would start a new revision (stable: 2) when")
    assert lines == [
        "    wave canary: 1: e1; at once, soaks 30m",
        "    wave early: 4; in 2 turns, then asks for approval",
        "    everybody else: 15; in 7 turns",
        "    2 of them are not heard of: they follow when they are back",
        "    earliest end: 35m10s from now, approvals not counted",
    ]
    [_, named, _, _] = foreseen_lines(prospect())
    assert named == (
        "    everybody else: 20: e1, e10, e11, e12, e13, e14, e15, e16, e17, e18, and 10 more; "
        "in 9 turns"
    )


@given(st.integers(2, 40), st.integers(1, 100), st.integers(1, 9))
def test_waves_together_hold_everybody_once(edges: int, percent: int, concurrency: int) -> None:
    waves = [{"name": "some", "until": f"{percent}%"}]
    found = prospect(edges, waves=waves, pace={"concurrency": concurrency, "maxUnavailable": "90%"})
    assert sum(each.added for each in found.waves) == edges
    assert all(each.batches * concurrency + 2 >= each.added for each in found.waves)


def test_a_forced_revision_and_one_that_was_never_cut_are_said_first() -> None:
    forced = prospect(force={"revision": 40, "reason": "INC-77"}, paused=True)
    assert forced.holds == (
        "spec.force keeps everybody at revision 40: INC-77",
        "spec.paused is true",
    )
    assert prospect(state=State()).holds == ("the first revision has not been cut yet",)


def test_freezes_are_counted_and_listed_in_order() -> None:
    found = prospect(frozen={3: "b/f", 1: "a/f", 2: "b/f"})
    assert found.holds == (
        "a/f freezes content at 1 of 20 destinations",
        "b/f freezes content at 2 of 20 destinations",
    )


def test_a_wave_that_cannot_show_its_evidence_is_named_and_an_empty_one_is_not() -> None:
    waves = [
        {"name": "nobody", "selector": {"matchLabels": {"ring": "none"}}},
        {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}},
    ]
    found = prospect(waves=waves, judge={"evidence": 2})
    assert found.holds == ("wave canary: 2 must be good, and 1 can be reached",)
    assert [each.name for each in found.waves] == ["canary", ""]
    assert prospect(waves=waves, judge={"evidence": 1}).holds == ()
