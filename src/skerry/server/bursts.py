"""Small writes of many clients, taken in by bursts.

Each of ten thousand clients that writes twice a minute picks a moment of its own. Every write is
then a commit of its own, and an event that goes alone along every watch that sees it: a record of
TLS, a call of the system, a turn of a process. What comes within a tenth of a second is let in at
once, shares commit and messages, and whoever reads them can answer in one go, too.

One that comes alone does not wait: it opens the door behind it only after a while, for those who
come meanwhile. They are let in a few at a turn of the loop, so that nobody else waits for a crowd.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable

from skerry.server.lanes import READY

# Three hundred writes a second are then some thirty at once; nobody misses the time.
_SECONDS = 0.1
# A few milliseconds of the loop, and one commit.
_AT_A_TURN = 16


class Bursts:
    """A door that opens once in a while."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        # Whether somebody has passed lately.
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def join(self) -> Awaitable[None]:
        """Return what is over when the next burst begins; at once, if none was lately."""
        loop = asyncio.get_running_loop()
        if not self._closed:
            self._closed = True
            loop.call_later(_SECONDS, self._open)
            return READY
        waiter = loop.create_future()
        self._waiting.append(waiter)
        return waiter

    def _open(self) -> None:
        if not self._waiting:
            self._closed = False
            return
        for _ in range(min(_AT_A_TURN, len(self._waiting))):
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
        loop = asyncio.get_running_loop()
        if self._waiting:
            loop.call_soon(self._open)
        else:
            loop.call_later(_SECONDS, self._open)
