"""The states of a rollout, one story each."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.fleet.rollout.state import Gate, Wishes
from tests.kit.chain.rollout_fleet import Fleet

FAST = {"minReady": "0s", "deadline": "60s"}
WIDE = {"concurrency": "100%", "maxUnavailable": "100%"}


def fleet(edges: int = 10, **spec: Any) -> Fleet:
    """Return a fleet at rest with its first revision everywhere."""
    given = {"judge": FAST, "pace": WIDE, "joining": {"concurrency": 1000}, **spec}
    made = Fleet(given, edges)
    made.edit()
    made.run(rounds=3)
    assert made.phase == "Completed"
    assert {edge.revision for edge in made.edges.values()} <= {1}
    return made


def at(made: Fleet, revision: int) -> int:
    return sum(edge.revision == revision for edge in made.edges.values())


CANARY = [{"name": "canary", "until": 2}]


def test_a_change_goes_to_the_canary_first_and_then_to_everybody() -> None:
    made = fleet(waves=CANARY)
    made.edit()
    made.schedule()
    assert (made.phase, at(made, 2)) == ("Progressing", 2)
    made.run(rounds=4)
    assert (made.phase, at(made, 2)) == ("Completed", 10)
    assert made.status["stable"] == 2


def test_a_bad_canary_returns_and_nobody_else_ever_ran_it() -> None:
    made = fleet(waves=CANARY)
    bad = made.edit(poison=True)
    made.run(seconds=20, rounds=8)
    assert made.phase == "RolledBack"
    assert at(made, 1) == 10
    assert sum(bad in edge.ran for edge in made.edges.values()) == 2
    assert made.status["failure"]["reason"] == "DeadlineExceeded"
    assert made.revisions[bad].verdict == "Bad"


def test_a_return_that_was_begun_by_who_died_goes_on_though_nobody_is_bad_any_more() -> None:
    made = fleet(waves=CANARY)
    bad = made.edit(poison=True)
    made.run(seconds=20, rounds=3)
    made.seconds += 60
    made.judge()
    made.schedule(crash_after=1)
    assert (made.phase, made.revisions[bad].verdict) == ("Progressing", "Bad")
    for uid in [uid for uid, edge in made.edges.items() if edge.revision == bad]:
        made.leave(uid)
    made.run(seconds=20, rounds=8)
    assert (made.phase, at(made, 1)) == ("RolledBack", 8)
    assert made.status["failure"]["reason"] == "FoundBad"


def test_what_was_bad_is_not_tried_again_but_what_follows_is() -> None:
    made = fleet(waves=CANARY)
    made.edit(poison=True)
    made.run(seconds=20, rounds=20)
    assert made.phase == "RolledBack"
    made.edit()
    made.run(rounds=6)
    assert (made.phase, made.status["stable"]) == ("Completed", 3)


def test_a_revert_goes_straight_back() -> None:
    made = fleet(waves=CANARY)
    made.edit()
    made.schedule()
    made.live = 1
    made.run(rounds=3)
    assert (made.phase, at(made, 1), made.status["stable"]) == ("Completed", 10, 1)


def test_a_wave_soaks_before_the_next_opens() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2, "soak": "100s"}])
    made.edit()
    made.run(rounds=5)
    assert (made.phase, at(made, 2)) == ("Soaking", 2)
    made.run(seconds=30, rounds=3)
    assert at(made, 2) == 2
    made.run(seconds=30, rounds=3)
    assert at(made, 2) == 10


def test_a_clock_that_jumps_ahead_shortens_no_soak() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2, "soak": "100s"}])
    made.edit()
    made.run(rounds=5)
    made.jumped = 3600
    made.run(rounds=5)
    assert (made.phase, at(made, 2)) == ("Soaking", 2)


def test_a_jump_and_a_restart_together_shorten_no_soak() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2, "soak": "100s"}])
    made.edit()
    made.run(rounds=5)
    made.jumped = 3600
    made.crash_scheduler()
    made.run(rounds=5)
    assert (made.phase, at(made, 2)) == ("Soaking", 2)


def test_a_restart_loses_no_more_of_a_soak_than_a_tenth() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2, "soak": "100s"}])
    made.edit()
    made.run(rounds=5)
    assert made.phase == "Soaking"
    made.run(rounds=79)
    made.crash_scheduler()
    made.run(rounds=33)
    assert at(made, 2) == 10


def test_another_bad_one_restarts_the_soak() -> None:
    lenient = {**FAST, "failures": {"above": 1}}
    made = fleet(judge=lenient, waves=[{"name": "canary", "until": 3, "soak": "100s"}])
    made.edit()
    made.run(rounds=3)
    before = made.status["wave"]["quietSince"]
    next(edge for edge in made.edges.values() if edge.revision == 2).ill = True
    made.run(seconds=5, rounds=4)
    assert made.phase == "Soaking"
    assert made.status["wave"]["quietSince"] > before


@pytest.mark.parametrize("approval", [False, True])
def test_a_wave_whose_last_good_one_turns_bad_while_it_soaks_is_not_passed(approval: bool) -> None:
    lenient = {**FAST, "failures": {"above": 1}}
    wave = {"name": "canary", "until": 1, "soak": "10s", "approval": approval}
    made = fleet(judge=lenient, waves=[wave])
    made.edit()
    made.run(rounds=20 if approval else 5)
    assert made.phase == ("Awaiting" if approval else "Soaking")
    canary = next(edge for edge in made.edges.values() if edge.revision == 2)
    canary.ill = True
    made.approved.add("digest-2/canary")
    made.judge()
    made.seconds += 100
    made.judge()
    made.run(seconds=30, rounds=4)
    assert (made.phase, at(made, 2)) == ("Progressing", 1)
    made.wishes = Wishes(promote="2/canary")
    made.run(seconds=5, rounds=4)
    assert made.phase == "Completed"


def test_a_failed_check_keeps_the_gate_closed_and_restarts_the_soak() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2}])
    made.edit()
    made.gate = Gate(False, "CheckFailed", "web-errors")
    made.run(rounds=5)
    assert (made.phase, at(made, 2)) == ("Soaking", 2)
    assert not made.status["wave"]["quietSince"]
    made.gate = Gate()
    made.run(rounds=4)
    assert made.phase == "Completed"


def test_a_wave_waits_for_the_approval_of_exactly_this_content() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2, "approval": True}])
    made.edit()
    made.run(rounds=4)
    assert made.phase == "Awaiting"
    made.approved.add("digest-1/canary")
    made.run(rounds=2)
    assert made.phase == "Awaiting"
    made.approved.add("digest-2/canary")
    made.run(rounds=4)
    assert made.phase == "Completed"


def test_promotion_passes_the_gates_of_one_wave() -> None:
    made = fleet(waves=[{"name": "a", "until": 2, "soak": "1h"}, {"name": "b", "until": 4,
                                                                  "soak": "1h"}])  # fmt: skip
    made.edit()
    made.run(rounds=3)
    made.wishes = Wishes(promote="2/a")
    made.run(rounds=3)
    assert (made.phase, made.status["wave"]["name"], at(made, 2)) == ("Soaking", "b", 4)


def test_a_wave_that_selects_nobody_is_passed() -> None:
    nobody = {"matchLabels": {"ring": "nowhere"}}
    made = fleet(waves=[{"name": "none", "selector": nobody, "soak": "1h"}])
    made.edit()
    made.run(rounds=4)
    assert made.phase == "Completed"


def test_a_canary_that_is_silent_gives_no_evidence() -> None:
    made = fleet(edges=0, waves=[{"name": "canary", "selector": {"matchLabels": {"ring": "c"}}}])
    for ring in ("c", "x", "x"):
        made.join(ring=ring)
    made.run(rounds=3)
    canary = next(edge for edge in made.edges.values() if edge.labels["ring"] == "c")
    made.silence(canary)
    made.run(seconds=400, rounds=2)
    made.edit()
    made.run(rounds=5)
    assert (made.phase, at(made, 2)) == ("Progressing", 0)


def test_a_pause_on_failure_ends_when_a_person_accepts_it() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2}], onFailure="Pause")
    made.edit(poison=True)
    made.run(seconds=20, rounds=6)
    assert (made.phase, at(made, 2)) == ("Paused", 2)
    made.wishes = Wishes(accept=(2, 2))
    made.run(seconds=1, rounds=1)
    assert made.phase == "Progressing"


def test_what_must_not_be_rolled_back_is_paused_instead() -> None:
    made = fleet(waves=CANARY)
    made.edit(poison=True, one_way=True)
    made.run(seconds=20, rounds=6)
    assert (made.phase, at(made, 2)) == ("Paused", 2)
    assert "must not be rolled back" in made.status["failure"]["message"]


def test_with_continue_a_failure_is_noted_and_the_rollout_goes_on() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2}], onFailure="Continue")
    made.edges["uid-1"].ill = True
    made.run(rounds=2)
    made.edges["uid-1"].ill = False
    made.edit()
    for edge in list(made.edges.values()):
        edge.ill = edge.uid in ("uid-3", "uid-4")
    made.run(seconds=30, rounds=12)
    assert made.phase == "Completed"


def test_a_newer_revision_takes_the_place_of_one_under_way() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2, "soak": "1h"}])
    made.edit()
    made.run(rounds=3)
    had = {edge.uid for edge in made.edges.values() if edge.revision == 2}
    made.edit()
    made.schedule()
    assert {edge.uid for edge in made.edges.values() if edge.revision == 3} == had
    assert made.status["stable"] == 1


def test_a_queued_revision_waits_for_the_one_under_way() -> None:
    made = fleet(waves=CANARY, supersede="Queue")
    made.edit()
    made.schedule()
    made.edit()
    made.run(rounds=1)
    assert made.status["target"] == 2
    made.run(rounds=9)
    assert (made.phase, made.status["stable"]) == ("Completed", 3)


def test_an_abort_returns_everybody() -> None:
    made = fleet(waves=[{"name": "canary", "until": 2, "soak": "1h"}])
    made.edit()
    made.run(rounds=3)
    made.wishes = Wishes(abort=2)
    made.run(rounds=3)
    assert (made.phase, at(made, 1)) == ("RolledBack", 10)
    assert made.status["failure"]["reason"] == "Aborted"


def test_an_undo_goes_through_the_waves_to_an_older_revision() -> None:
    made = fleet(waves=CANARY)
    made.edit()
    made.run(rounds=6)
    assert made.status["stable"] == 2
    made.wishes = Wishes(undo=(1, 2))
    made.schedule()
    assert at(made, 1) == 2
    made.run(rounds=6)
    assert (made.phase, at(made, 1), made.status["stable"]) == ("Completed", 10, 1)
    made.edit()
    made.run(rounds=6)
    assert made.status["stable"] == 3


def test_an_abort_where_nobody_is_left_to_bring_back_is_the_end_of_it() -> None:
    made = fleet(edges=1, waves=[{"name": "canary", "until": 1, "soak": "1h"}])
    made.edit()
    made.run(rounds=2)
    made.leave("uid-1")
    made.wishes = Wishes(abort=2)
    made.run(rounds=3)
    assert (made.phase, made.status["failure"]["reason"]) == ("RolledBack", "Aborted")


def test_an_abort_of_an_undo_ends_it() -> None:
    made = fleet(waves=CANARY)
    made.edit()
    made.run(rounds=6)
    made.wishes = Wishes(undo=(1, 2))
    made.schedule()
    assert at(made, 1) == 2
    made.wishes = Wishes(undo=(1, 2), abort=1)
    made.run(rounds=6)
    assert (made.phase, at(made, 2)) == ("Completed", 10)
    attempt = made.status["attempt"]
    made.run(rounds=6)
    assert made.status["attempt"] == attempt


def test_an_abort_of_an_undo_that_has_arrived_moves_nobody() -> None:
    made = fleet(waves=CANARY)
    made.edit()
    made.run(rounds=6)
    made.wishes = Wishes(undo=(1, 2))
    made.run(rounds=6)
    made.wishes = Wishes(undo=(1, 2), abort=1)
    made.run(rounds=6)
    assert (made.phase, at(made, 1)) == ("Completed", 10)


@pytest.mark.parametrize("paused", [True, False])
def test_force_brings_a_revision_everywhere_at_once(paused: bool) -> None:
    made = fleet(waves=[{"name": "canary", "until": 1, "soak": "1h"}], paused=paused)
    made.edit()
    made.run(rounds=2)
    made.spec["force"] = {"revision": 2, "reason": "INC-77"}
    made.run(rounds=1)
    assert (made.phase, at(made, 2)) == ("Completed", 10)
    made.spec["force"] = {"revision": 1, "reason": "INC-77"}
    made.run(rounds=1)
    assert (made.phase, at(made, 1)) == ("RolledBack", 10)
    made.run(rounds=3)
    assert at(made, 1) == 10


def test_force_of_a_revision_that_is_not_there_moves_nothing() -> None:
    made = fleet(waves=CANARY, force={"revision": 40, "reason": "x"})
    made.run(rounds=3)
    assert at(made, 1) == 10


def test_a_paused_rollout_assigns_nobody_and_goes_on_where_it_was() -> None:
    made = fleet(waves=CANARY, paused=True)
    made.edit()
    made.run(rounds=4)
    assert at(made, 2) == 0
    made.spec["paused"] = False
    made.run(rounds=5)
    assert made.phase == "Completed"


def test_an_edge_that_is_silent_throughout_delays_nothing_and_follows_later() -> None:
    made = fleet(waves=CANARY)
    silent = made.edges["uid-4"]
    made.silence(silent)
    made.run(seconds=400, rounds=1)
    made.edit()
    made.run(rounds=6)
    assert (made.phase, silent.revision) == ("Completed", 1)
    made.hear(silent)
    made.run(rounds=3)
    assert (made.phase, silent.revision) == ("Completed", 2)


def test_an_edge_that_was_unwell_before_causes_no_rollback() -> None:
    made = fleet(waves=CANARY)
    for edge in made.edges.values():
        edge.ill = edge.uid != "uid-1"
    made.run(rounds=2)
    made.edit()
    made.run(seconds=30, rounds=12)
    assert made.status.get("failure") is None
    assert made.revisions[2].verdict != "Bad"
