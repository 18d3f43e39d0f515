"""How often tabs are notified: four times a second, once where the loop is late for other work.

The console shares its loop with the hub. A loop that is late has more to do than it can, and what
people look at is the first thing that may wait.
"""

from __future__ import annotations

from skerry.kit.clock import Clock

USUAL_SECONDS = 0.25
LATE_SECONDS = 1.0
# As late as a person would notice in the answers of the hub.
_LATE_BY = 0.05
_LOOK_SECONDS = 0.5


class Pace:
    """The pause between two turns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.seconds = USUAL_SECONDS

    async def run(self) -> None:
        """Look again and again how late the loop is, until cancelled."""
        while True:
            began = self._clock.monotonic()
            await self._clock.sleep(_LOOK_SECONDS)
            late = self._clock.monotonic() - began - _LOOK_SECONDS
            self.seconds = LATE_SECONDS if late > _LATE_BY else USUAL_SECONDS
