"""The times that people write: ``2026-09-01T14:05:00Z``, ``14:05`` or ``2h``.

A time of day is one of today in the zone of whoever asks; a duration is that long ago.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from skerry.kit.timestamps import parse_rfc3339

_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_PART = r"([0-9]{1,9})(d|h|m|s)"
_PARTS = re.compile(_PART)
_DURATION = re.compile(f"(?:{_PART})+")
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


class NoTime(ValueError):
    """Why a text is no time, in a sentence."""


def moment_of(text: str, now: datetime) -> datetime:
    """Return the time that *text* means to somebody whose clock and zone is *now*."""
    of_day = _OF_DAY.fullmatch(text)
    if of_day is not None:
        hour, minute, second = (int(part or 0) for part in of_day.groups())
        return now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if _DURATION.fullmatch(text) is not None:
        seconds = sum(int(number) * _UNITS[unit] for number, unit in _PARTS.findall(text))
        try:
            return now - timedelta(seconds=seconds)
        except OverflowError as error:
            raise NoTime(f"{text!r} is longer ago than there are dates") from error
    try:
        return parse_rfc3339(text)
    except ValueError as error:
        raise NoTime(
            f"{text!r} is no time: want RFC 3339 (2026-09-01T14:05:00Z), a time of today (14:05) "
            "or how long ago (2h)"
        ) from error
