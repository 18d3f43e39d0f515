"""The channels of exec and attach, whatever carries them; and how SPDY does, a stream for each.

The client opens its streams before anything else; which ones it will open follows from its request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Final, Protocol

from skerry.api.errors import BadRequest
from skerry.server.http.message import Duplex, Request
from skerry.wire.spdy import Asked, Event, Finished, Opened, Received, Spdy, SpdyError

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
# What comes on it is the channel that ends.
END: Final = 255

_PROTOCOL: Final = "v4.channel.k8s.io"
_CHANNELS: Final = {
    "stdin": STDIN,
    "stdout": STDOUT,
    "stderr": STDERR,
    "error": ERROR,
    "resize": RESIZE,
}
# As long as kubelet waits for them.
_OPENING_SECONDS: Final = 30.0
# What may come before the last of them; clients send input when all are open.
_EARLY_MESSAGES: Final = 16
_TRUE: Final = ("true", "1")


class ChannelsClosed(Exception):
    """Whoever is at the other end has left."""


class Channels(Protocol):
    """Bytes both ways, each on a channel."""

    def send(self, channel: int, data: bytes) -> None:
        """Send; dropped once the connection is closed."""

    async def drain(self) -> None:
        """Wait until there is room for more."""

    async def receive(self) -> tuple[int, bytes]:
        """Return what comes next, and on which channel; raises ``ChannelsClosed``."""

    def end(self, status: bytes) -> None:
        """Say how it ended, and that nothing more will come."""


def is_spdy(request: Request) -> bool:
    """Tell whether a request asks for SPDY."""
    return request.headers.get("upgrade", "").upper() == "SPDY/3.1"


def accept_spdy(request: Request) -> tuple[tuple[str, str], ...]:
    """Return the headers that accept *request*; raises ``BadRequest``."""
    text = request.headers.get("x-stream-protocol-version", "")
    offered = [part.strip() for part in text.split(",")]
    if _PROTOCOL not in offered:
        raise BadRequest(
            f"unable to upgrade: unable to negotiate protocol: client supports {offered}, "
            f"server accepts [{_PROTOCOL}]"
        )
    return (("X-Stream-Protocol-Version", _PROTOCOL),)


class SpdyChannels:
    """The channels of one connection."""

    def __init__(self, duplex: Duplex, query: Mapping[str, str]) -> None:
        self._duplex = duplex
        self._spdy = Spdy()
        self._streams: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._wanted = _wanted(query)

    async def opened(self) -> None:
        """Return when every stream that was announced is there; raises ``ChannelsClosed``."""
        try:
            async with asyncio.timeout(_OPENING_SECONDS):
                while not self._wanted <= self._numbers.keys():
                    await self._read()
                    if len(self._waiting) > _EARLY_MESSAGES:
                        raise ChannelsClosed
        except TimeoutError as error:
            raise ChannelsClosed from error

    def send(self, channel: int, data: bytes) -> None:
        number = self._numbers.get(channel)
        if number is not None and data:
            self._duplex.write(self._spdy.sent(number, data))

    async def drain(self) -> None:
        await self._duplex.drain()

    async def receive(self) -> tuple[int, bytes]:
        while not self._waiting:
            await self._read()
        return self._waiting.popleft()

    def end(self, status: bytes) -> None:
        self.send(ERROR, status)
        for channel in (STDOUT, STDERR, ERROR):
            if channel in self._numbers:
                self._duplex.write(self._spdy.sent(self._numbers[channel], b"", last=True))

    async def _read(self) -> None:
        try:
            data = await self._duplex.read()
            if not data:
                raise ChannelsClosed
            for event in self._spdy.receive(data):
                self._take(event)
        except (SpdyError, ConnectionError) as error:
            raise ChannelsClosed from error

    def _take(self, event: Event) -> None:
        match event:
            case Opened():
                self._open(event)
            case Received() if event.stream in self._streams:
                self._waiting.append((self._streams[event.stream], event.data))
            case Finished() if event.stream in self._streams:
                self._waiting.append((END, bytes([self._streams[event.stream]])))
            case Asked():
                self._duplex.write(event.reply)
            case _:
                pass  # of a stream that was refused

    def _open(self, opened: Opened) -> None:
        channel = _CHANNELS.get(opened.headers.get("streamtype", ""))
        if channel is None or channel not in self._wanted or channel in self._numbers:
            self._duplex.write(self._spdy.reset(opened.stream))
            return
        self._streams[opened.stream] = channel
        self._numbers[channel] = opened.stream
        self._duplex.write(self._spdy.accepted(opened.stream))


def _wanted(query: Mapping[str, str]) -> set[int]:
    """Return the channels that a client opens who asks so."""
    asked = {name for name in ("stdin", "stdout", "stderr", "tty") if query.get(name) in _TRUE}
    if "tty" in asked:
        # A terminal shows both outputs as one.
        asked = asked - {"tty", "stderr"} | {"resize"}
    return {_CHANNELS[name] for name in asked} | {ERROR}
