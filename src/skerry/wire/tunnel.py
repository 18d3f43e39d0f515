"""Many streams over one connection: the tunnel that a syncer dials and a hub asks through.

A frame is a kind (1 byte), the number of a stream (4), the length of what follows (4), and that.
One side opens streams, the other answers each with a head; then both send data until both have
ended, or one of them resets the stream with a reason.

Every stream has a window in each direction: nobody sends more than the other side has room for,
and room is given back as data is taken. So a stream that nobody reads holds one window and makes
its sender wait, while the others go on. What breaks these rules costs the whole tunnel.

The connection and what waiting is done with are handed in; nothing here knows sockets.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple, Protocol

# Offered and accepted in the head of the request by which a tunnel begins.
PROTOCOL: Final = "skerry-tunnel.v1"

OPEN, HEAD, DATA, END, RESET, WINDOW, PING, PONG = range(1, 9)

# What one side may send of a stream before the other has taken any of it.
WINDOW_BYTES: Final = 256 << 10
# A frame of data keeps the connection to itself no longer than this takes.
DATA_BYTES: Final = 16 << 10
HEAD_BYTES: Final = 64 << 10
REASON_BYTES: Final = 1024
_LIMITS: Final = {
    OPEN: HEAD_BYTES,
    HEAD: HEAD_BYTES,
    DATA: DATA_BYTES,
    END: 0,
    RESET: REASON_BYTES,
    WINDOW: 4,
    PING: 0,
    PONG: 0,
}
_HEADER: Final = struct.Struct(">BII")
_ROOM: Final = struct.Struct(">I")
# Whoever lets this much wait is not sent answers to further questions whether we are there.
_UNSENT_BYTES: Final = 1 << 20


class TunnelError(Exception):
    """The other side broke the rules; the tunnel is of no use any more."""


class StreamReset(Exception):
    """The stream has ended before its time; says why."""


class Frame(NamedTuple):
    """One frame."""

    kind: int
    stream: int
    payload: bytes


class Waiting(Protocol):
    """What ``asyncio.Event`` is."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    async def wait(self) -> object: ...


class Line(Protocol):
    """The connection all streams share."""

    def write(self, chunk: bytes) -> None:
        """Queue *chunk* for sending; never blocks."""

    async def drain(self) -> None:
        """Wait until little enough is queued; raises ConnectionError once the peer is gone."""

    @property
    def queued_bytes(self) -> int:
        """How much waits to be sent."""


def frame(kind: int, stream: int = 0, payload: bytes = b"") -> bytes:
    """Return a frame as bytes."""
    return _HEADER.pack(kind, stream, len(payload)) + payload


class FrameReader:
    """Frames out of bytes as they come; holds at most one that is not whole."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield what has become whole; raises ``TunnelError`` for what is no frame."""
        held = self._held
        held += data
        at = 0
        try:
            while len(held) - at >= _HEADER.size:
                kind, stream, size = _HEADER.unpack_from(held, at)
                limit = _LIMITS.get(kind)
                if limit is None or size > limit:
                    raise TunnelError(f"frame of kind {kind} with {size} bytes: want {limit or 0}")
                end = at + _HEADER.size + size
                if len(held) < end:
                    break
                yield Frame(kind, stream, bytes(held[at + _HEADER.size : end]))
                at = end
        finally:
            del held[:at]


class TunnelStream:
    """One stream. One task reads it, one writes it."""

    def __init__(self, tunnel: Tunnel, number: int, opening: bytes) -> None:
        self._tunnel = tunnel
        self.number = number
        self.opening = opening
        # Called once, when the stream is over for whichever reason.
        self.over: Callable[[], object] = lambda: None
        self._head: bytes | None = None
        self._inbox: deque[bytes] = deque()
        # What may still come, what may still be sent, and what was taken and not given back yet.
        self._room = self._credit = WINDOW_BYTES
        self._taken = 0
        self._ended = self._said_end = False
        self._reason: str | None = None
        self._readable, self._writable = tunnel.new_event(), tunnel.new_event()

    # -- what whoever uses the stream calls -----------------------------------------------------

    async def answered(self) -> bytes:
        """Return the head by which the other side answers."""
        while self._head is None:
            self._check()
            self._readable.clear()
            await self._readable.wait()
        return self._head

    def answer(self, head: bytes) -> None:
        """Answer a stream that the other side has opened."""
        self._tunnel.send(HEAD, self.number, head)

    async def read(self) -> bytes:
        """Return what has come; empty at the end. Raises ``StreamReset``."""
        while not self._inbox:
            self._check()
            if self._ended:
                return b""
            self._readable.clear()
            await self._readable.wait()
        data = self._inbox.popleft()
        self._taken += len(data)
        if self._taken >= WINDOW_BYTES // 2 and not self._ended:
            self._room += self._taken
            self._tunnel.send(WINDOW, self.number, _ROOM.pack(self._taken))
            self._taken = 0
        return data

    async def write(self, data: bytes) -> None:
        """Send *data*, waiting for room for it at the other side. Raises ``StreamReset``."""
        rest = memoryview(data)
        while rest:
            while not self._credit:
                self._check()
                self._writable.clear()
                await self._writable.wait()
            self._check()
            piece = rest[: min(DATA_BYTES, self._credit)]
            self._credit -= len(piece)
            self._tunnel.send(DATA, self.number, bytes(piece))
            rest = rest[len(piece) :]
            await self._tunnel.drain()

    def end(self) -> None:
        """Say that no more will be sent."""
        if self._said_end or self._reason is not None:
            return
        self._said_end = True
        self._tunnel.send(END, self.number)
        self._settle()

    def reset(self, reason: str) -> None:
        """End the stream both ways; harmless when it has ended."""
        if self._reason is None and not (self._ended and self._said_end):
            text = reason.encode()[:REASON_BYTES]
            self._tunnel.send(RESET, self.number, text)
            self.fail(reason)

    # -- what the tunnel calls -------------------------------------------------------------------

    def take(self, kind: int, payload: bytes) -> None:
        """Take a frame of this stream; raises ``TunnelError``."""
        if kind == DATA:
            if self._ended or len(payload) > self._room:
                raise TunnelError(f"stream {self.number}: data for which there is no room")
            self._room -= len(payload)
            if payload:
                self._inbox.append(payload)
        elif kind == HEAD:
            if self._head is not None:
                raise TunnelError(f"stream {self.number}: answered twice")
            self._head = payload
        elif kind == END:
            self._ended = True
            self._settle()
        elif kind == WINDOW:
            (more,) = _ROOM.unpack(payload.rjust(4, b"\0"))
            if self._credit + more > WINDOW_BYTES:
                raise TunnelError(f"stream {self.number}: room for more than was sent")
            self._credit += more
            self._writable.set()
            return
        else:
            self.fail(payload.decode(errors="replace"))
            return
        self._readable.set()

    def fail(self, reason: str) -> None:
        """End the stream; whoever waits for it gets *reason*."""
        if self._reason is None:
            self._reason = reason
            self._inbox.clear()
            self._readable.set()
            self._writable.set()
            self._tunnel.forget(self)

    def _settle(self) -> None:
        if self._ended and self._said_end:
            self._tunnel.forget(self)

    def _check(self) -> None:
        if self._reason is not None:
            raise StreamReset(self._reason)


