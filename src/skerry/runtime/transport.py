"""How a client reaches a server: one request and its answer, or an answer that goes on.

Two implementations keep the same promises: ``http.HttpTransport`` over TLS sockets and
``embedded.EmbeddedTransport`` straight into a server of the same process. Nothing above this
module can tell which one it has.

* ``path`` and ``query`` are percent-encoded already; ``path`` starts with ``/``.
* Whatever status the server gives is an ``Answer``. ``TransportError`` means that no whole answer
  came, and that the request may or may not have been carried out.
* Leaving a stream ends it on both sides. Cancelling a request gives its answer up at once; what
  the server still does with it is unknown.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

# A watch event carries one object, and no server accepts objects beyond a few MiB.
MAX_LINE_BYTES = 16 * 1024 * 1024

NO_HEADERS: Mapping[str, str] = {}


class TransportError(Exception):
    """No whole answer came; whether the request was carried out is unknown."""


class Unreachable(TransportError):
    """No connection could be made; the request was not carried out."""


class ConnectTimeout(Unreachable):
    """Nobody completed a connection in time: who is there has others to attend to."""


class ConnectionLost(TransportError):
    """The connection ended before the answer was whole."""


class AnswerTimeout(TransportError):
    """The answer took longer than the caller was willing to wait."""


class Answer(NamedTuple):
    """A whole answer. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class AnswerStream(Protocol):
    """An answer that goes on: iterate over its chunks as they come."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Transport(Protocol):
    """A way to one server. Safe to use from many tasks at once."""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        """Send one request and return the whole answer."""

    def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AbstractAsyncContextManager[AnswerStream]:
        """Send one request; yield the answer once its head is known. Leaving ends it."""

    async def close(self) -> None:
        """End every exchange and release what is held."""


class UpgradedLine(Protocol):
    """A connection on which another protocol was offered, and how that was answered."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def closed(self) -> bool: ...

    @property
    def queued_bytes(self) -> int:
        """How much waits to be sent."""

    async def read(self) -> bytes:
        """Return what has arrived, waiting for it; empty at the end."""

    def write(self, chunk: bytes) -> None:
        """Queue *chunk* for sending; dropped once the peer is gone."""

    async def drain(self) -> None:
        """Wait until little enough is queued; raises ConnectionError once the peer is gone."""

    async def refusal(self) -> bytes:
        """Return the body of an answer that did not take the offer, as far as it is short."""


class UpgradingTransport(Transport, Protocol):
    """A way to one server on which connections can be handed over to another protocol."""

    def upgraded(
        self,
        protocol: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        method: str = "GET",
    ) -> AbstractAsyncContextManager[UpgradedLine]:
        """Offer to speak *protocol* from now on; yields the connection with what was answered.

        Only an answer of 101 has taken the offer. Leaving ends the connection.
        """


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the newline-separated records of *chunks*, without the newline.

    A last record without a newline is cut-off text, not an event, and is dropped.
    """
    pending = b""
    async for chunk in chunks:
        parts = chunk.split(b"\n")
        parts[0] = pending + parts[0]
        pending = parts.pop()
        if len(pending) > MAX_LINE_BYTES:
            raise TransportError(
                f"a record of over {MAX_LINE_BYTES} bytes: want newline-separated records"
            )
        for line in parts:
            if line:
                yield line


async def whole(stream: AnswerStream) -> bytes:
    """Return everything a stream has left; for error answers, which are short."""
    return b"".join([chunk async for chunk in stream])
