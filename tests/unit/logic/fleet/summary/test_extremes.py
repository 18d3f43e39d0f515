from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.logic.fleet.summary.extremes import Extremes


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), max_size=200))
@settings(max_examples=100, deadline=None)
def test_extremes_survive_any_removals(history: list[tuple[bool, int]]) -> None:
    extremes: Extremes[int] = Extremes()
    held: list[int] = []
    for adding, value in history:
        if adding:
            extremes.add(value)
            held.append(value)
        elif value in held:
            extremes.remove(value)
            held.remove(value)
        assert bool(extremes) == bool(held)
        if held:
            assert (extremes.min(), extremes.max()) == (min(held), max(held))


def test_extremes_do_not_keep_what_has_gone() -> None:
    extremes: Extremes[int] = Extremes()
    for value in range(1_000):
        extremes.add(value)
        extremes.remove(value)

    assert not extremes._order
    assert not extremes._counts


def test_removing_what_was_not_added_is_a_bug_that_shows() -> None:
    extremes: Extremes[int] = Extremes()

    with pytest.raises(KeyError):
        extremes.remove(1)
