"""The seam between the transport and the engine.

A ``Handler`` takes a ``Request`` and returns a ``Response`` or a ``Stream``. The socket protocol
and the in-process transport both call it, so neither can differ in meaning.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol
from urllib.parse import parse_qsl

import msgspec

from skerry.server.user import User
from skerry.store.base import Write


class Peer(msgspec.Struct, frozen=True):
    """The other end of the connection. ``certificate`` is the client certificate, DER, verified
    against our CA; ``user`` is set by the in-process transport only and skips authentication."""

    address: str = ""
    certificate: bytes | None = None
    user: User | None = None


class Request(msgspec.Struct):
    """One HTTP request, fully read. Header names are lower case; ``path`` is percent-decoded.

    A header sent several times has its values joined by ", "; of the headers that name users,
    whose values may hold commas, by a line break. ``impersonator`` is set by authentication when
    the user it returned is one that somebody else asked to act as.
    """

    method: str
    path: str
    query_string: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    peer: Peer = msgspec.field(default_factory=Peer)
    impersonator: User | None = None
    # When it was read, on the server's monotonic clock; 0 when nobody looked.
    received: float = 0.0
    # How long it has kept the loop busy before its present step, and when that began; noted by
    # whoever runs it step by step.
    busy: float = 0.0
    step: float = 0.0
    # As whose the body is accounted for until it was acted on, and how much of it.
    held: tuple[str, int] | None = None
    # Who asks, once that is known.
    user: User | None = None
    # Set once it is known whom later steps are charged to.
    charge: Callable[[float], None] | None = None
    # What admission has to say in the audit log; None while it has nothing to say.
    audit_annotations: dict[str, str] | None = None
    # Whether it is audited whatever the policy says, and when it begins as well as when it ends.
    always_audited: bool = False
    # By which the audit log knows it, where somebody had to know that before it was answered.
    audit_id: str = ""
    # Who commits what it writes, where it is one of several that are written together.
    commit: Callable[[Sequence[Write]], Awaitable[list[int]]] | None = None
    _query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """The query's values; of a repeated name the first counts, as in Kubernetes."""
        if self._query is None:
            if not self.query_string:
                self._query = {}
                return self._query
            pairs = parse_qsl(self.query_string, keep_blank_values=True, max_num_fields=200)
            self._query = dict(reversed(pairs))
        return self._query


Headers = Sequence[tuple[str, str]]


class Response(msgspec.Struct):
    """A whole answer. A body in parts is sent without joining them first."""

    status: int = 200
    body: bytes | Sequence[bytes] = b""
    content_type: str = "application/json"
    headers: Headers = ()


class Sender(Protocol):
    """What a stream writes to. Ends by returning from ``Stream.run``."""

    def write(self, chunk: bytes) -> None:
        """Queue *chunk* for sending; never blocks. Silently dropped once the peer is gone."""

    async def drain(self) -> None:
        """Wait until little enough is queued; raises ConnectionError once the peer is gone."""

    @property
    def closed(self) -> bool:
        """Whether the peer is gone or the server is shutting down."""

    @property
    def queued_bytes(self) -> int:
        """How much is waiting to be sent, to find watchers that cannot keep up."""


class Stream(msgspec.Struct):
    """An answer that goes on: ``run`` writes chunks until it returns or is cancelled.

    ``recheck`` is called when rights have changed: for streams of several parts, each of which
    its user may be allowed or not. ``watches`` is how many watches the stream counts as.
    """

    run: Callable[[Sender], Awaitable[None]]
    status: int = 200
    content_type: str = "application/json"
    headers: Headers = ()
    recheck: Callable[[], None] | None = None
    watches: int = 1


class Duplex(Sender, Protocol):
    """A connection that was taken over: what is written goes out as it is."""

    async def read(self) -> bytes:
        """Return what has arrived, waiting for it; empty once the peer says no more."""


class Upgrade(Stream):
    """Takes the connection over for another protocol; ``run`` is given a ``Duplex``.

    Only a request that offered *protocol* may be answered so. The connection ends with it.
    """

    protocol: str = "websocket"


Answer = Response | Stream
Handler = Callable[[Request], Awaitable[Answer]]
