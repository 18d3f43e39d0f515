"""When statuses are reconciled: after the slices, because slices are what others wait for.

A burst of changes, such as a relabelled inventory, touches thousands of placements. Each has a
slice to write, which moves workloads, and a status, which people read. Were both enqueued at once,
half of the writes of a busy hub would be statuses, and most of them would be wrong again before the
burst is over. So the status queue is filled in gusts:

    a placement is reconciled     it is due, and nothing is enqueued yet
    0.2 s later                   more of the burst has come; it is due with them
    no slice is left to write     all that are due are enqueued, each once
    10 s have passed all the same they are enqueued whether or not slices are quiet

The last row is for a hub that is never quiet: a person who looks at a placement sees a status that
is ten seconds old at most. The observer of a status waits in the same way, since slices may have
become busy again between the two.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from skerry.api.refs import ObjectRef
from skerry.kit.clock import Clock
from skerry.runtime.workqueue import WorkQueue

# A little later than the burst, so that a status is written once; and at the latest when a person
# begins to wonder.
AFTER_SECONDS = 0.2
LATEST_SECONDS = 10.0


class StatusPace:
    """Fills the queue of statuses while the queue of slices is idle."""

    def __init__(
        self, slices: WorkQueue[ObjectRef], statuses: WorkQueue[ObjectRef], clock: Clock
    ) -> None:
        self._slices = slices
        self._statuses = statuses
        self._clock = clock
        # Placements whose status is to be reconciled, in order.
        self._due: dict[ObjectRef, None] = {}
        self._any = asyncio.Event()

    def enqueue(self, ref: ObjectRef) -> None:
        """Have the status of a placement reconciled, soon."""
        self._due[ref] = None
        self._any.set()

    async def run(self) -> None:
        """Enqueue what is due while the slices are quiet, or when they never are."""
        while True:
            await self._any.wait()
            await self._clock.sleep(AFTER_SECONDS)
            await self.wait_quiet()
            self._any.clear()
            for ref in self._due:
                self._statuses.add(ref)
            self._due.clear()

    async def wait_quiet(self) -> None:
        """Wait until no slice is to be written, but not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LATEST_SECONDS):
                await self._slices.wait_idle()
