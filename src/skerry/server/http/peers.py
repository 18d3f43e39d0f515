"""Who is at the other end of a connection, and whether they are still there."""

from __future__ import annotations

import asyncio
import socket

from skerry.server.http.message import Peer

# HTTP/1.1 has no ping: the kernel must find the peers that vanished without a word.
_KEEPALIVE_IDLE_SECONDS = 30
_KEEPALIVE_INTERVAL_SECONDS = 15
_KEEPALIVE_PROBES = 4


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Say who is at the other end; the certificate was verified in the handshake."""
    name = transport.get_extra_info("peername")
    address = str(name[0]) if isinstance(name, tuple) else ""
    secured = transport.get_extra_info("ssl_object")
    certificate = None if secured is None else secured.getpeercert(binary_form=True)
    return Peer(address, certificate)


def keep_alive(connection: socket.socket | None) -> None:
    """Make the kernel probe a silent peer, so that a dead watcher is found within two minutes."""
    if connection is None or connection.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", _KEEPALIVE_IDLE_SECONDS),
        ("TCP_KEEPINTVL", _KEEPALIVE_INTERVAL_SECONDS),
        ("TCP_KEEPCNT", _KEEPALIVE_PROBES),
    ):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
