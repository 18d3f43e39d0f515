"""Cron schedules as CronJobs write them: five fields, or a descriptor such as ``@hourly``.

The grammar and the complaints are those of the parser the Kubernetes controller uses, so what is
accepted here runs there: ``*`` and ``?`` are one, names are allowed for months and week days,
``N/step`` means from N to the end, and Sunday is 0 only.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

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
_DESCRIPTORS = frozenset(
    ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
)
_EVERY = "@every "
# A list of every minute, hour, day and month is half as long. Each time a CronJob is reconciled
# its schedule is read again.
MAX_SCHEDULE_LENGTH: Final = 1024
_NUMBER = re.compile(r"[-+]?[0-9]+")


def check_schedule(text: str) -> None:
    """Raise ``ScheduleError`` unless *text* is a schedule."""
    if not text:
        raise ScheduleError("empty spec string")
    if len(text) > MAX_SCHEDULE_LENGTH:
        raise ScheduleError(f"must be no more than {MAX_SCHEDULE_LENGTH} characters")
    if text.startswith(("TZ=", "CRON_TZ=")):
        _, separator, text = text.partition(" ")
        if not separator:
            raise ScheduleError("provided bad location: no schedule follows it")
        text = text.strip()
    if text.startswith("@"):
        _check_descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        found = " ".join(fields)
        raise ScheduleError(
            f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{found}]"
        )
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for part in filter(None, field.split(",")):
            _check_range(part, bounds)


def _check_descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith(_EVERY):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    try:
        parse_duration(text.removeprefix(_EVERY))
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from error


def _check_range(part: str, bounds: _Bounds) -> None:
    """Check one ``low-high/step`` of a field."""
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
