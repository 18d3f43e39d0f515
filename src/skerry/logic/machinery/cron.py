"""Cron schedules as CronJobs write them: five fields, or a descriptor such as ``@hourly``.

The grammar and the complaints are those of the parser the Kubernetes controller uses, so what is
accepted here runs there: ``*`` and ``?`` are one, names are allowed for months and week days,
``N/step`` means from N to the end, and Sunday is 0 only.

A day must fit the day of the month *or* of the week when both are restricted, else both, as cron
has always done. Times are found field by field from the largest down, so a schedule years away
costs little.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skerry.logic.machinery.durations import DurationError, parse_duration


class ScheduleError(ValueError):
    """A schedule that cannot be understood."""


class _Bounds(NamedTuple):
    minimum: int
    maximum: int
    names: dict[str, int]


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
# A list of every minute, hour, day and month is half as long. Each time a CronJob is reconciled
# its schedule is read again.
MAX_SCHEDULE_LENGTH: Final = 1024
_NUMBER = re.compile(r"[-+]?[0-9]+")
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


def check_schedule(text: str) -> None:
    """Raise ``ScheduleError`` unless *text* is a schedule; its time zone is not looked up."""
    _parsed(text)


def parse_schedule(text: str, zone_name: str = "") -> Schedule:
    """Return the schedule *text* describes; raises ``ScheduleError`` when it describes none.

    A time zone that the text names counts before *zone_name*.
    """
    parsed = _parsed(text)
    zone = _zone(zone_name if parsed.zone is None else parsed.zone)
    return Schedule(parsed.fields, parsed.any_day, zone, parsed.every)


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


# -- the grammar -----------------------------------------------------------------------------


class _Parsed(NamedTuple):
    """What a text says. ``any_day``: whether day of month, and of week, are unrestricted."""

    zone: str | None
    fields: tuple[frozenset[int], ...] = ()
    any_day: tuple[bool, bool] = (True, True)
    every: timedelta | None = None


def _parsed(text: str) -> _Parsed:
    if not text:
        raise ScheduleError("empty spec string")
    if len(text) > MAX_SCHEDULE_LENGTH:
        raise ScheduleError(f"must be no more than {MAX_SCHEDULE_LENGTH} characters")
    zone = None
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, separator, text = text.partition(" ")
        if not separator:
            raise ScheduleError("provided bad location: no schedule follows it")
        zone, text = prefix.partition("=")[2], text.strip()
    if text.startswith(_EVERY):
        return _Parsed(zone, every=_interval(text))
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    fields = _DESCRIPTORS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        found = " ".join(fields)
        raise ScheduleError(
            f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{found}]"
        )
    allowed = tuple(_values(f, bounds) for f, bounds in zip(fields, _FIELDS, strict=True))
    return _Parsed(zone, allowed, (_is_any(fields[2]), _is_any(fields[4])))


def _interval(text: str) -> timedelta:
    try:
        seconds = parse_duration(text.removeprefix(_EVERY)) // 1_000_000_000
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from error
    return timedelta(seconds=max(1, seconds))


def _zone(name: str) -> tzinfo:
    if not name or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(f"unknown time zone {name}") from error


def _is_any(field: str) -> bool:
    return any(part.split("/")[0].split("-")[0] in ("*", "?") for part in field.split(","))


def _values(field: str, bounds: _Bounds) -> frozenset[int]:
    parts = filter(None, field.split(","))
    return frozenset(number for part in parts for number in _range(part, bounds))


def _range(part: str, bounds: _Bounds) -> range:
    """Return the values of one ``low-high/step`` of a field."""
    span, *steps = part.split("/")
    start, end = _span(part, span, bounds)
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    if steps:
        step = _number(steps[0])
        if "-" not in span:
            end = bounds.maximum
    if start < bounds.minimum:
        raise ScheduleError(
            f"beginning of range ({start}) below minimum ({bounds.minimum}): {part}"
        )
    if end > bounds.maximum:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.maximum}): {part}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {part}")
    return range(start, end + 1, step)


def _span(part: str, span: str, bounds: _Bounds) -> tuple[int, int]:
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        return bounds.minimum, bounds.maximum
    start = _value(ends[0], bounds)
    if len(ends) == 1:
        return start, start
    if len(ends) > 2:
        raise ScheduleError(f"too many hyphens: {part}")
    return start, _value(ends[1], bounds)


def _value(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        detail = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ScheduleError(f"failed to parse int from {text}: {detail}")
    if len(text) > 18:
        detail = f'strconv.Atoi: parsing "{text}": value out of range'
        raise ScheduleError(f"failed to parse int from {text}: {detail}")
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
