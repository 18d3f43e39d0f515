"""Completion indexes as text and as sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.workloads.indexes import format_indexes, parse_indexes

SETS = st.sets(st.integers(0, 60))


@given(SETS)
def test_what_is_written_is_read_back(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes


@pytest.mark.parametrize(
    ("indexes", "text"),
    [((), ""), ((3,), "3"), ((1, 2), "1,2"), ((1, 2, 3), "1-3"), ((7, 1, 3, 4, 5), "1,3-5,7")],
)
def test_runs_of_three_are_ranges(indexes: tuple[int, ...], text: str) -> None:
    assert format_indexes(indexes) == text


@given(SETS, SETS)
def test_equal_sets_are_equal_texts_and_others_are_not(one: set[int], other: set[int]) -> None:
    assert (format_indexes(one) == format_indexes(other)) is (one == other)
