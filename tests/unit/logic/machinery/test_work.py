"""Work that is counted while it is done."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.work import LongWork, left, limited, spend


def test_what_is_not_limited_may_spend_anything() -> None:
    spend(1e12)
    assert left(5) == 5


def test_all_units_may_be_spent_and_not_one_more() -> None:
    def work(*units: float) -> None:
        for each in units:
            spend(each)

    limited(10, lambda: work(4, 6))
    with pytest.raises(LongWork):
        limited(10, lambda: work(4, 6.5))


def test_what_is_left_is_at_most_the_limit_asked_for() -> None:
    def work() -> tuple[float, float]:
        spend(7)
        return left(100), left(1)

    assert limited(10, work) == (3, 1)


def test_a_limit_ends_with_its_function_also_when_that_fails() -> None:
    with pytest.raises(LongWork):
        limited(1, lambda: spend(2))
    assert left(50) == 50


def test_a_limit_within_a_limit_counts_for_itself() -> None:
    def outer() -> float:
        limited(100, lambda: spend(90))
        return left(100)

    assert limited(5, outer) == 5
