"""Background tasks of a server, restarted when the store was unavailable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.store.base import Unavailable

log = Logger("server")

# Soon enough that nobody notices, seldom enough not to be in the way of a store that recovers.
_PAUSE_SECONDS = 1.0


async def restart_on_unavailable(
    name: str, run: Callable[[], Awaitable[None]], clock: Clock
) -> None:
    """Run a chore for ever, from its beginning again whenever the store could not be reached.

    Chores look at everything when they begin, so nothing is missed.
    """
    while True:
        try:
            await run()
        except Unavailable as error:
            log.warning("a chore waits for the store", chore=name, error=error)
            await clock.sleep(_PAUSE_SECONDS)
        else:
            return