class Tunnel:
    """One side of a tunnel. The side that is given *opened* answers; the other one opens.

    At most *max_streams* are open at once; one more is reset by the side that answers.
    """

    def __init__(
        self,
        line: Line,
        new_event: Callable[[], Waiting],
        opened: Callable[[TunnelStream], None] | None = None,
        max_streams: int = 64,
    ) -> None:
        self._line = line
        self.new_event = new_event
        self._opened = opened
        self._max_streams = max_streams
        self._frames = FrameReader()
        self._streams: dict[int, TunnelStream] = {}
        self._last = 0
        self._lost: str | None = None

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, opening: bytes) -> TunnelStream:
        """Open a stream; raises ``StreamReset`` when the tunnel is lost."""
        if self._lost is not None:
            raise StreamReset(self._lost)
        self._last += 1
        stream = self._streams[self._last] = TunnelStream(self, self._last, opening)
        self.send(OPEN, stream.number, opening)
        return stream

    def ping(self) -> None:
        """Ask whether the other side is there; it sends something, whatever else it does."""
        self.send(PING)

    def receive(self, data: bytes) -> None:
        """Take what the connection brought; raises ``TunnelError``."""
        for kind, number, payload in self._frames.feed(data):
            if kind == PING:
                if self._line.queued_bytes < _UNSENT_BYTES:
                    self.send(PONG)
            elif kind == OPEN:
                self._take_opened(number, payload)
            elif kind != PONG:
                stream = self._streams.get(number)
                if stream is not None:
                    stream.take(kind, payload)
                elif number > self._last:
                    raise TunnelError(f"stream {number}: was never opened")

    def lose(self, reason: str) -> None:
        """The connection is gone: every stream ends with *reason*."""
        if self._lost is None:
            self._lost = reason
            for stream in list(self._streams.values()):
                stream.fail(reason)

    async def hear(self, read: Callable[[], Awaitable[bytes]], other: str) -> str:
        """Take what *read* returns until there is no more; return why.

        *other* is what the other side is called; a ``TimeoutError`` of *read* is its silence.
        """
        try:
            while data := await read():
                self.receive(data)
        except TimeoutError:
            return f"{other} was silent for too long"
        except TunnelError as error:
            return f"{other} broke the protocol: {error}"
        return "the connection has ended"

    # -- what streams call -----------------------------------------------------------------------

    def send(self, kind: int, stream: int = 0, payload: bytes = b"") -> None:
        """Queue a frame; dropped once the tunnel is lost."""
        if self._lost is None:
            self._line.write(frame(kind, stream, payload))

    async def drain(self) -> None:
        """Wait until little enough is queued; raises ``StreamReset`` when the tunnel is lost."""
        try:
            await self._line.drain()
        except ConnectionError as error:
            raise StreamReset(self._lost or str(error) or "the connection was lost") from error

    def forget(self, stream: TunnelStream) -> None:
        """A stream is over."""
        if self._streams.pop(stream.number, None) is not None:
            stream.over()

    def _take_opened(self, number: int, opening: bytes) -> None:
        if self._opened is None or number <= self._last:
            raise TunnelError(f"stream {number}: is not the other side's to open")
        self._last = number
        if len(self._streams) >= self._max_streams:
            self.send(RESET, number, b"too many streams are open")
            return
        stream = self._streams[number] = TunnelStream(self, number, opening)
        self._opened(stream)
