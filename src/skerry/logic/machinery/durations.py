"""Durations as Go writes them: ``1h30m``, ``1.5s``, ``-300ms``.

The parser goes through the text once. A regular expression with two repetitions of digits in a
row tries every way to divide them, which once took seconds for a few kilobytes of zeros.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
# Go counts nanoseconds in a signed 64-bit integer: 292 years.
_MAX_NANOSECONDS: Final = (1 << 63) - 1
# As many as that integer has; Go gives up beyond.
_MAX_DIGITS: Final = 19
_DIGITS: Final = "0123456789"
_NUMBER_CHARACTERS: Final = frozenset(_DIGITS + ".")


class DurationError(ValueError):
    """Text that is no duration; the message is Go's."""


def parse_duration(text: str) -> int:
    """Return the nanoseconds *text* stands for; raises DurationError."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0
    if not unsigned:
        raise _invalid(text)
    total, position = 0, 0
    while position < len(unsigned):
        amount, position = _part(unsigned, position, text)
        total += amount
        if total > _MAX_NANOSECONDS:
            raise _invalid(text)
    return -total if text[0] == "-" else total


def duration_of(text: str) -> timedelta:
    """Return the duration *text* stands for, to the microsecond; raises DurationError."""
    return timedelta(microseconds=parse_duration(text) // 1000)


def format_duration(duration: timedelta) -> str:
    """Return a duration of whole seconds as people write it: ``1h30m``, without parts of zero."""
    hours, rest = divmod(int(duration.total_seconds()), 3600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def _part(unsigned: str, start: int, text: str) -> tuple[int, int]:
    """Return the nanoseconds of the number and unit at *start*, and where they end."""
    end = _run_of_digits(unsigned, start)
    whole, fraction = unsigned[start:end], ""
    if unsigned[end : end + 1] == ".":
        start = end + 1
        end = _run_of_digits(unsigned, start)
        fraction = unsigned[start:end]
    if not whole and not fraction:
        raise _invalid(text)
    whole = whole.lstrip("0")
    if len(whole) > _MAX_DIGITS:
        raise _invalid(text)
    unit, end = _unit(unsigned, end, text)
    # Digits beyond those change less than a nanosecond.
    fraction = fraction[:_MAX_DIGITS]
    amount = int(whole or "0") * unit
    if fraction:
        amount += int(fraction) * unit // 10 ** len(fraction)
    return amount, end


def _unit(unsigned: str, start: int, text: str) -> tuple[int, int]:
    end = start
    while end < len(unsigned) and unsigned[end] not in _NUMBER_CHARACTERS:
        end += 1
    name = unsigned[start:end]
    if not name:
        raise DurationError(f'time: missing unit in duration "{text}"')
    if name not in _NANOSECONDS:
        raise DurationError(f'time: unknown unit "{name}" in duration "{text}"')
    return _NANOSECONDS[name], end


def _run_of_digits(text: str, start: int) -> int:
    """Return where the digits that begin at *start* end."""
    end = start
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    return end


def _invalid(text: str) -> DurationError:
    return DurationError(f'time: invalid duration "{text}"')
