"""Which servers of one store are taken for live, and what the others know of their keys."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from skerry.kit.clock import LoopClock
from skerry.logic.machinery.key_rotation import SERVERS_PREFIX, ServerRecord
from skerry.server.security.live_servers import LIVE_SECONDS, RENEW_SECONDS, LiveServers
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.memory import MemoryStore

pytestmark = pytest.mark.looptime


class Server:
    """One server over a shared store."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self.keys = {"a": "1"}
        self.name = name
        self.live = LiveServers(store, LoopClock(), name, self._own)
        self.dispatcher = Dispatcher(store)

    def _own(self, beat: int) -> ServerRecord:
        return ServerRecord(self.name, {"encryption": dict(self.keys)}, {"encryption": "a"}, beat)

    def names(self) -> list[str]:
        return sorted(record.name for record in self.live.records())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        await self.dispatcher.start()
        await self.live.follow(self.dispatcher)
        async with asyncio.TaskGroup() as tasks:
            dispatching = tasks.create_task(self.dispatcher.run())
            renewing = tasks.create_task(self.live.run())
            try:
                yield renewing
            finally:
                renewing.cancel()
                dispatching.cancel()


async def test_servers_know_of_each_other_and_of_a_key_as_soon_as_one_has_it() -> None:
    store = MemoryStore("shared")
    one, two = Server(store, "one"), Server(store, "two")
    async with one.running(), two.running():
        await asyncio.sleep(1)
        assert one.names() == two.names() == ["one", "two"]
        two.keys["b"] = "2"
        two.live.changed()
        await asyncio.sleep(0.1)
        (other,) = [record for record in one.live.records() if record.name == "two"]
        assert other.known == {"encryption": {"a": "1", "b": "2"}}


async def test_a_server_that_ends_is_gone_at_once() -> None:
    store = MemoryStore("shared")
    one, two = Server(store, "one"), Server(store, "two")
    async with one.running():
        async with two.running():
            await asyncio.sleep(1)
            assert one.names() == ["one", "two"]
        await asyncio.sleep(0.1)
        assert one.names() == ["one"]
        assert await store.count(SERVERS_PREFIX) == 1


async def test_a_server_that_dies_is_waited_for_and_then_forgotten() -> None:
    store = MemoryStore("shared")
    one, two = Server(store, "one"), Server(store, "two")
    await two.live.renew()
    async with one.running():
        await asyncio.sleep(LIVE_SECONDS - 1)
        assert one.names() == ["one", "two"]
        await asyncio.sleep(2)
        assert one.names() == ["one"]
        await asyncio.sleep(LIVE_SECONDS + 2 * RENEW_SECONDS)
        assert await store.count(SERVERS_PREFIX) == 1


async def test_a_server_that_renews_stays_live_however_long() -> None:
    store = MemoryStore("shared")
    one, two = Server(store, "one"), Server(store, "two")
    async with one.running(), two.running():
        await asyncio.sleep(100 * LIVE_SECONDS)
        assert one.names() == two.names() == ["one", "two"]
