"""Durations are printed as kubectl users know them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.printing.durations import (
    human_duration,
    parse_time,
    short_human_duration,
    since,
)

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
DAY = 24 * 3600


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (1.9, "1s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3600, "2d1h"),
        (8 * DAY, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (8 * 365 * DAY + 5 * DAY, "8y"),
    ],
)
def test_a_duration_loses_precision_as_it_grows(seconds: float, shown: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3600, "1h"),
        (DAY, "1d"),
        (365 * DAY, "1y"),
    ],
)
def test_the_short_form_has_one_unit(seconds: int, shown: str) -> None:
    assert short_human_duration(timedelta(seconds=seconds)) == shown


@given(st.integers(min_value=0, max_value=20 * 365 * DAY))
def test_no_duration_text_is_longer_than_seven_characters(seconds: int) -> None:
    assert 2 <= len(human_duration(timedelta(seconds=seconds))) <= 7


@pytest.mark.parametrize(
    "text",
    [None, "", "yesterday", 5, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"],
)
def test_what_names_no_moment_has_an_unknown_age(text: object) -> None:
    assert parse_time(text) is None
    assert since(text, NOW) == "<unknown>"


def test_times_with_microseconds_and_zones_are_understood() -> None:
    assert since("2025-03-01T11:59:00.000000Z", NOW) == "60s"
    assert since("2025-03-01T12:59:00+01:00", NOW) == "60s"
