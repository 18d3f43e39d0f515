"""Clocks: the machine's, and one that moves with the event loop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from skerry.kit.clock import LoopClock, SystemClock
from tests.kit.sim.loop import virtual


def test_the_machines_clock_is_in_utc_and_monotonic_time_never_goes_back() -> None:
    clock = SystemClock()
    assert clock.now().tzinfo is UTC
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)
    assert clock.monotonic() <= clock.monotonic()


@virtual
async def test_wall_time_moves_with_the_loop() -> None:
    clock = LoopClock(datetime(2031, 5, 1, tzinfo=UTC))
    before, started = clock.now(), clock.monotonic()
    await clock.sleep(90)
    assert clock.now() - before == timedelta(seconds=90)
    assert clock.monotonic() - started == pytest.approx(90)
