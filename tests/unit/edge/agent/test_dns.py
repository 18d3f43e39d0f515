"""Cluster DNS on a socket and, for what is too long for that, on a connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any

from skerry.edge.agent.dns import DnsServer
from skerry.wire.dns import A, Record


def query(name: str, identity: int = 7) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!HHHHHH", identity, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"


def lookup(name: str) -> list[Record] | None:
    return [Record(A, f"10.0.0.{n}") for n in range(60)] if name == "web" else None


class Transport(asyncio.DatagramTransport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[bytes, Any]] = []

    def sendto(self, data: Any, addr: Any = None) -> None:
        self.sent.append((bytes(data), addr))


def server() -> tuple[DnsServer, Transport]:
    made, transport = DnsServer(lookup), Transport()
    made.connection_made(transport)
    return made, transport


def test_an_answer_goes_back_to_who_asked() -> None:
    made, transport = server()
    made.datagram_received(query("nobody"), ("10.9.9.9", 5))
    ((answer, address),) = transport.sent
    assert address == ("10.9.9.9", 5)
    assert struct.unpack_from("!H", answer)[0] == 7
    assert struct.unpack_from("!H", answer, 2)[0] & 0xF == 3


def test_noise_is_not_answered() -> None:
    made, transport = server()
    made.datagram_received(b"noise", ("10.9.9.9", 5))
    made.error_received(OSError("gone"))
    assert transport.sent == []
    DnsServer(lookup).datagram_received(query("web"), ("10.9.9.9", 5))


async def test_what_a_datagram_cuts_a_connection_carries_whole() -> None:
    made, transport = server()
    made.datagram_received(query("web"), ("10.9.9.9", 5))
    cut = transport.sent[0][0]
    assert len(cut) <= 512
    assert struct.unpack_from("!H", cut, 2)[0] & 0x0200
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening = socket.socket()
    for each in (bound, listening):
        each.setblocking(False)
        each.bind(("127.0.0.1", 0))
    listening.listen()
    running = asyncio.ensure_future(made.run(bound, listening))
    port = listening.getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for identity in (1, 2):
        asked = query("web", identity)
        writer.write(struct.pack("!H", len(asked)) + asked)
        (size,) = struct.unpack("!H", await reader.readexactly(2))
        answer = await reader.readexactly(size)
        assert struct.unpack_from("!HHHH", answer)[0] == identity
        assert struct.unpack_from("!H", answer, 6)[0] == 60
    writer.close()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
