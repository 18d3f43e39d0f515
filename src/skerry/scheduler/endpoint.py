"""The scheduler's own port: health, metrics and configuration.

Health paths answer anybody. Everything else asks the API server who the caller is (TokenReview)
and whether the caller may read the path (SubjectAccessReview), as kube-scheduler's secure port
does. One short request per connection: it is for probes, scrapers and people.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.runtime.client import Client
from skerry.runtime.transport import TransportError

_REQUEST_LIMIT = 16384
_REQUEST_SECONDS = 10.0
_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"

HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz"})

# Returns a page's type and text; None while there is none.
MakePage = Callable[[], tuple[str, bytes] | None]
# Returns what is wrong; empty when nothing is.
Check = Callable[[], str]
# ``authorize(token, verb, path)`` returns 200, 401 or 403.
Authorize = Callable[[str, str, str], Awaitable[int]]

_TOKEN_REVIEWS = GroupVersionResource("authentication.k8s.io", "v1", "tokenreviews")
_ACCESS_REVIEWS = GroupVersionResource("authorization.k8s.io", "v1", "subjectaccessreviews")


@dataclass(frozen=True, slots=True)
class Page:
    """One answer."""

    status: str
    body: bytes
    kind: str = _TEXT

    def encoded(self) -> bytes:
        head = (
            f"HTTP/1.1 {self.status}\r\ncontent-type: {self.kind}\r\n"
            f"x-content-type-options: nosniff\r\n"
            f"content-length: {len(self.body)}\r\nconnection: close\r\n\r\n"
        )
        return head.encode("latin-1") + self.body


class Endpoint:
    """Serves the scheduler's pages."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        health: Mapping[str, Check],
        ready: Mapping[str, Check],
        pages: Mapping[str, MakePage],
        authorize: Authorize | None = None,
    ) -> None:
        ping: Mapping[str, Check] = {"ping": lambda: ""}
        self._checks = {
            "/livez": ping,
            "/healthz": {**ping, **health},
            "/readyz": {**ping, **health, **ready},
        }
        self._registry = registry
        self._pages = pages
        self._authorize = authorize

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
                page = await self.answer(head.decode("latin-1"))
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

    async def answer(self, head: str) -> Page:
        """Answer one request head."""
        first, *rest = head.split("\r\n")
        method, _, target = first.partition(" ")
        path, _, query = target.partition(" ")[0].partition("?")
        if method not in ("GET", "HEAD"):
            return Page("405 Method Not Allowed", b"method not allowed\n")
        if path in HEALTH_PATHS:
            return _checked(path, self._checks[path], "verbose" in query.split("&"))
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in rest)
        }
        refusal = await self._refusal(headers.get("authorization", ""), path)
        return refusal or self._page(path)

    async def _refusal(self, authorization: str, path: str) -> Page | None:
        if self._authorize is None:
            return None
        token = authorization.removeprefix("Bearer ") if authorization else ""
        code = await self._authorize(token, "get", path)
        if code == 401:
            return Page("401 Unauthorized", b"Unauthorized\n")
        return Page("403 Forbidden", b"Forbidden\n") if code == 403 else None

    def _page(self, path: str) -> Page:
        if path == "/metrics":
            return Page("200 OK", generate_latest(self._registry), CONTENT_TYPE_LATEST)
        make = self._pages.get(path)
        made = make() if make is not None else None
        if made is None:
            return Page("404 Not Found", b"404 page not found\n")
        kind, body = made
        return Page("200 OK", body, kind)


def _checked(path: str, checks: Mapping[str, Check], verbose: bool) -> Page:
    found = {name: check() for name, check in checks.items()}
    good = not any(found.values())
    if good and not verbose:
        return Page("200 OK", b"ok")
    report = "".join(
        f"[-]{name} failed: reason withheld\n" if wrong else f"[+]{name} ok\n"
        for name, wrong in found.items()
    )
    verdict = "passed" if good else "failed"
    status = "200 OK" if good else "500 Internal Server Error"
    return Page(status, f"{report}{path[1:]} check {verdict}\n".encode())


def delegated(client: Client, access: Client | None = None) -> Authorize:
    """Return an authorizer that asks the API server on every request.

    *access* answers what a caller may do, where that is another server than knows the callers.
    """
    access = access or client

    async def authorize(token: str, verb: str, path: str) -> int:
        user = await _reviewed_user(client, token) if token else None
        if token and user is None:
            return 401
        spec: dict[str, object] = {
            "nonResourceAttributes": {"path": path, "verb": verb},
            "user": "system:anonymous",
            "groups": ["system:unauthenticated"],
        }
        if user is not None:
            spec |= {"user": user.get("username", ""), "groups": user.get("groups") or []}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": spec,
        }
        try:
            answer = await access.create(_ACCESS_REVIEWS, review)
        except (ApiError, TransportError):
            return 403
        return 200 if (answer.get("status") or {}).get("allowed") else 403

    return authorize


async def _reviewed_user(client: Client, token: str) -> Mapping[str, object] | None:
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {},
        "spec": {"token": token},
    }
    try:
        answer = await client.create(_TOKEN_REVIEWS, review)
    except (ApiError, TransportError):
        return None
    status = answer.get("status") or {}
    found: Mapping[str, object] | None = status.get("user")
    return found if status.get("authenticated") else None
