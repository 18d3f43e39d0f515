"""Times on the command line: RFC 3339, a time of today, or how long ago."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

import click

from skerry.kit.clock import SystemClock
from skerry.logic.fleet.history.times import NoTime, moment_of


def local_zone() -> tzinfo:
    """Return the zone of whoever asks."""
    return SystemClock().now().astimezone().tzinfo or UTC


class Moment(click.ParamType[datetime]):
    """A time that has a zone; without one, that of whoever asks."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return moment_of(str(value), SystemClock().now().astimezone())
        except NoTime as error:
            self.fail(str(error), param, ctx)
