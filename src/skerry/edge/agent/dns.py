"""Cluster DNS: names of Services and pods, for pods that have a network of their own.

Answers what a cluster's DNS answers (``web``, ``web.shop``, ``web-0.web.shop.svc.cluster.local``,
``_http._tcp.web…``) straight from the caches of Services and EndpointSlices, so there is nothing
to keep in step. Names outside the cluster are not known here: the pods' network leads nowhere
else, and what leaves it goes through the HTTP proxy, which resolves for itself.

The wire form is RFC 1035: one question, answers, no compression but of the question's own name.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from skerry.kit.log import Logger

_log = Logger("network")
A, CNAME, PTR, AAAA, SRV, ANY = 1, 5, 12, 28, 33, 255
_INTERNET = 1
_ANSWER, _AUTHORITATIVE, _RECURSION_WANTED, _RECURSION = 0x8000, 0x0400, 0x0100, 0x0080
_NO_ERROR, _FORMAT_ERROR, _NO_NAME, _NOT_IMPLEMENTED = 0, 1, 3, 4
_NAME_OF_QUESTION = 0xC00C
# Short: endpoints come and go, and asking again costs next to nothing.
_LIFE_SECONDS = 5
# What any client takes in one datagram.
_MAX_LENGTH = 512
_TRUNCATED = 0x0200
_CONNECTION_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Record:
    """One answer: an address, a name, or a target with its port."""

    kind: int
    value: str
    port: int = 0


Lookup = Callable[[str], Sequence[Record] | None]
"""Returns every record of a name, without its last dot; None when nobody has that name."""


def answered(query: bytes, lookup: Lookup, max_bytes: int = _MAX_LENGTH) -> bytes | None:
    """Return the answer to a query; None for what is no query at all."""
    if len(query) < 12:
        return None
    identity, flags, questions = struct.unpack_from("!HHH", query)
    if flags & _ANSWER:
        return None
    kept = _ANSWER | _AUTHORITATIVE | _RECURSION | (flags & _RECURSION_WANTED)
    if flags & 0x7800 or questions != 1:
        return struct.pack("!HHHHHH", identity, kept | _NOT_IMPLEMENTED, 0, 0, 0, 0)
    try:
        name, end = _name(query, 12)
        kind, _ = struct.unpack_from("!HH", query, end)
    except (IndexError, struct.error, UnicodeDecodeError):
        return struct.pack("!HHHHHH", identity, kept | _FORMAT_ERROR, 0, 0, 0, 0)
    question = query[12 : end + 4]
    records = lookup(name.lower())
    if records is None:
        return struct.pack("!HHHHHH", identity, kept | _NO_NAME, 1, 0, 0, 0) + question
    found = [_packed(item) for item in records if kind in (item.kind, ANY) or item.kind == CNAME]
    answer = b"".join(found)
    if 12 + len(question) + len(answer) > max_bytes:
        found = _fitting(found, max_bytes - 12 - len(question))
        answer, kept = b"".join(found), kept | _TRUNCATED
    return struct.pack("!HHHHHH", identity, kept, 1, len(found), 0, 0) + question + answer


def _fitting(records: Sequence[bytes], room: int) -> list[bytes]:
    found: list[bytes] = []
    for record in records:
        room -= len(record)
        if room < 0:
            break
        found.append(record)
    return found


def _name(message: bytes, position: int) -> tuple[str, int]:
    """Return a name and where it ends; a question's is never compressed."""
    labels = []
    while size := message[position]:
        if size > 63:
            raise IndexError("compressed name in a question")
        labels.append(message[position + 1 : position + 1 + size].decode("ascii"))
        position += 1 + size
    return ".".join(labels), position + 1


def _encoded(name: str) -> bytes:
    labels = name.rstrip(".").split(".")
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def _packed(record: Record) -> bytes:
    if record.kind == A:
        content = socket.inet_aton(record.value)
    elif record.kind == SRV:
        content = struct.pack("!HHH", 0, 100, record.port) + _encoded(record.value)
    else:
        content = _encoded(record.value)
    head = struct.pack(
        "!HHHIH", _NAME_OF_QUESTION, record.kind, _INTERNET, _LIFE_SECONDS, len(content)
    )
    return head + content


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
