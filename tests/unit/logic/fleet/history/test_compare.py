"""Differences of states are empty for equal ones, and compose."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.history.compare import Difference, Differences, compare
from skerry.logic.fleet.history.fold import State
from skerry.logic.fleet.placement.records import Destination
from tests.kit.decisions import random_history


def composed(first: Differences, second: Differences) -> Differences:
    """Return the difference that two differences are one after the other."""
    found: dict[Destination, Difference] = {}
    for each in sorted({*first, *second}):
        before = first[each].before if each in first else second[each].before
        after = second[each].after if each in second else first[each].after
        if before != after:
            found[each] = Difference(before, after)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_differences_compose(seed: int) -> None:
    states = [State(held) for _, _, held in random_history(seed).moments]
    for one, two, three in zip(states, states[1:], states[2:], strict=False):
        assert compare(one, one) == {}
        assert composed(compare(one, two), compare(two, three)) == compare(one, three)
        assert composed(compare(one, two), compare(two, one)) == {}


def test_applying_a_difference_leads_from_one_state_to_the_other() -> None:
    _, _, before = random_history(5).moments[3]
    _, _, after = random_history(5).moments[8]
    changed = dict(before)
    for each, (_, new) in compare(State(before), State(after)).items():
        changed.pop(each, None)
        if new is not None:
            changed[each] = new
    assert changed == after
