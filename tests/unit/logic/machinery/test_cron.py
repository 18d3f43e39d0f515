"""When schedules are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.logic.machinery.cron import ScheduleError, check_schedule, missed_times, parse_schedule


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "now", "expected"),
    [
        ("* * * * *", "2026-01-01 00:00:00", "2026-01-01 00:01:00"),
        ("*/15 * * * *", "2026-01-01 00:15:00", "2026-01-01 00:30:00"),
        ("0 3 * * *", "2026-01-01 03:00:00", "2026-01-02 03:00:00"),
        ("30 4 1 1 *", "2026-01-02 00:00:00", "2027-01-01 04:30:00"),
        ("0 0 29 2 *", "2026-01-01 00:00:00", "2028-02-29 00:00:00"),
        ("0 12 * * MON-FRI", "2026-11-13 12:00:00", "2026-11-16 12:00:00"),
        # Both days restricted: either fits.
        ("0 0 13 * 5", "2026-11-12 00:00:00", "2026-11-13 00:00:00"),
        ("0 0 13 * 5", "2026-11-13 00:00:00", "2026-11-20 00:00:00"),
        ("@hourly", "2026-01-01 00:10:00", "2026-01-01 01:00:00"),
        ("@every 90s", "2026-01-01 00:00:00", "2026-01-01 00:01:30"),
        ("CRON_TZ=Europe/Berlin 0 6 * * *", "2026-07-01 00:00:00", "2026-07-01 04:00:00"),
    ],
)
def test_the_next_time_is_the_first_one_strictly_after(
    schedule: str, now: str, expected: str
) -> None:
    assert parse_schedule(schedule).after(at(now)) == at(expected)


def test_a_day_that_never_comes_has_no_next_time() -> None:
    assert parse_schedule("0 0 30 2 *").after(at("2026-01-01 00:00:00")) is None


def test_an_unknown_zone_is_an_error() -> None:
    with pytest.raises(ScheduleError, match="unknown time zone Nowhere/Land"):
        parse_schedule("* * * * *", "Nowhere/Land")


def test_a_time_zone_moves_the_schedule() -> None:
    schedule = parse_schedule("0 6 * * *", "America/New_York")
    assert schedule.after(at("2026-01-01 00:00:00")) == at("2026-01-01 11:00:00")


@given(
    st.sampled_from(["*/7 * * * *", "5 */3 * * *", "0 0 * * 1,4", "17 3 1-7 * *", "@daily"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),  # noqa: DTZ001 - given one below
)
@settings(max_examples=60, deadline=None)
def test_no_minute_between_now_and_the_next_time_would_have_fitted(
    text: str, moment: datetime
) -> None:
    schedule, now = parse_schedule(text), moment.replace(tzinfo=UTC)
    following = schedule.after(now)
    assert following is not None
    assert following > now
    minute = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    # Coming from anywhere before, one arrives at the same time.
    middle = minute + (following - minute) / 2
    if middle < following:
        assert schedule.after(middle) == following


def test_missed_times_are_reported_oldest_first_and_bounded() -> None:
    schedule = parse_schedule("* * * * *")
    start = at("2026-01-01 00:00:00")
    missed = missed_times(schedule, start, start + timedelta(minutes=5))
    assert missed == [start + timedelta(minutes=n) for n in range(1, 6)]
    assert len(missed_times(schedule, start, start + timedelta(days=9), maximum=101)) == 101


def test_a_star_with_an_end_is_every_value_as_it_is_in_kubernetes() -> None:
    """It was accepted when written, and the controller could not read it."""
    assert parse_schedule("*-5 * * * *") == parse_schedule("* * * * *")


def test_a_zone_in_the_text_counts_before_the_field() -> None:
    assert parse_schedule("TZ=UTC 0 0 * * *", "Europe/Berlin").zone == UTC
    with pytest.raises(ScheduleError, match="unknown time zone Nowhere"):
        parse_schedule("TZ=Nowhere 0 0 * * *")
    check_schedule("TZ=Nowhere 0 0 * * *")  # what is written is not looked up
