"""The listening server: accepts connections, keeps their time, drains them at the end."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence

from skerry.kit.clock import Clock, SystemClock
from skerry.kit.log import Logger
from skerry.server.http.accepting import Acceptor, Bodies, Strangers, listening_sockets
from skerry.server.http.encoding import Heads
from skerry.server.http.message import Handler, Peer
from skerry.server.http.protocol import Connection
from skerry.server.http.settings import HttpSettings

log = Logger("http")

# Timeouts are tens of seconds; one pass over the connections per second is exact enough.
_TICK_SECONDS = 1.0


class HttpServer:
    """Serves *handler* on a socket.

    ``start`` binds, ``stop`` drains. Made and used inside one running event loop, preferably
    uvloop's.
    """

    def __init__(
        self, handler: Handler, settings: HttpSettings | None = None, clock: Clock | None = None
    ) -> None:
        self.handler = handler
        self.clock = clock or SystemClock()
        self.settings = settings or HttpSettings()
        self.heads = Heads(self.settings.headers)
        self.loop = asyncio.get_running_loop()
        self.tick = self.loop.time()
        self._connections: set[Connection] = set()
        self._finishing: set[asyncio.Task[None]] = set()
        self.strangers = Strangers(self.settings.stranger_connections)
        self.bodies = Bodies(self.settings.arriving_bytes)
        self._acceptor: Acceptor | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()

    async def start(
        self,
        address: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
        sockets: Sequence[socket.socket] = (),
    ) -> int:
        """Listen, and return the port; 0 asks for any free one.

        *sockets* listen already, perhaps for other processes too, and are used instead.
        """
        sockets = sockets or await listening_sockets(address, port, self.settings.backlog)
        self._acceptor = Acceptor(self, list(sockets), tls, lambda: Connection(self))
        self._acceptor.start()
        self._ticker = self.loop.call_later(_TICK_SECONDS, self._on_tick)
        return int(sockets[0].getsockname()[1])

    async def stop(self, deadline_seconds: float = 30.0) -> None:
        """Accept no more, finish what is being answered, end streams, close.

        What is not over after *deadline_seconds* is cut.
        """
        if self._acceptor is None:
            return
        acceptor, self._acceptor = self._acceptor, None
        await acceptor.close()
        for connection in list(self._connections):
            connection.drain_and_close()
        try:
            async with asyncio.timeout(deadline_seconds):
                await self._all_closed()
        except TimeoutError:
            log.warning("connections cut at the deadline", connections=len(self._connections))
            await self._cut()
        if self._ticker is not None:
            self._ticker.cancel()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def cut(self, chosen: Callable[[Peer], bool]) -> None:
        """Cut the connections whose peer is *chosen*, whatever they are doing."""
        for connection in list(self._connections):
            if chosen(connection.peer):
                connection.abort()

    def opened(self, connection: Connection) -> bool:
        if len(self._connections) >= self.settings.connections:
            return False
        self._connections.add(connection)
        self._empty.clear()
        return True

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if connection.task is not None:
            self._finishing.add(connection.task)
            connection.task.add_done_callback(self._finished)
        self._check_empty()

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._finishing.discard(task)
        self._check_empty()

    def _check_empty(self) -> None:
        if not self._connections and not self._finishing:
            self._empty.set()

    async def _all_closed(self) -> None:
        self._check_empty()
        await self._empty.wait()

    async def _cut(self) -> None:
        for connection in list(self._connections):
            connection.abort()
        for task in list(self._finishing):
            task.cancel()
        await self._all_closed()

    def expire(self, now: float) -> None:
        """End the connections whose present phase has lasted too long at *now*."""
        self.tick = now
        for connection in list(self._connections):
            connection.expire(now)

    def _on_tick(self) -> None:
        self.expire(self.loop.time())
        self._ticker = self.loop.call_later(_TICK_SECONDS, self._on_tick)
