from __future__ import annotations

from datetime import timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.cli.durations import DurationRange
from skerry.logic.machinery.durations import format_duration

DAY = DurationRange(timedelta(minutes=10), timedelta(days=1))


@pytest.mark.parametrize(
    ("text", "seconds"), [("24h", 86400), ("1h30m", 5400), ("600s", 600), ("0.5h", 1800)]
)
def test_durations_are_written_as_in_go(text: str, seconds: float) -> None:
    assert DAY.convert(text, None, None) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1d", "no duration"),
        ("", "no duration"),
        ("5", "no duration"),
        ("-1h", "not between 10m and 24h"),
        ("24h1s", "not between 10m and 24h"),
        ("599s", "not between 10m and 24h"),
    ],
)
def test_what_is_none_or_out_of_range_is_reported(text: str, expected: str) -> None:
    with pytest.raises(click.BadParameter, match=expected):
        DAY.convert(text, None, None)


@given(st.integers(0, 10**9))
def test_what_is_shown_is_read_back(seconds: int) -> None:
    anything = DurationRange(timedelta(), timedelta.max)
    text = format_duration(timedelta(seconds=seconds))
    assert anything.convert(text, None, None) == timedelta(seconds=seconds)
