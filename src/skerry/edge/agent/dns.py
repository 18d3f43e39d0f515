"""Cluster DNS: names of Services and pods, for pods that have a network of their own.

Answers what a cluster's DNS answers (``web``, ``web.shop``, ``web-0.web.shop.svc.cluster.local``,
``_http._tcp.web…``) straight from the caches of Services and EndpointSlices, so there is nothing
to keep in step. Names outside the cluster are not known here: the pods' network leads nowhere
else, and what leaves it goes through the HTTP proxy, which resolves for itself.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

from skerry.kit.log import Logger
from skerry.wire.dns import Lookup, answered

_log = Logger("network")
_CONNECTION_SECONDS = 10.0


class DnsServer(asyncio.DatagramProtocol):
    """Answers queries on a socket, and what is too long for that on a connection."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.DatagramTransport):
            self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        answer = answered(data, self._lookup)
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)

    def error_received(self, exc: Exception) -> None:
        _log.debug("dns client has gone", error=exc)

    async def run(self, bound: socket.socket, listening: socket.socket) -> None:
        """Serve datagrams and connections until cancelled."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=bound)
        self._transport = transport
        server = await asyncio.start_server(self._serve, sock=listening)
        try:
            await asyncio.Event().wait()
        finally:
            transport.close()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the queries of one connection, which has room for answers of any size."""
        try:
            async with asyncio.timeout(_CONNECTION_SECONDS):
                while True:
                    (size,) = struct.unpack("!H", await reader.readexactly(2))
                    query = await reader.readexactly(size)
                    answer = answered(query, self._lookup, max_bytes=0xFFFF)
                    if answer is None:
                        return
                    writer.write(struct.pack("!H", len(answer)) + answer)
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            return  # the client has gone, or has nothing more to ask
        finally:
            writer.close()
