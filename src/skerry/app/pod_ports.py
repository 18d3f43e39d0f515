"""Ports of a pod at an edge, forwarded to this machine: SPDY, as kubectl speaks it.

All connections of one session share it. SPDY as Kubernetes uses it has no flow control of its own,
so one that takes nothing makes the others of this session wait, as with kubectl; not the tunnel.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from skerry.app.edge_pods import EdgePods
from skerry.runtime.transport import TransportError, UpgradedLine
from skerry.wire.spdy import Asked, Event, Finished, Received, Spdy, SpdyError

_SPDY: Final = "SPDY/3.1"
_HEADERS: Final = {"x-stream-protocol-version": "portforward.k8s.io"}
_PIECE_BYTES: Final = 16 << 10
_WAITING_PIECES: Final = 64


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A port of the pod, and the one it is reached by here; 0 takes any that is free."""

    local: int
    remote: int


@dataclass(slots=True)
class _Stream:
    """What came on a stream and was not taken yet; empty bytes end it."""

    pieces: asyncio.Queue[bytes] = field(
        default_factory=lambda: asyncio.Queue(maxsize=_WAITING_PIECES)
    )


async def forward(
    pods: EdgePods,
    pod: str,
    address: str,
    ports: Sequence[Forwarded],
    announce: Callable[[str], None],
) -> None:
    """Forward *ports* until the session ends, which is an error; says where they are."""
    try:
        async with pods.upgraded(pod, "portforward", (), _SPDY, _HEADERS) as line:
            session = _Session(line, announce)
            async with _listening(session, address, ports, announce):
                await session.run()
    except (TransportError, SpdyError) as error:
        lost = TransportError(str(error))
        await pods.explain_loss(pod, lost)
        raise lost from error


@asynccontextmanager
async def _listening(
    session: _Session, address: str, ports: Sequence[Forwarded], announce: Callable[[str], None]
) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for port in ports:
            accept = session.accepting(port.remote)
            try:
                server = await asyncio.start_server(accept, address, port.local)
            except OSError as error:
                raise TransportError(f"port {port.local}: {error.strerror or error}") from error
            stack.callback(server.close)
            local = server.sockets[0].getsockname()[1]
            announce(f"Forwarding from {address}:{local} -> {port.remote}")
        yield


class _Session:
    """The streams of one session."""

    def __init__(self, line: UpgradedLine, report: Callable[[str], None]) -> None:
        self._line = line
        self._report = report
        self._spdy = Spdy()
        self._streams: dict[int, _Stream] = {}
        # Clients open odd streams.
        self._numbers = itertools.count(1, 2)
        self._requests = itertools.count()

    async def run(self) -> None:
        """Take what comes until there is no more; always raises why."""
        while data := await self._line.read():
            for event in self._spdy.receive(data):
                await self._take(event)
        raise TransportError("the connection to the pod has ended")

    async def _take(self, event: Event) -> None:
        if isinstance(event, Asked):
            self._line.write(event.reply)
        elif isinstance(event, Received | Finished):
            stream = self._streams.get(event.stream)
            if stream is not None:
                await stream.pieces.put(event.data if isinstance(event, Received) else b"")

    def accepting(
        self, port: int
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        """Return what forwards a connection to *port* of the pod."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            request = str(next(self._requests))
            about = {"port": str(port), "requestid": request}
            failing, data = next(self._numbers), next(self._numbers)
            opened = self._spdy.opened(failing, {"streamtype": "error", **about}, last=True)
            self._line.write(opened + self._spdy.opened(data, {"streamtype": "data", **about}))
            self._streams[failing], self._streams[data] = _Stream(), _Stream()
            try:
                with contextlib.suppress(OSError):
                    await self._carried(reader, writer, data, failing)
            finally:
                writer.close()
                for number in (failing, data):
                    del self._streams[number]
                self._line.write(self._spdy.reset(data))

        return accept

    async def _carried(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: int, failing: int
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            up = tasks.create_task(self._sent(reader, data))
            failures = tasks.create_task(self._reported(failing))
            pieces = self._streams[data].pieces
            while piece := await pieces.get():
                writer.write(piece)
                await writer.drain()
            up.cancel()
            await asyncio.wait((failures,), timeout=0.2)
            failures.cancel()

    async def _sent(self, reader: asyncio.StreamReader, data: int) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(_PIECE_BYTES):
                self._line.write(self._spdy.sent(data, piece))
                await self._line.drain()
            self._line.write(self._spdy.sent(data, b"", last=True))

    async def _reported(self, failing: int) -> None:
        """Say what went wrong at the pod with a connection, if anything did."""
        text = b""
        while piece := await self._streams[failing].pieces.get():
            text += piece
        if text:
            self._report(text.decode(errors="replace"))
