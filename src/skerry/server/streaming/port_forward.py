"""``kubectl port-forward`` to a pod.

The client speaks SPDY, in a WebSocket (``SPDY/3.1+portforward.k8s.io``, what kubectl has used since
1.30) or right on the connection. For each connection it accepts it opens two streams, one for data
and one that reports what went wrong, which belong together by a request id.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from skerry.api.errors import BadRequest
from skerry.kit.text import whole_number
from skerry.server.http.message import Answer, Duplex, Request, Sender, Upgrade
from skerry.server.streaming.websocket import WebSocket, WebSocketClosed, as_duplex, handshake
from skerry.wire.spdy import Asked, Event, Finished, Opened, Received, Spdy, SpdyError

_TUNNEL = "SPDY/3.1+portforward.k8s.io"
_PLAIN = "portforward.k8s.io"
_SPDY = "SPDY/3.1"
_CHUNK = 32 * 1024
# What a client may have sent before the pod takes it; the connection waits then.
_WAITING_CHUNKS = 64

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[int], Awaitable[Streams]]
"""Connects to a port of the pod; raises ``OSError``."""


class Pipe(Protocol):
    """Bytes both ways."""

    async def read(self) -> bytes:
        """Return what has arrived; empty at the end."""

    async def write(self, data: bytes) -> None:
        """Send, and wait until there is room for more."""


class _Tunnel:
    """Bytes in the messages of a WebSocket."""

    def __init__(self, duplex: Duplex) -> None:
        self._socket = WebSocket(duplex)

    async def read(self) -> bytes:
        while True:
            try:
                message = await self._socket.receive()
            except WebSocketClosed:
                return b""
            if message:
                return message

    async def write(self, data: bytes) -> None:
        self._socket.send(data)
        await self._socket.drain()


class _Raw:
    """Bytes as they are."""

    def __init__(self, duplex: Duplex) -> None:
        self._duplex = duplex

    async def read(self) -> bytes:
        return await self._duplex.read()

    async def write(self, data: bytes) -> None:
        self._duplex.write(data)
        await self._duplex.drain()


def forwarding(request: Request, dial: Dial) -> Answer:
    """Answer a port-forward request; raises ``BadRequest`` when it speaks neither protocol."""
    if "websocket" in request.headers.get("upgrade", "").lower():
        headers = handshake(request, (_TUNNEL,))
        return Upgrade(_running(_Tunnel, dial), status=101, headers=tuple(headers))
    offered = request.headers.get("x-stream-protocol-version", "")
    if request.headers.get("upgrade", "").upper() != _SPDY or _PLAIN not in offered:
        raise BadRequest("Upgrade request required")
    chosen = (("X-Stream-Protocol-Version", _PLAIN),)
    return Upgrade(_running(_Raw, dial), status=101, headers=chosen, protocol=_SPDY)


def _running(pipe: Callable[[Duplex], Pipe], dial: Dial) -> Callable[[Sender], Awaitable[None]]:
    async def run(duplex: Sender) -> None:
        await Forwarding(pipe(as_duplex(duplex)), dial).run()

    return run


@dataclass(slots=True)
class _Stream:
    """A data stream: what came on it and is not passed on yet; empty bytes end it."""

    port: int
    request: str
    chunks: asyncio.Queue[bytes] = field(
        default_factory=lambda: asyncio.Queue(maxsize=_WAITING_CHUNKS)
    )


class Forwarding:
    """Forwards the streams of one connection until it ends."""

    def __init__(self, pipe: Pipe, dial: Dial) -> None:
        self._pipe = pipe
        self._dial = dial
        self._spdy = Spdy()
        # By request id: the stream that reports what went wrong.
        self._errors: dict[str, int] = {}
        self._streams: dict[int, _Stream] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Forward until the client goes."""
        async with asyncio.TaskGroup() as tasks:
            try:
                while data := await self._pipe.read():
                    for event in self._spdy.receive(data):
                        await self._take(event, tasks)
            except (SpdyError, ConnectionError):
                pass  # whoever breaks the protocol is left, like one who goes
            finally:
                for task in self._tasks.values():
                    task.cancel()

    async def _take(self, event: Event, tasks: asyncio.TaskGroup) -> None:
        match event:
            case Opened():
                await self._open(event, tasks)
            case Received() if event.stream in self._streams:
                await self._streams[event.stream].chunks.put(event.data)
            case Finished() if event.stream in self._streams:
                if event.reset:
                    self._tasks[event.stream].cancel()
                else:
                    await self._streams[event.stream].chunks.put(b"")
            case Asked():
                await self._pipe.write(event.reply)
            case _:
                pass  # of a stream that is over, or of one that only we speak on

    async def _open(self, opened: Opened, tasks: asyncio.TaskGroup) -> None:
        headers, number = opened.headers, opened.stream
        kind, port = headers.get("streamtype", ""), whole_number(headers.get("port", ""))
        if kind not in ("data", "error") or port is None or not 0 < port < 65536:
            await self._pipe.write(self._spdy.reset(number))
            return
        await self._pipe.write(self._spdy.accepted(number))
        request = headers.get("requestid", "")
        if kind == "error":
            self._errors[request] = number
            return
        stream = self._streams[number] = _Stream(port, request)
        self._tasks[number] = tasks.create_task(self._forward(number, stream))

    async def _forward(self, number: int, stream: _Stream) -> None:
        failure = b""
        try:
            reader, writer = await self._dial(stream.port)
        except (OSError, TimeoutError) as error:
            failure = f"error forwarding port {stream.port} to pod: {error}".encode()
        else:
            await self._copy(number, stream, reader, writer)
        finally:
            del self._streams[number], self._tasks[number]
        with contextlib.suppress(ConnectionError):
            await self._pipe.write(self._spdy.sent(number, b"", last=True))
            reason = self._errors.pop(stream.request, None)
            if reason is not None:
                await self._pipe.write(self._spdy.sent(reason, failure, last=True))

    async def _copy(
        self,
        number: int,
        stream: _Stream,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                inward = tasks.create_task(_pass_in(stream, writer))
                with contextlib.suppress(ConnectionError):
                    while data := await reader.read(_CHUNK):
                        await self._pipe.write(self._spdy.sent(number, data))
                # A pod that says no more is not written to any more either, as kubelet has it.
                inward.cancel()
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _pass_in(stream: _Stream, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await stream.chunks.get():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
