"""WebSocket (RFC 6455) over a connection that was taken over: whole messages, both ways.

Framing is wsproto's; here are the connection, the size of what is taken, and the handshake in the
words of Kubernetes' servers. Without extensions. Pings are answered and fragments joined on the
way; what breaks the protocol ends the connection with the code the RFC names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.utilities import generate_accept_token

from skerry.api.errors import BadRequest
from skerry.server.http.message import Duplex, Request, Sender

_TOO_BIG = 1009
_PEER_CLOSED = (ConnectionState.REMOTE_CLOSING, ConnectionState.CLOSED)
# Far beyond what kubectl sends at once (32 KiB), and little enough to hold.
MAX_MESSAGE_BYTES = 8 * 1024 * 1024


class WebSocketClosed(Exception):
    """The peer has closed the connection, or broke the protocol."""


def as_duplex(sender: Sender) -> Duplex:
    """Return what an upgraded connection is given, which can be read from too."""
    if not hasattr(sender, "read"):
        raise BadRequest("this connection cannot be upgraded")
    return sender  # type: ignore[return-value]


def handshake(request: Request, protocols: Sequence[str]) -> list[tuple[str, str]]:
    """Return the headers that accept *request*, with the first of its protocols we know.

    Raises ``BadRequest`` when it is no WebSocket request or none of *protocols* is offered.
    """
    headers = request.headers
    key = headers.get("sec-websocket-key", "")
    if "websocket" not in headers.get("upgrade", "").lower() or not key:
        raise BadRequest("Upgrade request required")
    if headers.get("sec-websocket-version") != "13":
        raise BadRequest("websocket: unsupported version: 13 not found in 'Sec-Websocket-Version'")
    offered = [part.strip() for part in headers.get("sec-websocket-protocol", "").split(",")]
    chosen = next((name for name in offered if name in protocols), None)
    if chosen is None:
        raise BadRequest(
            f"unable to negotiate protocol: client supports {offered}, server {list(protocols)}"
        )
    accepted = generate_accept_token(key.encode()).decode()
    return [("Sec-WebSocket-Accept", accepted), ("Sec-WebSocket-Protocol", chosen)]


class WebSocket:
    """One connection; one task reads, any may send."""

    def __init__(
        self,
        duplex: Duplex,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        side: ConnectionType = ConnectionType.SERVER,
    ) -> None:
        self._duplex = duplex
        self._max_message_bytes = max_message_bytes
        self._framing = Connection(side)
        self._events: Iterator[Event] = iter(())

    def send(self, payload: bytes) -> None:
        """Send one binary message; dropped once the connection is closed."""
        if self._framing.state is ConnectionState.OPEN:
            self._duplex.write(self._framing.send(BytesMessage(payload)))

    def send_text(self, text: str) -> None:
        """Send one text message; dropped once the connection is closed."""
        if self._framing.state is ConnectionState.OPEN:
            self._duplex.write(self._framing.send(TextMessage(text)))

    @property
    def queued_bytes(self) -> int:
        """How much waits to be sent."""
        return self._duplex.queued_bytes

    async def drain(self) -> None:
        await self._duplex.drain()

    def close(self, code: int = 1000) -> None:
        """Say that nothing more will come."""
        if self._framing.state is ConnectionState.OPEN:
            self._duplex.write(self._framing.send(CloseConnection(code)))

    async def receive(self) -> bytes:
        """Return the next message; raises ``WebSocketClosed`` in the end."""
        message = bytearray()
        while True:
            event = await self._event()
            if isinstance(event, BytesMessage | TextMessage):
                part = event.data
                message += part.encode() if isinstance(part, str) else part
                if len(message) > self._max_message_bytes:
                    raise self._broken(_TOO_BIG)
                if event.message_finished:
                    return bytes(message)
            elif isinstance(event, CloseConnection):
                raise self._closed(event)
            elif isinstance(event, Ping) and self._framing.state is ConnectionState.OPEN:
                self._duplex.write(self._framing.send(event.response()))

    async def _event(self) -> Event:
        while True:
            for event in self._events:
                return event
            data = await self._duplex.read()
            if not data or self._framing.state in _PEER_CLOSED:
                raise WebSocketClosed
            self._framing.receive_data(data)
            self._events = self._framing.events()

    def _closed(self, event: CloseConnection) -> WebSocketClosed:
        """Return how a connection ended that the peer closed, or on which it broke rules."""
        if self._framing.state is ConnectionState.REMOTE_CLOSING:
            self._duplex.write(self._framing.send(event.response()))
            return WebSocketClosed()
        return self._broken(int(event.code))

    def _broken(self, code: int) -> WebSocketClosed:
        self.close(code)
        return WebSocketClosed(str(code))
