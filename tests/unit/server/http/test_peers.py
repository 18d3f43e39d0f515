"""Who is at the other end, and probes that find out when nobody is any more."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from skerry.server.http.message import Peer
from skerry.server.http.peers import keep_alive, peer_of


class Secured:
    def getpeercert(self, binary_form: bool = False) -> bytes:
        assert binary_form
        return b"der"


class Transport(asyncio.BaseTransport):
    def __init__(self, **extra: Any) -> None:
        super().__init__(extra)


def test_a_peer_has_an_address_and_perhaps_a_certificate() -> None:
    assert peer_of(Transport(peername=("192.0.2.1", 5))) == Peer("192.0.2.1")
    assert peer_of(Transport(peername=("::1", 5, 0, 0), ssl_object=Secured())) == Peer(
        "::1", b"der"
    )
    assert peer_of(Transport(peername="/run/socket")) == Peer("")
    assert peer_of(Transport()) == Peer("")


def test_a_silent_peer_is_found_within_two_minutes() -> None:
    with socket.socket() as connection:
        keep_alive(connection)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, probes = (
            connection.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle + interval * probes <= 120


def test_other_sockets_are_left_alone() -> None:
    keep_alive(None)
    with socket.socket(socket.AF_UNIX) as connection:
        keep_alive(connection)
        assert not connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
