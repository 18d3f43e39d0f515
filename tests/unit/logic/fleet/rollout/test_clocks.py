"""How long ago something was, by two clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from skerry.logic.fleet.rollout.clocks import Elapsed, provable, seconds_until_due, soak_step
from skerry.logic.fleet.rollout.state import moment

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clocks:
    def __init__(self) -> None:
        self.wall, self.own = 0.0, 0.0
        self.elapsed = Elapsed(lambda: START + timedelta(seconds=self.wall), lambda: self.own)

    def after(self, wall: float, own: float) -> float:
        self.wall += wall
        self.own += own
        return self.elapsed.since(moment(START))


def test_what_was_proven_before_a_restart_counts() -> None:
    assert Clocks().after(600, 0) == 600


def test_a_jump_ahead_adds_nothing() -> None:
    clocks = Clocks()
    clocks.after(10, 10)
    assert clocks.after(3600, 5) == 15


def test_a_jump_back_waits_for_the_wall_clock_too() -> None:
    clocks = Clocks()
    clocks.after(100, 100)
    assert clocks.after(-90, 5) == 10


def test_of_a_soak_only_what_was_written_down_counts_before_a_restart() -> None:
    clocks = Clocks()
    clocks.wall = 3600.0
    assert clocks.elapsed.since(moment(START), 20) == 20
    clocks.own += 5
    assert clocks.elapsed.since(moment(START), 20) == 25


@pytest.mark.parametrize(("soak", "step"), [(5, 1), (100, 10), (86400, 60)])
def test_a_soak_is_written_down_in_steps(soak: float, step: float) -> None:
    assert soak_step(soak) == step
    assert provable(soak, step - 0.5, 0) == 0
    assert provable(soak, step + 0.5, 0) == step
    assert seconds_until_due(soak, 0.25, 0) == step - 0.25
    assert seconds_until_due(soak, soak - 0.5, soak - step / 2) == 0.5
    assert seconds_until_due(soak, soak + 1, soak) > 0


def test_what_is_no_time_was_just_now() -> None:
    clocks = Clocks()
    assert clocks.elapsed.since("soon") == clocks.elapsed.since("2026-01-01") == 0
