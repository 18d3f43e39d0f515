"""Who belongs to a wave, and where everybody should be in the end."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from skerry.logic.fleet.rollout.state import Wishes
from tests.kit.chain.rollout_fleet import Fleet


def fleet() -> Fleet:
    """Two revisions, and the canary has the newer one."""
    given = {"waves": [{"name": "canary", "until": 1, "soak": "1h"}]}
    made = Fleet({**given, "judge": {"minReady": "0s"}, "joining": {"concurrency": 9}}, 3)
    made.edit()
    made.run(rounds=3)
    made.edit()
    made.run(rounds=2)
    return made


def test_a_wave_is_judged_by_its_members_and_silent_ones_are_not_waited_for() -> None:
    made = fleet()
    [canary] = made.situation().at(2)
    assert (made.view().members, made.view().good) == (BitMap([canary]), BitMap([canary]))
    made.status["verdicts"] = {**made.status["verdicts"], "good": ""}
    assert made.view().waiting == BitMap([canary])
    made.edges[f"uid-{canary}"].silent_since = made.now
    made.seconds += 600
    made.judge()
    assert made.view().waiting == BitMap()


def test_a_return_brings_back_whom_the_rollout_moved() -> None:
    made = fleet()
    assert made.view().returning == made.situation().at(2)


@pytest.mark.parametrize(
    ("wishes", "destination"),
    [
        (Wishes(), 2),
        (Wishes(undo=(1, 2)), 1),
        (Wishes(undo=(1, 1)), 2),
        (Wishes(undo=(7, 9)), 2),
        (Wishes(abort=2, undo=(2, 2)), 2),
    ],
)
def test_an_undo_counts_until_there_is_something_newer(wishes: Wishes, destination: int) -> None:
    made = fleet()
    made.wishes = wishes
    assert made.view().destination == destination


def test_an_undo_that_is_aborted_counts_only_where_it_has_arrived() -> None:
    made = fleet()
    made.wishes = Wishes(abort=1, undo=(1, 2))
    assert made.view().undone == 1, "it is what is stable"
    made.wishes = Wishes(promote="2/canary")
    made.run(rounds=3)
    assert made.status["stable"] == 2
    made.wishes = Wishes(abort=1, undo=(1, 2))
    assert made.view().undone == 0
