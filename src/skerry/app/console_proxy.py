"""The console on this machine alone: a listener without TLS that leads to the hub's.

For browsers that do not know the hub's authority: the proxy knows it from the kubeconfig and checks
it. It adds no credential, unlike ``kubectl proxy``, so other programs of this machine gain nothing
by it: who has no code and no cookie is nobody behind it, too. A request under any name but that of
loopback is refused, as is one that another page sends.

One request a connection: the head is read and rewritten, and everything after it passes as it is,
WebSockets included.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from skerry.kit.log import Logger
from skerry.kit.streams import Stream, join_streams

log = Logger("console")

_MAX_HEAD = 64 * 1024
_HEAD_SECONDS = 30.0
_OF_THE_CONNECTION = ("connection", "keep-alive", "proxy-connection")
_REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
_AWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"


class ProxyRefusal(Exception):
    """Why a request is not passed on, in a sentence."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the hub's console is, and how it proves itself."""

    url: str
    context: ssl.SSLContext

    @property
    def authority(self) -> str:
        return urlsplit(self.url).netloc


def rewritten(head: bytes, own: str, target: Target) -> bytes:
    """Return the head of a request as the hub's console takes it; *own* is our ``host:port``."""
    first, *lines = head.decode("latin-1").split("\r\n")
    kept, upgrade, named = [first], False, False
    for line in lines:
        name, found, value = line.partition(":")
        lower, given = name.strip().lower(), value.strip()
        if not found:
            raise ProxyRefusal("a header without a colon")
        if lower == "host":
            _require("Host", given, own)
            named = True
            kept.append(f"Host: {target.authority}")
        elif lower == "origin":
            _require("Origin", given, f"http://{own}")
            kept.append(f"Origin: {target.url}")
        elif lower not in _OF_THE_CONNECTION:
            upgrade = upgrade or lower == "upgrade"
            kept.append(line)
    if not named:
        raise ProxyRefusal("no Host")
    kept.append(f"Connection: {'Upgrade' if upgrade else 'close'}")
    return "\r\n".join(kept).encode("latin-1") + b"\r\n\r\n"


def _require(name: str, seen: str, wanted: str) -> None:
    if seen != wanted:
        raise ProxyRefusal(f"{name} {seen[:80]!r}: want {wanted}")


class ConsoleProxy:
    """Listens on loopback and passes requests on."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._own = ""

    @contextlib.asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[str]:
        """Serve inside the context; gives the URL for browsers."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_MAX_HEAD)
        self._own = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield f"http://{self._own}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._pass_on(rewritten(head[:-4], self._own, self._target), reader, writer)
        except ProxyRefusal as refusal:
            writer.write(_REFUSED + f"{refusal}\n".encode())
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            log.debug("no request came")
        except (ConnectionError, ssl.SSLError) as error:
            writer.write(_AWAY + f"{self._target.url}: {error}\n".encode())
        finally:
            writer.close()

    async def _pass_on(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        where = urlsplit(self._target.url)
        inner, outer = await asyncio.open_connection(
            where.hostname, where.port, ssl=self._target.context
        )
        try:
            outer.write(head)
            await join_streams(Stream(reader, writer), Stream(inner, outer))
        finally:
            outer.close()
