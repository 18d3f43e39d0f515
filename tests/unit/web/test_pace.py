"""Tabs are notified less often while the loop is late for other work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from skerry.web.pace import LATE_SECONDS, MAX_SECONDS, USUAL_SECONDS, Pace


@dataclass
class LateClock:
    """A clock on which each wait takes longer by a given time; then somebody stops it."""

    lateness: list[float]
    at: float = 0.0
    seen: list[float] = field(default_factory=list)
    pace: Pace | None = None

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        assert self.pace is not None
        self.seen.append(self.pace.seconds)
        if not self.lateness:
            raise asyncio.CancelledError
        self.at += seconds + self.lateness.pop(0)


async def test_the_pace_falls_when_the_loop_is_late_and_comes_back() -> None:
    clock = LateClock([0.01, 0.06, 0.2, 0.0])
    clock.pace = Pace(clock)
    with pytest.raises(asyncio.CancelledError):
        await clock.pace.run()
    usual, late = USUAL_SECONDS, LATE_SECONDS
    assert clock.seen == [usual, usual, late, late, usual]


def test_all_tabs_together_take_a_quarter_of_a_processor() -> None:
    pace = Pace(LateClock([]))
    pace.tabs = 1
    assert pace.pause(0.01) == 0
    pace.tabs = 100
    # Each turn of ten milliseconds, a hundred such in four seconds.
    assert pace.pause(0.01) == pytest.approx(4.0 - USUAL_SECONDS)
    assert pace.pause(0.0) == 0
    assert pace.pause(10.0) == MAX_SECONDS
