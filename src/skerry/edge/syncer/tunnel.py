"""The edge's end of its tunnel: dialled out, and only where the edge's owner asked for one.

The hub opens a stream for every session that somebody has there: a log, a command, a forwarded
port. What it asks for is checked anew and then asked of the edge cluster with the syncer's own
credentials there, which bound it a second time. Bytes are passed on as they are.

So there are three who can refuse: the hub, which knows who asks; ``read_opening`` here, which lets
nothing through but pods and what runs in them; and the edge's RBAC. A hub that was taken over gets
as far as the second and the third allow, and no credential of anybody travels either way.

The tunnel runs beside the session and shares nothing with it. It is lost with its connection, and
with it every session in it: nothing is resumed, as a terminal has nothing to resume. A session that
nobody reads makes its sender wait by its window (``wire.tunnel``) and delays no other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.logic.machinery.edges.tunnel import (
    Opening,
    TunnelRequestError,
    answer_of,
    read_opening,
)
from skerry.runtime.backoff import Backoff
from skerry.runtime.http import HttpTransport, Upgraded
from skerry.runtime.transport import TransportError
from skerry.wire.tunnel import StreamReset, Tunnel, TunnelStream

# The hub asks every half minute whether we are there; a hub that is silent for longer is gone.
_SILENT_SECONDS: Final = 100.0
# A hub that was away is dialled again soon; one that offers no tunnel every few minutes.
_BACKOFF: Final = Backoff(min_seconds=1.0, max_seconds=120.0, jitter=0.5)
_SWITCHING: Final = 101

Dial = Callable[[], AbstractAsyncContextManager[Upgraded]]

_log = Logger("syncer-tunnel")


class EdgeTunnel:
    """Keeps one tunnel to the hub, and answers what comes through it."""

    def __init__(
        self,
        dial: Dial,
        edge: HttpTransport,
        *,
        clock: Clock,
        ids: IdSource,
        metrics: SyncerMetrics,
    ) -> None:
        """*dial* offers a tunnel to the hub; *edge* is the way to the edge cluster."""
        self._dial = dial
        self._edge = edge
        self._clock = clock
        self._ids = ids
        self._sessions = metrics.tunnel_sessions
        self._connected = metrics.tunnel_connected

    async def run(self) -> None:
        """Keep the tunnel up until cancelled.

        Failures are counted since the last tunnel that was opened, so one that lasted an hour is
        dialled again within seconds. A hub that offers none answers, too, and that counts as one.
        """
        failures = 0
        while True:
            try:
                async with self._dial() as line:
                    if line.status == _SWITCHING:
                        failures = 0
                        _log.info("tunnel open")
                        why = await self._serve(line)
                    else:
                        why = f"the hub offers none (status {line.status})"
            except TransportError as error:
                why = str(error)
            failures += 1
            delay = _BACKOFF.seconds(failures, self._ids)
            _log.info("no tunnel", cause=why, retry_seconds=round(delay, 1))
            await self._clock.sleep(delay)

    async def _serve(self, line: Upgraded) -> str:
        """Answer what comes through *line* until it ends; return why it did."""
        async with asyncio.TaskGroup() as tasks:

            def opened(stream: TunnelStream) -> None:
                task = tasks.create_task(self._session(stream))
                stream.over = task.cancel

            tunnel = Tunnel(line, asyncio.Event, opened)
            self._connected.set(1)
            try:
                return await _heard(tunnel, line)
            finally:
                self._connected.set(0)
                tunnel.lose("the tunnel has ended")

    async def _session(self, stream: TunnelStream) -> None:
        """Answer one stream; its end, whoever wants it, cancels this task."""
        try:
            opening, wanted = read_opening(stream.opening)
            self._sessions.labels(wanted.action).inc()
            if opening.upgrade:
                await self._upgraded(stream, opening)
            else:
                await self._answered(stream, opening)
        except (TunnelRequestError, TransportError) as error:
            stream.reset(f"the edge's cluster: {error}")
        except StreamReset:
            pass

    async def _answered(self, stream: TunnelStream, opening: Opening) -> None:
        """Pass on a plain answer, such as a log, which may be followed for hours."""
        async with self._edge.stream(
            opening.method, opening.path, opening.query, opening.headers
        ) as answer:
            stream.answer(answer_of(answer.status, answer.headers))
            async for chunk in answer:
                await stream.write(chunk)
        stream.end()
        await _ended(stream)

    async def _upgraded(self, stream: TunnelStream, opening: Opening) -> None:
        """Pass on a connection that is handed over, in both directions until the edge ends it.

        What the edge cluster refuses is an answer like any other, head and body.
        """
        async with self._edge.upgraded(
            opening.upgrade, opening.path, opening.query, opening.headers, opening.method
        ) as line:
            stream.answer(answer_of(line.status, line.headers))
            if line.status != _SWITCHING:
                await stream.write(await line.refusal())
            else:
                async with asyncio.TaskGroup() as tasks:
                    up = tasks.create_task(_to_edge(stream, line))
                    while piece := await line.read():
                        await stream.write(piece)
                    up.cancel()
        stream.end()
        await _ended(stream)


async def _heard(tunnel: Tunnel, line: Upgraded) -> str:
    """Take what the hub sends until there is no more, or nothing for too long; return why."""

    async def read() -> bytes:
        async with asyncio.timeout(_SILENT_SECONDS):
            return await line.read()

    return await tunnel.hear(read, "the hub")


async def _to_edge(stream: TunnelStream, line: Upgraded) -> None:
    """Pass on what the hub sends; whoever is there has left when it sends no more."""
    with contextlib.suppress(OSError, StreamReset):
        while piece := await stream.read():
            line.write(piece)
            await line.drain()


async def _ended(stream: TunnelStream) -> None:
    """Wait until the hub has ended its side, too, and forgets the stream."""
    while await stream.read():
        pass
