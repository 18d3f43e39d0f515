"""Durations on the command line, written as Go writes them: ``24h``, ``1m30s``, ``500ms``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(\d+(?:\.\d+)?)(h|ms|m|s)"
_PARTS = re.compile(_PART)
_WHOLE = re.compile(f"(?:{_PART})+")


class DurationRange(click.ParamType[timedelta]):
    """A duration between two others."""

    name = "duration"

    def __init__(self, minimum: timedelta, maximum: timedelta) -> None:
        self._min = minimum
        self._max = maximum

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = str(value)
        if not _WHOLE.fullmatch(text):
            self.fail(f"{text!r} is no duration: want one such as 24h or 1m30s", param, ctx)
        seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PARTS.findall(text))
        if not self._min.total_seconds() <= seconds <= self._max.total_seconds():
            self.fail(
                f"{text} is not between {shown(self._min)} and {shown(self._max)}", param, ctx
            )
        return timedelta(seconds=seconds)


def shown(duration: timedelta) -> str:
    """Return a duration as it would be written."""
    hours, rest = divmod(int(duration.total_seconds()), 3600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
