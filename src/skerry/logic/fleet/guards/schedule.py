"""Beginnings by the clock on the wall, and the instants they are somewhere.

A wall clock shows some times never (it is put forward) and some twice (it is put back). What begins
at a time that is skipped begins at the next instant there is, which is that of the change; what
begins at a time that comes twice begins once, the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skerry.logic.machinery.cron import parse_schedule

# The longest that a clock was ever put forward or back is a day, where a date line moved.
_MAX_SHIFT = timedelta(hours=26)
# A year of any pattern; Monday, so that a week is whole.
_SAMPLE_FROM = datetime(2024, 1, 1)  # noqa: DTZ001 - wall time
_SAMPLE_YEARS = timedelta(days=2 * 366)
_MAX_SAMPLES = 400


class WallSchedule:
    """A cron schedule of wall times, which are datetimes without zone."""

    __slots__ = ("_schedule", "text")

    def __init__(self, text: str) -> None:
        """Raises ``ScheduleError`` where *text* is no schedule."""
        self.text = text
        # A wall time is read as if it were in UTC, where every time comes once.
        self._schedule = parse_schedule(text)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the beginnings after *start* and not after *end*."""
        found = self._schedule.after(start.replace(tzinfo=UTC))
        while found is not None and found <= end.replace(tzinfo=UTC):
            yield found.replace(tzinfo=None)
            found = self._schedule.after(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WallSchedule) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def zone_named(name: str) -> tzinfo | None:
    """Return the time zone of that name; None when nobody knows it."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def instant(wall: datetime, zone: tzinfo) -> datetime:
    """Return the first moment, in UTC, at which the clock in *zone* shows *wall* or later."""
    found = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == wall:
        return found
    # The clock never shows it: the change is after what the new offset makes of it, and not
    # after what the old one does.
    low, high = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), found
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        if middle.astimezone(zone).replace(tzinfo=None) < wall:
            low = middle
        else:
            high = middle
    return high


def current(
    schedule: WallSchedule, duration: timedelta, zone: tzinfo, now: datetime
) -> tuple[datetime, datetime] | None:
    """Return when what is going on *now* began and ends; None when nothing is.

    It ends at the wall time that is *duration* later on the clock, so that a weekend ends on
    Monday at six whether or not the clock was changed on Sunday.
    """
    wall = now.astimezone(zone).replace(tzinfo=None, fold=0)
    # Where the clock was put back, what shows as later may have begun already.
    changed = now.astimezone(zone).utcoffset() != (now - _MAX_SHIFT).astimezone(zone).utcoffset()
    latest = wall + _MAX_SHIFT if changed else wall
    for begins in schedule.between(wall - duration, latest):
        start, end = instant(begins, zone), instant(begins + duration, zone)
        if start <= now < end:
            return start, end
    return None


def shortest_period(schedule: WallSchedule) -> timedelta | None:
    """Return the least time from one beginning to the next; None when there is but one."""
    shortest: timedelta | None = None
    before: datetime | None = None
    found = schedule.between(_SAMPLE_FROM, _SAMPLE_FROM + _SAMPLE_YEARS)
    for _, begins in zip(range(_MAX_SAMPLES), found, strict=False):
        if before is not None:
            gap = begins - before
            shortest = gap if shortest is None else min(shortest, gap)
        before = begins
    return shortest
