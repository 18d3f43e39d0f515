"""What groups hold can be taken out again, exactly."""

from __future__ import annotations

import random
from fractions import Fraction
from statistics import fmean
from typing import Any

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


def group_of(function: str, **more: Any) -> Group:
    return Group((Aggregate("n", function, **{"percentile": 50, "k": 2, **more}),))


@given(
    st.sampled_from(AGGREGATES),
    st.lists(st.tuples(st.integers(-5, 5), st.booleans()), max_size=40),
    st.randoms(use_true_random=False),
)
def test_a_group_is_what_is_left_in_it_in_whatever_order_it_came_and_went(
    aggregate: Aggregate, rows: list[tuple[int, bool]], order: random.Random
) -> None:
    there = [(ident(n), (value,)) for n, (value, stays) in enumerate(rows) if stays]
    gone = [(ident(n), (value,)) for n, (value, stays) in enumerate(rows) if not stays]
    kept, fresh = Group((aggregate,)), Group((aggregate,))
    coming = [*there, *gone]
    order.shuffle(coming)
    for where, values in coming:
        kept.add(values, where)
    order.shuffle(gone)
    for where, values in gone:
        kept.remove(values, where)
    for where, values in there:
        fresh.add(values, where)
    assert kept.values() == fresh.values()
    assert kept.rows == len(there)
    assert bool(kept) == bool(there)


@given(st.lists(st.integers(-9, 9) | st.none(), max_size=12))
def test_each_function_is_what_its_name_says_of_the_values_present(
    values: list[int | None],
) -> None:
    group = Group(AGGREGATES)
    for number, value in enumerate(values):
        group.add((None, *[value] * 6), ident(number))
    found = [value for value in values if value is not None]
    count, total, mean, low, high, middle, top = group.values()
    assert count == len(values)
    if not found:
        assert (total, mean, low, high, middle, top) == (None, None, None, None, None, [])
        return
    assert (total, low, high) == (sum(found), min(found), max(found))
    assert mean == fmean(found)
    assert middle == sorted(found)[(len(found) + 1) // 2 - 1]
    assert [number for number, _ in top] == sorted(found, reverse=True)[:2]


def test_a_mean_is_over_the_values_present_and_exact_before_it_is_rounded() -> None:
    group = group_of("Avg")
    for number, value in enumerate((2**60, None, 1, 2**60 + 1)):
        group.add((value,), ident(number))
    assert group.values() == [float(Fraction(2**61 + 2, 3))]


def test_a_mean_that_is_whole_is_shown_as_a_whole_number() -> None:
    group = group_of("Avg")
    group.add((0.5,), ident(1))
    group.add((1.5,), ident(2))
    [mean] = group.values()
    assert (mean, type(mean)) == (1, int)


@pytest.mark.parametrize("smallest", [5e-324, -5e-324, 2.2250738585072014e-308])
def test_not_even_the_smallest_double_is_lost_beside_the_greatest(smallest: float) -> None:
    found = ExactSum()
    found.add(1.7e308)
    found.add(smallest)
    found.remove(1.7e308)
    assert plain(found.total()) == smallest


def test_a_sum_of_nothing_that_was_something_holds_nothing() -> None:
    found = ExactSum()
    assert not found
    found.add(3)
    found.add(-3)
    assert found, "two values that cancel out are still two"
    assert (found.number, found.total()) == (2, Fraction(0))
    found.remove(3)
    found.remove(-3)
    assert not found


@given(st.fractions())
def test_an_exact_number_is_shown_whole_if_it_is_and_else_as_the_nearest_double(
    value: Fraction,
) -> None:
    found = plain(value)
    assert isinstance(found, int) == (value.denominator == 1)
    assert found == (int(value) if isinstance(found, int) else float(value))


def test_a_percentile_of_few_values_is_exact_and_says_so() -> None:
    group = group_of("Percentile", percentile=90)
    for number in range(10):
        group.add((number,), ident(number))
    assert group.values() == [8]
    assert group.approximate() == [False]
    for number in range(10, 5000):
        group.add((number,), ident(number))
    assert group.approximate() == [True]


def test_only_a_percentile_is_ever_approximate() -> None:
    group = Group(AGGREGATES)
    for number in range(3000):
        group.add((None, *[number] * 6), ident(number))
    assert group.approximate() == [each.function == "Percentile" for each in AGGREGATES]


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_top_shows_as_many_as_were_asked_for(k: int) -> None:
    group = group_of("Top", k=k)
    for number in range(4):
        group.add((number,), ident(number))
    assert group.values() == [[(n, ident(n)) for n in (3, 2, 1, 0)][:k]]


def test_a_top_knows_who_comes_next_when_the_first_goes() -> None:
    group = group_of("Top", k=1)
    for number in (5, 7, 6):
        group.add((number,), ident(number))
    group.remove((7,), ident(7))
    assert group.values() == [[(6, ident(6))]]


def test_a_row_that_was_never_added_cannot_be_removed() -> None:
    group = group_of("Top")
    group.add((1,), ident(1))
    with pytest.raises(KeyError):
        group.remove((1,), ident(2))


@given(st.lists(st.integers(0, 5), min_size=1), st.data())
def test_of_equal_entries_one_is_taken_out(entries: list[int], data: st.DataObject) -> None:
    entry = data.draw(st.sampled_from(entries))
    order = sorted(entries)
    remove_sorted(order, entry)
    entries.remove(entry)
    assert order == sorted(entries)


@pytest.mark.parametrize("missing", [0, 2, 4])
def test_what_is_before_between_or_behind_all_is_not_there(missing: int) -> None:
    order = [1, 3]
    with pytest.raises(KeyError):
        remove_sorted(order, missing)
    assert order == [1, 3]
