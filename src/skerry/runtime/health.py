"""A small HTTP endpoint for processes that are no API server: health, metrics and a few pages.

``/healthz``, ``/livez`` and ``/readyz`` run named checks (``?verbose`` lists them) and answer
anybody; ``/metrics`` speaks Prometheus. One short request per connection: it is for probes,
scrapers and people.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from skerry.wire.healthz import TEXT, WITHHELD, Checked, answer
from skerry.wire.http1 import parsed_request, response_lines

# A whole request, a token included; anything longer is none.
_REQUEST_LIMIT = 16384
_REQUEST_SECONDS = 10.0

# Returns a page's type and text; None while there is none.
MakePage = Callable[[], tuple[str, bytes] | None]
# Returns what is wrong; empty when nothing is.
Check = Callable[[], str]
# ``authorize(token, verb, path)`` returns 200, 401 or 403.
Authorize = Callable[[str, str, str], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Page:
    """One answer."""

    status: int
    body: bytes
    kind: str = TEXT

    def encoded(self) -> bytes:
        fields = (
            ("content-type", self.kind),
            ("x-content-type-options", "nosniff"),
            ("content-length", str(len(self.body))),
            ("connection", "close"),
        )
        return response_lines(self.status, fields) + b"\r\n" + self.body


class HealthEndpoint:
    """Answers probes, scrapers and, where it has more pages, people.

    *alive* checks count for every path, *health* ones not for ``/livez``, *ready* ones for
    ``/readyz`` only. *authorize* is asked before anything but health is shown. Health is shown to
    anybody: *withhold_reasons* keeps to itself why a check failed.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        alive: Mapping[str, Check] | None = None,
        health: Mapping[str, Check] | None = None,
        ready: Mapping[str, Check] | None = None,
        pages: Mapping[str, MakePage] | None = None,
        authorize: Authorize | None = None,
        withhold_reasons: bool = False,
    ) -> None:
        live: dict[str, Check] = {"ping": lambda: "", **(alive or {})}
        healthy = {**live, **(health or {})}
        self._checks = {
            "/livez": live,
            "/healthz": healthy,
            "/readyz": {**healthy, **(ready or {})},
        }
        self._registry = registry
        self._pages = pages or {}
        self._authorize = authorize
        self._withhold = withhold_reasons

    @asynccontextmanager
    async def serving(
        self, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[int]:
        """Serve while inside; yields the port, which is chosen when *port* is 0."""
        server = await asyncio.start_server(self._serve, host, port, limit=_REQUEST_LIMIT, ssl=tls)
        async with server:
            yield server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                page = await self.answer(head)
                writer.write(page.encoded())
                await writer.drain()
        except (
            TimeoutError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ConnectionError,
        ):
            pass  # not a request, or a caller that left
        finally:
            writer.close()

    async def answer(self, head: bytes) -> Page:
        """Answer one request head."""
        try:
            request = parsed_request(head)
        except ValueError:
            return Page(400, b"bad request\n")
        path, _, query = request.target.partition("?")
        if request.method not in ("GET", "HEAD"):
            return Page(405, b"method not allowed\n")
        if path in self._checks:
            return self._checked(path, "verbose" in query.split("&"))
        refusal = await self._refusal(request.field("authorization"), path)
        return refusal or self._page(path)

    async def _refusal(self, authorization: str, path: str) -> Page | None:
        if self._authorize is None:
            return None
        token = authorization.removeprefix("Bearer ") if authorization else ""
        code = await self._authorize(token, "get", path)
        if code == 401:
            return Page(401, b"Unauthorized\n")
        return Page(403, b"Forbidden\n") if code == 403 else None

    def _page(self, path: str) -> Page:
        if path == "/metrics":
            return Page(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)
        make = self._pages.get(path)
        made = make() if make is not None else None
        if made is None:
            return Page(404, b"404 page not found\n")
        kind, body = made
        return Page(200, body, kind)

    def _checked(self, path: str, verbose: bool) -> Page:
        found = {name: check() for name, check in self._checks[path].items()}
        shown = [
            Checked(name, WITHHELD if wrong and self._withhold else wrong)
            for name, wrong in found.items()
        ]
        return Page(*answer(path[1:], shown, verbose=verbose))
