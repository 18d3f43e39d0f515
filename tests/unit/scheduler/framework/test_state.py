"""What plugins keep within an attempt, and trials that leave it as it was."""

from __future__ import annotations

from skerry.scheduler.framework.state import CycleState


class Counted:
    def __init__(self, count: int = 0) -> None:
        self.count = count

    def clone(self) -> Counted:
        return Counted(self.count)


def test_what_was_never_written_reads_as_nothing() -> None:
    state = CycleState()
    assert state.read("a") is None
    state.write("a", 1)
    assert state.read("a") == 1


def test_a_trial_changes_nothing_of_the_attempt() -> None:
    state = CycleState()
    state.write("counted", Counted(1))
    state.write("plain", (1, 2))
    state.skip_filter, state.skip_score = frozenset({"A"}), frozenset({"B"})
    trial = state.clone()
    trial.read("counted").count += 5
    trial.write("new", 1)
    assert (state.read("counted").count, state.read("new")) == (1, None)
    assert trial.read("plain") is state.read("plain")
    assert (trial.skip_filter, trial.skip_score) == (state.skip_filter, state.skip_score)
