"""Which servers use a store now, and which keys each of them has.

A rotation must not use a key that a live server lacks. Each server of a shared store keeps a small
record there and renews it; the others take it for live while they see it change, by their own
clocks, so that a wrong clock anywhere misleads nobody. A server that is alone writes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import msgspec

from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.logic.machinery.key_rotation import SERVERS_PREFIX, ServerRecord, server_key
from skerry.server.change import Change
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Store, StoreError, Write

log = Logger("servers")

# One small write in ten seconds is nothing to etcd.
RENEW_SECONDS = 10.0
# Four renewals missed: longer than a change of etcd's leader, shorter than patience.
LIVE_SECONDS = 40.0


class LiveServers:
    """The servers of one store, this one among them."""

    def __init__(
        self, store: Store, clock: Clock, identity: str, own: Callable[[int], ServerRecord]
    ) -> None:
        """*own* returns this server's record as of now, given the number of the renewal."""
        self._store = store
        self._clock = clock
        self._key = server_key(identity)
        self._own = own
        self._beat = 0
        self._others: dict[str, tuple[ServerRecord, float]] = {}
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Tell the others soon: this server has or uses other keys than before."""
        self._changed.set()

    def records(self) -> list[ServerRecord]:
        """Return the live servers; this one first, as it is now."""
        horizon = self._clock.monotonic() - LIVE_SECONDS
        live = [record for record, seen in self._others.values() if seen >= horizon]
        return [self._own(self._beat), *live]

    async def follow(self, dispatcher: Dispatcher) -> None:
        """Learn of the others, now and from now on; before the dispatcher runs."""
        for entry in (await self._store.range(SERVERS_PREFIX)).entries:
            self._take(entry.key, entry.value)
        dispatcher.observe(SERVERS_PREFIX, self._observed, self._others.clear)

    async def run(self) -> None:
        """Renew this server's record until cancelled; then remove it."""
        try:
            while True:
                await self.renew()
                await self._forget_dead()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RENEW_SECONDS):
                        await self._changed.wait()
                self._changed.clear()
        finally:
            with contextlib.suppress(StoreError):
                await self._store.commit([Write(self._key, None)])

    async def renew(self) -> None:
        """Tell the others what this server has and uses."""
        self._beat += 1
        await self._store.commit([Write(self._key, msgspec.json.encode(self._own(self._beat)))])

    async def _forget_dead(self) -> None:
        """Remove the records of servers that ended without removing their own."""
        horizon = self._clock.monotonic() - 2 * LIVE_SECONDS
        for key in [key for key, (_, seen) in self._others.items() if seen < horizon]:
            await self._store.commit([Write(key, None)])

    def _observed(self, change: Change) -> None:
        self._take(change.event.key, change.event.value)

    def _take(self, key: str, value: bytes | None) -> None:
        if key == self._key:
            return
        if value is None:
            self._others.pop(key, None)
            return
        try:
            record = msgspec.json.decode(value, type=ServerRecord)
        except msgspec.DecodeError as error:
            log.warning("the record of a server cannot be read", key=key, error=error)
            return
        self._others[key] = (record, self._clock.monotonic())
