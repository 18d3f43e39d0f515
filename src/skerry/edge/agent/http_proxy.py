"""Service names for programs that speak HTTP.

Plain processes share the machine's resolver, which knows no Services, and pods with a network of
their own cannot leave it. Nearly every HTTP client obeys ``http_proxy``, so pods are given one: it
understands names as a cluster's DNS does (short names in the pod's own namespace, which comes as
the proxy's user name), cluster addresses and pod addresses; any other host is reached as it is. One
request a connection, the simplest that is right.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from skerry.edge.agent.network import LOOPBACK, Backend, Connect, dialled
from skerry.kit.streams import Stream, join_streams
from skerry.wire.http1 import parsed_request, response_lines

_MAX_HEAD = 64 * 1024
_HEAD_SECONDS = 30.0

Find = Callable[[str, int, str], Backend | None]
"""Returns where a host and port lead, seen from a namespace; None when nobody serves there."""


class BadHead(Exception):
    """A request this proxy cannot pass on."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client wants: whom, and the head to send there (none for a tunnel)."""

    host: str
    port: int
    namespace: str
    head: bytes


def parse_head(head: bytes) -> Asked:
    """Return what a request asks of the proxy; raises ``BadHead``."""
    try:
        method, target, version, lines = asked = parsed_request(head)
        namespace = _namespace(asked.field("proxy-authorization"))
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            return Asked(host, int(port), namespace, b"")
        url = urlsplit(target)
        port_number = url.port or 80
    except ValueError as error:
        raise BadHead(str(error)) from error
    if url.scheme != "http" or not url.hostname:
        raise BadHead(f"target {target!r}: want http://host/path")
    path = url.path or "/"
    if url.query:
        path += f"?{url.query}"
    kept = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
    rewritten = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
    return Asked(url.hostname, port_number, namespace, "\r\n".join(rewritten).encode("latin-1"))


def _namespace(credentials: str) -> str:
    """Return the namespace a client comes from: the user name of the proxy it was given."""
    if credentials:
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            decoded = base64.b64decode(credentials.rsplit(maxsplit=1)[-1]).decode()
            return decoded.partition(":")[0] or "default"
    return "default"


class HttpProxy:
    """Listens on a loopback port of its own, or on *listening* once that is set."""

    def __init__(self, find: Find, connect: Connect = dialled) -> None:
        self._find = find
        self._connect = connect
        self.listening: socket.socket | None = None
        self._address = LOOPBACK
        self._port = 0

    def url(self, namespace: str) -> str:
        """Return what a pod of *namespace* is given as ``http_proxy``; empty before it listens."""
        return f"http://{namespace}@{self._address}:{self._port}" if self._port else ""

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as tasks:

            def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                tasks.create_task(self._serve(reader, writer))

            if self.listening is not None:
                server = await asyncio.start_server(connected, sock=self.listening, limit=_MAX_HEAD)
            else:
                server = await asyncio.start_server(connected, LOOPBACK, 0, limit=_MAX_HEAD)
            self._address, self._port = server.sockets[0].getsockname()[:2]
            try:
                await asyncio.Event().wait()
            finally:
                self._port = 0
                server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._pass_on(parse_head(head), reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, BadHead):
            _refuse(writer, 400)
        except OSError:
            _refuse(writer, 502)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _pass_on(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        backend = self._find(asked.host, asked.port, asked.namespace)
        if backend is None:
            _refuse(writer, 503)
            return
        back_reader, back_writer = await self._connect(backend)
        if asked.head:
            back_writer.write(asked.head)
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await join_streams(Stream(reader, writer), Stream(back_reader, back_writer))
        finally:
            back_writer.close()
            with contextlib.suppress(OSError):
                await back_writer.wait_closed()


def _refuse(writer: asyncio.StreamWriter, status: int) -> None:
    head = response_lines(status, (("Content-Length", "0"), ("Connection", "close")))
    writer.write(head + b"\r\n")
