"""Durations and ages in Kubernetes' short words: ``2m30s``, ``5d4h``, ``3y12d``.

The precision falls as the duration grows, so that a text stays at two or three figures. Both
forms forgive a clock that is up to two seconds ahead; anything further in the future is
``<invalid>``, because an age below zero means that somebody's clock is wrong.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAYS_PER_YEAR = 365

UNKNOWN = "<unknown>"
INVALID = "<invalid>"


def human_duration(duration: timedelta) -> str:
    """Return *duration* with up to two units, the second dropped once it says little."""
    seconds = _whole_seconds(duration)
    if seconds < -1:
        return INVALID
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _pair(seconds // _MINUTE, "m", seconds % _MINUTE, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _pair(seconds // _HOUR, "h", seconds // _MINUTE % 60, "m")
    return _in_hours(seconds // _HOUR)


def short_human_duration(duration: timedelta) -> str:
    """Return *duration* in the largest unit that is not zero, rounded down."""
    seconds = _whole_seconds(duration)
    if seconds < -1:
        return INVALID
    if seconds < _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m"
    hours = seconds // _HOUR
    if hours < 24:
        return f"{hours}h"
    if hours < 24 * _DAYS_PER_YEAR:
        return f"{hours // 24}d"
    return f"{hours // 24 // _DAYS_PER_YEAR}y"


def parse_time(text: object) -> datetime | None:
    """Return the moment an RFC 3339 *text* names; None for anything else, absent values too.

    In UTC, which one at either end of the calendar may have no time in: then it is none.
    """
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (OverflowError, ValueError):
        return None


def since(text: object, now: datetime) -> str:
    """Return how long ago *text* was; ``<unknown>`` when it names no moment."""
    moment = parse_time(text)
    return UNKNOWN if moment is None else human_duration(now - moment)


def _in_hours(hours: int) -> str:
    days = hours // 24
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 2 * _DAYS_PER_YEAR:
        return f"{days}d"
    if days < 8 * _DAYS_PER_YEAR:
        return _pair(days // _DAYS_PER_YEAR, "y", days % _DAYS_PER_YEAR, "d")
    return f"{days // _DAYS_PER_YEAR}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def _whole_seconds(duration: timedelta) -> int:
    """Cut towards zero as Go does: half a second in the future is still now."""
    return int(duration.total_seconds())
