"""What begins by the clock on the wall begins once, and never before its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.guards.schedule import (
    WallSchedule,
    current,
    instant,
    shortest_period,
    zone_named,
)

# Every kind of clock change there is: both hemispheres, half hours, no change at all, two hours,
# changes at midnight, in Ramadan, and islands that skipped a day.
_ZONE_NAMES = """
UTC Europe/Oslo Europe/London Europe/Dublin Europe/Lisbon Europe/Moscow Europe/Istanbul
Europe/Chisinau Atlantic/Azores Atlantic/Reykjavik America/New_York America/Chicago
America/Denver America/Phoenix America/Los_Angeles America/Anchorage America/Adak
America/St_Johns America/Havana America/Sao_Paulo America/Santiago America/Asuncion
America/Nuuk America/Caracas Africa/Casablanca Africa/Cairo Africa/Johannesburg
Asia/Jerusalem Asia/Beirut Asia/Tehran Asia/Kolkata Asia/Kathmandu Asia/Tokyo
Asia/Gaza Australia/Sydney Australia/Lord_Howe Australia/Adelaide Pacific/Auckland
Pacific/Chatham Pacific/Apia Antarctica/Troll
"""
ZONES = _ZONE_NAMES.split()
_MINUTE = timedelta(minutes=1)


def changes(zone: ZoneInfo, year: int) -> list[datetime]:
    """Return about when the clock is changed in a year."""
    hours = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(0, 8760, 6)]
    offsets = [each.astimezone(zone).utcoffset() for each in hours]
    return [hours[n] for n in range(1, len(hours)) if offsets[n] != offsets[n - 1]]


_CHANGES = {name: changes(ZoneInfo(name), 2025) for name in ZONES}


def first_shown(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return what ``instant`` does, by watching the clock from the day before."""
    moment = wall.replace(tzinfo=UTC) - timedelta(hours=20)
    while moment.astimezone(zone).replace(tzinfo=None) < wall:
        moment += _MINUTE
    return moment


@st.composite
def near_a_change(draw: st.DrawFn) -> tuple[ZoneInfo, datetime]:
    """A zone, and a moment that is often near a change of its clock."""
    name = draw(st.sampled_from(ZONES))
    base = draw(st.sampled_from([*_CHANGES[name], datetime(2025, 6, 2, tzinfo=UTC)]))
    minutes = draw(st.integers(-600, 600))
    return ZoneInfo(name), base + timedelta(minutes=minutes)


def test_forty_zones_are_known() -> None:
    assert len(ZONES) >= 40
    assert all(zone_named(name) is not None for name in ZONES)
    assert zone_named("Europe/Atlantis") is None


@given(near_a_change())
def test_a_wall_time_begins_when_the_clock_first_shows_it_or_later(
    case: tuple[ZoneInfo, datetime],
) -> None:
    zone, moment = case
    wall = moment.replace(tzinfo=None)
    assert instant(wall, zone) == first_shown(wall, zone)


@given(near_a_change(), st.integers(0, 23), st.sampled_from([30, 60, 90, 600, 1440]))
def test_nothing_begins_or_ends_outside_its_local_times(
    case: tuple[ZoneInfo, datetime], hour: int, minutes: int
) -> None:
    zone, now = case
    schedule, duration = WallSchedule(f"30 {hour} * * *"), timedelta(minutes=minutes)
    today = now.astimezone(zone).replace(tzinfo=None).date()
    begins = [
        datetime(day.year, day.month, day.day, hour, 30)  # noqa: DTZ001 - wall time
        for day in (today + timedelta(days=n) for n in range(-2, 3))
    ]
    on = any(first_shown(b, zone) <= now < first_shown(b + duration, zone) for b in begins)
    assert (current(schedule, duration, zone, now) is not None) == on


def test_a_skipped_start_begins_at_the_next_instant() -> None:
    # On 30 March 2025 the clock in Oslo goes from 02:00 to 03:00, which is 01:00 in UTC.
    wall = datetime(2025, 3, 30, 2, 30)  # noqa: DTZ001 - wall time
    assert instant(wall, ZoneInfo("Europe/Oslo")) == datetime(2025, 3, 30, 1, tzinfo=UTC)


def test_a_doubled_start_begins_once() -> None:
    # On 26 October 2025 it shows 02:30 twice: at 00:30 and at 01:30 in UTC.
    oslo, half_hour = ZoneInfo("Europe/Oslo"), timedelta(minutes=30)
    schedule = WallSchedule("30 2 * * *")
    first = datetime(2025, 10, 26, 0, 30, tzinfo=UTC)
    # It ends when the clock shows 03:00, which it does once.
    end = datetime(2025, 10, 26, 2, tzinfo=UTC)
    assert current(schedule, half_hour, oslo, first) == (first, end)
    assert current(schedule, half_hour, oslo, end) is None


def test_a_weekend_ends_on_monday_at_six_though_the_clock_was_changed() -> None:
    found = current(
        WallSchedule("0 18 * * 5"),
        timedelta(hours=60),
        ZoneInfo("Europe/Oslo"),
        datetime(2025, 3, 29, tzinfo=UTC),
    )
    assert found is not None
    assert found[1] == datetime(2025, 3, 31, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("0 18 * * 5", timedelta(days=7)),
        ("0 18 * * 5,6", timedelta(days=1)),
        ("@hourly", timedelta(hours=1)),
        ("0 0 1 * *", timedelta(days=28)),
        ("0 0 30 2 *", None),
    ],
)
def test_the_shortest_period_is_the_least_time_between_beginnings(
    text: str, period: timedelta | None
) -> None:
    assert shortest_period(WallSchedule(text)) == period
