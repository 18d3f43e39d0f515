"""Percentiles of values that come and go are those of the values that are there."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.query.sketch import MAX_EXACT, Percentiles, bucket_of, middle_of

values = st.integers(-(10**40), 10**40) | st.floats(
    allow_nan=False, allow_infinity=False, allow_subnormal=False
)


@given(st.lists(values, min_size=1, max_size=50), st.lists(values, max_size=50))
def test_few_values_have_exact_percentiles_whatever_was_there_before(
    there: list[float], gone: list[float]
) -> None:
    found = Percentiles([*there, *gone])
    for value in gone:
        found.remove(value)
    assert not found.approximate
    for percentile in (1, 50, 99, 99.9):
        rank = max(1, math.ceil(percentile / 100 * len(there)))
        assert found.at(percentile) == sorted(there)[rank - 1]


@given(values)
def test_the_middle_of_a_bucket_is_within_one_per_cent(value: float) -> None:
    middle = middle_of(bucket_of(value))
    assert abs(middle - value) <= abs(value) * 0.0101


@given(values, values)
def test_buckets_are_ordered_as_numbers_are(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert bucket_of(low) <= bucket_of(high)


def test_many_values_are_approximate_until_they_are_few_again() -> None:
    many = range(1, 2 * MAX_EXACT + 1)
    found = Percentiles(many)
    assert found.approximate
    assert found.at(50) == pytest.approx(MAX_EXACT, rel=0.0101)
    for value in many[MAX_EXACT:]:
        found.remove(value)
    assert not found.approximate
    assert found.at(50) == MAX_EXACT // 2
    for value in many[:MAX_EXACT]:
        found.remove(value)
    assert not found
    assert found.at(50) is None


def test_many_equal_values_are_exact() -> None:
    found = Percentiles([7] * 100_000)
    assert (found.at(99), found.approximate) == (7, False)
