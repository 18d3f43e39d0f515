"""Durations on the command line, written as Go writes them: ``24h``, ``1m30s``, ``500ms``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from skerry.logic.machinery.durations import DurationError, duration_of, format_duration


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
        try:
            duration = duration_of(text)
        except DurationError:
            self.fail(f"{text!r} is no duration: want one such as 24h or 1m30s", param, ctx)
        if not self._min <= duration <= self._max:
            low, high = format_duration(self._min), format_duration(self._max)
            self.fail(f"{text} is not between {low} and {high}", param, ctx)
        return duration
