"""UDP to Services, on a network that pods have to themselves.

A client's datagrams go to one endpoint for as long as they keep coming, by a socket of its own, so
that answers find their way back: what a real cluster's connection tracking does.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

from skerry.edge.agent.network import Backend, Resolve
from skerry.edge.agent.runtime import CannotStart
from skerry.kit.log import Logger

_log = Logger("network")
# As the kernel forgets a UDP "connection" that was answered.
_IDLE_SECONDS = 120.0
# More clients at once than an edge has; the oldest is forgotten then.
_MAX_CLIENTS = 1024

OpenSocket = Callable[[], socket.socket]
"""Returns a UDP socket in the network the endpoints are on; raises ``CannotStart``."""


class DatagramForwarder:
    """Passes datagrams that come to one socket on to whatever *resolve* says."""

    def __init__(self, resolve: Resolve, name: str, open_socket: OpenSocket) -> None:
        self._resolve = resolve
        self._name = name
        self._open = open_socket
        self._socket: socket.socket | None = None
        self._transport: asyncio.DatagramTransport | None = None
        self._clients: dict[Backend, _Client] = {}

    def take(self, bound: socket.socket) -> None:
        """Serve a socket that is bound already."""
        self._socket = bound

    async def serve(self) -> None:
        """Take datagrams from now on."""
        if self._socket is None:
            return
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(
            lambda: _Listening(self), sock=self._socket
        )

    def release(self) -> None:
        """Stop listening, and forget everybody."""
        if self._transport is not None:
            self._transport.close()
        elif self._socket is not None:
            self._socket.close()
        for client in list(self._clients.values()):
            client.close()

    async def stop(self) -> None:
        """Stop altogether."""
        self.release()

    def received(self, data: bytes, sender: Backend) -> None:
        """Pass a client's datagram on."""
        client = self._clients.get(sender)
        if client is None:
            client = self._joined(sender)
        if client is not None:
            client.send(data)

    def _joined(self, sender: Backend) -> _Client | None:
        backend = self._resolve()
        if backend is None:
            return None
        try:
            out = self._open()
        except CannotStart as error:
            _log.debug("no socket for a datagram", port=self._name, error=error)
            return None
        try:
            out.connect(backend)
        except OSError as error:
            out.close()
            _log.debug("backend cannot be reached", port=self._name, error=error)
            return None
        if len(self._clients) >= _MAX_CLIENTS:
            next(iter(self._clients.values())).close()
        client = self._clients[sender] = _Client(self, sender, out)
        return client

    def answered(self, data: bytes, receiver: Backend) -> None:
        """Send an answer back to its client."""
        if self._transport is not None:
            self._transport.sendto(data, receiver)

    def forget(self, sender: Backend) -> None:
        """Forget a client."""
        self._clients.pop(sender, None)


class _Listening(asyncio.DatagramProtocol):
    def __init__(self, forwarder: DatagramForwarder) -> None:
        self._forwarder = forwarder

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        self._forwarder.received(data, (addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        _log.debug("datagram refused", error=exc)


class _Client:
    """One client's way to its endpoint; closes itself when nothing comes for a while."""

    def __init__(self, forwarder: DatagramForwarder, sender: Backend, out: socket.socket) -> None:
        self._forwarder = forwarder
        self._sender = sender
        self._out = out
        self._loop = asyncio.get_running_loop()
        self._expiry = self._loop.call_later(_IDLE_SECONDS, self.close)
        self._loop.add_reader(out, self._readable)

    def send(self, data: bytes) -> None:
        self._renew()
        # A full buffer loses it, as the network might.
        with contextlib.suppress(OSError):
            self._out.send(data)

    def _readable(self) -> None:
        try:
            data = self._out.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            self.close()  # nobody listens there; the next datagram may find another
            return
        self._renew()
        self._forwarder.answered(data, self._sender)

    def _renew(self) -> None:
        self._expiry.cancel()
        self._expiry = self._loop.call_later(_IDLE_SECONDS, self.close)

    def close(self) -> None:
        self._expiry.cancel()
        self._loop.remove_reader(self._out)
        self._out.close()
        self._forwarder.forget(self._sender)
