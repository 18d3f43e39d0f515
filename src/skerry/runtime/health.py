"""A small HTTP endpoint for processes that are no API server: health and metrics.

``/healthz``, ``/livez`` and ``/readyz`` run named checks (``?verbose`` lists them); ``/metrics``
speaks Prometheus. One short request per connection: it is for probes and scrapers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

# A probe's whole request; anything longer is not one.
_REQUEST_LIMIT = 8192
_REQUEST_SECONDS = 5.0

# Returns what is wrong; empty when nothing is.
Check = Callable[[], str]


class HealthEndpoint:
    """Answers probes. *ready* checks count for ``/readyz`` only, *alive* ones for all."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        alive: Mapping[str, Check] | None = None,
        ready: Mapping[str, Check] | None = None,
    ) -> None:
        self._registry = registry
        self._alive = {"ping": lambda: "", **(alive or {})}
        self._ready = {**self._alive, **(ready or {})}

    @asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[int]:
        """Serve while inside; yields the port, which is chosen when *port* is 0."""
        server = await asyncio.start_server(self._serve, host, port, limit=_REQUEST_LIMIT)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self.answer(head.split(b"\r\n", 1)[0].decode("latin-1")))
                await writer.drain()
        except (
            TimeoutError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ConnectionError,
        ):
            pass  # not a probe, or one that left
        finally:
            writer.close()

    def answer(self, request_line: str) -> bytes:
        """Return the whole HTTP answer to one request line."""
        method, _, rest = request_line.partition(" ")
        path, _, query = rest.partition(" ")[0].partition("?")
        if method not in ("GET", "HEAD"):
            return _response("405 Method Not Allowed", "method not allowed\n")
        if path == "/metrics":
            return _response("200 OK", generate_latest(self._registry), CONTENT_TYPE_LATEST)
        checks = {"/healthz": self._alive, "/livez": self._alive, "/readyz": self._ready}.get(path)
        if checks is None:
            return _response("404 Not Found", "404 page not found\n")
        return _checked(path, checks, "verbose" in query.split("&"))


def _checked(path: str, checks: Mapping[str, Check], verbose: bool) -> bytes:
    failures = {name: check() for name, check in checks.items()}
    good = not any(failures.values())
    if good and not verbose:
        return _response("200 OK", "ok")
    report = "".join(
        f"[-]{name} failed: {wrong}\n" if wrong else f"[+]{name} ok\n"
        for name, wrong in failures.items()
    )
    verdict = "passed" if good else "failed"
    status = "200 OK" if good else "500 Internal Server Error"
    return _response(status, f"{report}{path[1:]} check {verdict}\n")


def _response(status: str, body: str | bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    content = body.encode() if isinstance(body, str) else body
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n"
        f"x-content-type-options: nosniff\r\n"
        f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + content
