"""Time as a dependency.

Nothing else in skerry reads a clock. Code that needs time takes a ``Clock``; tests and the
simulation hand in one they control, so an hour of retries takes no time at all.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall time, elapsed time and waiting."""

    def now(self) -> datetime:
        """Return the current time, always aware and in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean anything."""

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking others."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    # Asked several times by every request.
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LoopClock:
    """Wall time derived from the running event loop's time.

    Under a virtual-time loop (tests, simulation) wall time then moves with the loop, so lease
    expiry and time stamps stay consistent with timers.
    """

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
