"""How often tabs are notified: four times a second, less often where that would take too much.

The console shares its loop with the hub. A loop that is late has more to do than it can, and what
people look at is the first thing that may wait. However many tabs there are and whatever they look
at, all of them together have a quarter of a processor, and each the same part of that: who opens
very much is sent it seldom, and others are not kept waiting for it.
"""

from __future__ import annotations

from skerry.kit.clock import Clock

USUAL_SECONDS = 0.25
LATE_SECONDS = 1.0
# As late as a person would notice in the answers of the hub.
_LATE_BY = 0.05
_LOOK_SECONDS = 0.5
# What all tabs together may take of a processor.
_SHARE = 0.25
MAX_SECONDS = 60.0


class Pace:
    """The pause between two turns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.seconds = USUAL_SECONDS
        self.tabs = 0

    def pause(self, spent: float) -> float:
        """Return how long a tab waits after a turn that took it *spent* seconds of the loop.

        Beside the pause that everybody has.
        """
        return min(MAX_SECONDS, max(0.0, spent * self.tabs / _SHARE - self.seconds))

    async def run(self) -> None:
        """Look again and again how late the loop is, until cancelled."""
        while True:
            began = self._clock.monotonic()
            await self._clock.sleep(_LOOK_SECONDS)
            late = self._clock.monotonic() - began - _LOOK_SECONDS
            self.seconds = LATE_SECONDS if late > _LATE_BY else USUAL_SECONDS
