"""When a cron schedule is due.

The grammar is the one ``builtin.cron`` checks; here it is given meaning. A day must fit the
day of the month *or* of the week when both are restricted, else both, as cron has always done.
Times are found field by field from the largest down, so a schedule years away costs little.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skerry.logic.machinery.builtin.cron import ScheduleError, check_schedule
from skerry.logic.machinery.durations import parse_duration

_NAMES = {
    name: number
    for names in (
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    )
    for number, name in enumerate(names, 1)
} | {name: n for n, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# A schedule such as 30 February never comes; nobody plans further ahead than this.
_HORIZON_YEARS = 5


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule that can be asked for its next time."""

    fields: tuple[frozenset[int], ...]
    any_day: tuple[bool, bool]
    zone: tzinfo
    every: timedelta | None = None

    def after(self, moment: datetime) -> datetime | None:
        """Return the first time strictly after *moment*; None when there is none for years."""
        if self.every is not None:
            return (moment + self.every).replace(microsecond=0)
        local = moment.astimezone(self.zone).replace(second=0, microsecond=0, tzinfo=None)
        limit = local.replace(year=local.year + _HORIZON_YEARS, day=1)
        local += timedelta(minutes=1)
        while local < limit:
            following = self._advanced(local)
            if following is None:
                found = local.replace(tzinfo=self.zone).astimezone(UTC)
                if found > moment:
                    return found
                following = local + timedelta(minutes=1)
            local = following
        return None

    def _advanced(self, local: datetime) -> datetime | None:
        """Return an earliest later candidate when *local* does not fit; None when it does."""
        minutes, hours, _, months, _ = self.fields
        if local.month not in months:
            first = local.replace(day=1, hour=0, minute=0)
            return (first + timedelta(days=32)).replace(day=1)
        if not self._day_fits(local):
            return local.replace(hour=0, minute=0) + timedelta(days=1)
        if local.hour not in hours:
            return local.replace(minute=0) + timedelta(hours=1)
        if local.minute not in minutes:
            return local + timedelta(minutes=1)
        return None

    def _day_fits(self, local: datetime) -> bool:
        in_month = local.day in self.fields[2]
        in_week = local.isoweekday() % 7 in self.fields[4]
        if any(self.any_day):
            return in_month and in_week
        return in_month or in_week


def parse_schedule(text: str, zone_name: str = "") -> Schedule:
    """Return the schedule *text* describes; raises ``ScheduleError`` when it describes none."""
    check_schedule(text)
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, _, text = text.partition(" ")
        zone_name, text = prefix.partition("=")[2], text.strip()
    zone = _zone(zone_name)
    if text.startswith("@every "):
        seconds = parse_duration(text.removeprefix("@every ")) // 1_000_000_000
        return Schedule((), (True, True), zone, timedelta(seconds=max(1, seconds)))
    fields = _DESCRIPTORS.get(text, text).split()
    allowed = tuple(_values(f, *bounds) for f, bounds in zip(fields, _BOUNDS, strict=True))
    return Schedule(allowed, (_free(fields[2]), _free(fields[4])), zone)


def _zone(name: str) -> tzinfo:
    if not name or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(f"unknown time zone {name}") from error


def _free(field: str) -> bool:
    return any(part.split("/")[0] in ("*", "?") for part in field.split(","))


def _values(field: str, minimum: int, maximum: int) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, field.split(",")):
        span, _, step = part.partition("/")
        low, high = _span(span, minimum, maximum)
        if step and "-" not in span:
            high = maximum
        found.update(range(low, high + 1, int(step or 1)))
    return frozenset(found)


def _span(span: str, minimum: int, maximum: int) -> tuple[int, int]:
    if span in ("*", "?"):
        return minimum, maximum
    low, separator, high = span.partition("-")
    first = _number(low)
    return first, _number(high) if separator else first


def _number(text: str) -> int:
    return _NAMES[text.lower()] if text.lower() in _NAMES else int(text)


def missed_times(
    schedule: Schedule, since: datetime, now: datetime, maximum: int = 101
) -> list[datetime]:
    """Return the times after *since* and not after *now*, oldest first, *maximum* at most."""
    found: list[datetime] = []
    moment = since
    while len(found) < maximum:
        following = schedule.after(moment)
        if following is None or following > now:
            break
        found.append(following)
        moment = following
    return found
