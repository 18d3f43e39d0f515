"""Events are kept for a while only."""

from __future__ import annotations

from datetime import timedelta

from skerry.api.keys import type_prefix
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.timestamps import parse_rfc3339
from skerry.server.codec import decode
from skerry.store.base import Conflict, Entry, Store, Write

_PREFIX = type_prefix("", "events")
_PAGE = 1000
# An hour is kept; looking every few minutes makes little difference to anybody.
_INTERVAL_SECONDS = 300.0

log = Logger("expiry")


class EventExpiry:
    """Deletes Events that have not been written for *lifetime*.

    An Event's age counts from its last write, as a lease in etcd would: a repeated one stays.
    """

    def __init__(self, store: Store, clock: Clock, lifetime: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._lifetime = lifetime

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await self._clock.sleep(_INTERVAL_SECONDS)
            removed = await self.sweep()
            if removed:
                log.info("expired events removed", v=2, count=removed)

    async def sweep(self) -> int:
        """Remove what is too old now; return how many that was."""
        after, removed = "", 0
        while True:
            page = await self._store.range(_PREFIX, after=after, limit=_PAGE)
            old = [entry for entry in page.entries if self._expired(entry)]
            for entry in old:
                try:
                    await self._store.commit([Write(entry.key, None, expected=entry.revision)])
                    removed += 1
                except Conflict:
                    continue
            if not page.more:
                return removed
            after = page.entries[-1].key

    def _expired(self, entry: Entry) -> bool:
        event = decode(entry.value, entry.revision)
        series = event.get("series") or {}
        moments = [
            series.get("lastObservedTime"),
            event.get("lastTimestamp"),
            event.get("eventTime"),
            event["metadata"].get("creationTimestamp"),
        ]
        latest = max(parse_rfc3339(text) for text in moments if text)
        return self._clock.now() - latest > self._lifetime
