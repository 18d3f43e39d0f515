"""A small, fast HTTP load generator: keep-alive connections, one request at a time on each.

It reads just enough of an answer to know where it ends, so that what is measured is the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_LAST_CHUNK = b"\r\n0\r\n\r\n"


@dataclass(slots=True)
class Outcome:
    """What a load run saw."""

    requests: int = 0
    failures: int = 0
    seconds: float = 0.0
    bytes: int = 0
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.requests / self.seconds if self.seconds else 0.0

    def quantile(self, q: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0


class _Connection(asyncio.Protocol):
    """Sends the next request as soon as an answer is complete.

    One that is *kept* stays open when there is none, and goes on with ``go_on``.
    """

    def __init__(
        self, next_request: Callable[[], bytes | None], outcome: Outcome, *, kept: bool = False
    ) -> None:
        self._next = next_request
        self._outcome = outcome
        self._kept = kept
        self._buffer = bytearray()
        self._need = -1
        self._chunked = False
        self._tail = b""
        self._began = 0.0
        self._status = 0
        self._transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def go_on(self, next_request: Callable[[], bytes | None], outcome: Outcome) -> None:
        """Send more over a connection that was kept."""
        self._next, self._outcome = next_request, outcome
        self.done = asyncio.get_running_loop().create_future()
        self._send()

    def _send(self) -> None:
        request = self._next()
        if request is None or self._transport is None:
            if self._transport is not None and not self._kept:
                self._transport.close()
            if not self.done.done():
                self.done.set_result(None)
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._outcome.bytes += len(data)
        if self._need < 0:
            self._buffer += data
            end = self._buffer.find(_HEAD_END)
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            self._status = int(head[9:12])
            at = head.find(_LENGTH)
            self._chunked = b"transfer-encoding: chunked" in head
            data = bytes(self._buffer[end + 4 :])
            length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            self._need = length - len(data)
            self._buffer.clear()
        else:
            self._need -= len(data)
        if self._chunked:
            # The body's own end is looked for; nothing else in it can look like that at an end.
            self._tail = (self._tail + data)[-len(_LAST_CHUNK) :]
            self._need = 0 if self._tail == _LAST_CHUNK else 1
        if self._need <= 0:
            self._need, self._tail = -1, b""
            self._outcome.requests += 1
            self._outcome.failures += self._status >= 300
            self._outcome.latencies.append(time.perf_counter() - self._began)
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._outcome.failures += 1
            self.done.set_result(None)


@dataclass(frozen=True, slots=True)
class Server:
    """Where the load goes."""

    host: str
    port: int
    tls: ssl.SSLContext
    headers: str = ""
    prefix: str = ""

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Return the bytes of one request."""
        head = f"{method} {self.prefix}{path} HTTP/1.1\r\nHost: {self.host}\r\n{self.headers}"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body


async def run(
    server: Server,
    make: Callable[[int], bytes],
    *,
    connections: int = 32,
    seconds: float | None = None,
    count: int | None = None,
) -> Outcome:
    """Send requests over *connections* for *seconds*, or *count* of them altogether."""
    outcome = Outcome()
    sent = 0
    began = time.perf_counter()

    def next_request() -> bytes | None:
        nonlocal sent
        if count is not None and sent >= count:
            return None
        if seconds is not None and time.perf_counter() - began > seconds:
            return None
        sent += 1
        return make(sent - 1)

    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: _Connection(next_request, outcome), server.host, server.port, ssl=server.tls
        )
        for _ in range(connections)
    ]
    await asyncio.gather(*(protocol.done for _, protocol in made))
    outcome.seconds = time.perf_counter() - began
    return outcome


class Kept:
    """Connections that stay open from one load to the next."""

    def __init__(self, server: Server, connections: int) -> None:
        self.server = server
        self._count = connections
        self._runner = asyncio.Runner()
        self._open: list[_Connection] = []

    def __enter__(self) -> Kept:
        self._runner.run(self._connect())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def send(self, requests: Sequence[bytes]) -> None:
        """Send *requests*, one at a time on each connection; raises if any fails."""
        failures = self._runner.run(self._send(iter(requests))).failures
        if failures:
            raise RuntimeError(f"{failures} of {len(requests)} requests failed")

    async def _connect(self) -> None:
        server, loop = self.server, asyncio.get_running_loop()
        for _ in range(self._count):
            _, protocol = await loop.create_connection(
                lambda: _Connection(lambda: None, Outcome(), kept=True),
                server.host, server.port, ssl=server.tls,
            )  # fmt: skip
            self._open.append(protocol)

    async def _send(self, requests: Iterator[bytes]) -> Outcome:
        outcome = Outcome()
        for each in self._open:
            each.go_on(lambda: next(requests, None), outcome)
        await asyncio.gather(*(each.done for each in self._open))
        return outcome


def ask(
    server: Server, method: str, path: str, body: bytes = b"", source: str = ""
) -> tuple[int, bytes]:
    """Send one request, perhaps from a certain address; return its status and body."""
    headers = {"Content-Type": "application/json"}
    for line in server.headers.splitlines():
        name, value = line.split(": ", 1)
        headers[name] = value
    connection = http.client.HTTPSConnection(
        server.host, server.port, context=server.tls, source_address=(source, 0) if source else None
    )
    with contextlib.closing(connection):
        connection.request(method, server.prefix + path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
