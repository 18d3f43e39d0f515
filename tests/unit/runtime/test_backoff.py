"""Delays double up to a limit, and are spread by jitter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.ids import SeededIds
from skerry.runtime.backoff import Backoff


def test_each_failure_doubles_the_delay_up_to_the_limit() -> None:
    backoff = Backoff(min_seconds=1, max_seconds=10)
    assert [backoff.seconds(attempt) for attempt in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@given(st.integers(-5, 10**9))
def test_no_number_of_attempts_leaves_the_bounds(attempt: int) -> None:
    assert 0.005 <= Backoff().seconds(attempt) <= 30


def test_jitter_adds_up_to_its_fraction() -> None:
    ids, backoff = SeededIds(1), Backoff(min_seconds=1, max_seconds=10, jitter=0.5)
    found = {backoff.seconds(1, ids) for _ in range(50)}
    assert all(1 <= seconds <= 1.5 for seconds in found)
    assert len(found) > 40
