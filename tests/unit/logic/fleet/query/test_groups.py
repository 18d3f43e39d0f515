"""What groups hold can be taken out again, exactly."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.query.groups import ExactSum, Group, plain, remove_sorted
from skerry.logic.fleet.query.plan import Aggregate
from skerry.logic.fleet.query.rows import Ident

AGGREGATES = tuple(
    Aggregate(function.lower(), function, percentile=50, k=2)
    for function in ("Count", "Sum", "Avg", "Min", "Max", "Percentile", "Top")
)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def ident(number: int) -> Ident:
    return Ident(f"loc-{number}", ObjectRef("", "apps", "deployments", "a", "x"), str(number))


@given(st.lists(numbers, max_size=30), st.lists(numbers, max_size=30))
def test_a_sum_is_exact_whatever_came_and_went(there: list[float], gone: list[float]) -> None:
    found = ExactSum()
    for value in (*there, *gone):
        found.add(value)
    for value in gone:
        found.remove(value)
    assert found.total() == sum(map(Fraction, there))
    for value in there:
        found.remove(value)
    assert not found


def test_there_is_no_drift_after_many_updates() -> None:
    found, generator = ExactSum(), random.Random(1)
    found.add(0.1)
    for _ in range(100_000):
        value = generator.uniform(-1e18, 1e18)
        found.add(value)
        found.remove(value)
    assert plain(found.total()) == 0.1


def test_a_sum_beyond_every_double_is_a_whole_number() -> None:
    found = ExactSum()
    for _ in range(3):
        found.add(1.7e308)
    found.add(0.5)
    assert isinstance(plain(found.total()), int)


def test_a_group_comes_to_what_its_values_say_and_forgets_all() -> None:
    group = Group(AGGREGATES)
    rows = [(ident(number), (None, *[number] * 6)) for number in range(4)]
    for where, values in rows:
        group.add(values, where)
    group.add((None,) * 7, ident(9))
    assert group.values() == [5, 6, 1.5, 0, 3, 1, [(3, ident(3)), (2, ident(2))]]
    assert not any(group.approximate())
    for where, values in rows:
        group.remove(values, where)
    assert group.values() == [1, None, None, None, None, None, []]
    group.remove((None,) * 7, ident(9))
    assert not group


def test_rows_of_equal_value_are_shown_in_the_order_of_rows() -> None:
    group = Group(AGGREGATES[-1:])
    for number in (3, 1, 2):
        group.add((7,), ident(number))
    assert group.values() == [[(7, ident(1)), (7, ident(2))]]


def test_what_is_not_there_cannot_be_taken_out() -> None:
    with pytest.raises(KeyError):
        remove_sorted([1, 3], 2)
