"""Addresses and ports of an edge whose processes all share the machine's loopback interface.

A pod's address and a Service's are names: nothing of this machine has them. Behind a pod's port
stands the loopback port its process was given; ``Network`` knows which. A host port belongs to
its node, so two nodes may have the same one; only published ports (kind's ``extraPortMappings``)
are listened on at the machine. Services get a loopback port each, told to pods by environment.

Connections are copied byte by byte by the agent. A connection to a port nobody serves is closed,
as a refused one would be.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from skerry.kit.log import Logger

_log = Logger("network")
LOOPBACK = "127.0.0.1"
_COPY_BYTES = 64 * 1024
# Enough for a backend on this machine; it either listens or refuses.
_DIAL_SECONDS = 5.0
_BACKLOG = 128
# Longer than any of the catalogue's programs takes to listen, short enough to be no surprise.
_PATIENCE_SECONDS = 1.0
_RETRY_SECONDS = 0.05
_POD_NETWORK = "10.244"

Backend = tuple[str, int]
Resolve = Callable[[], Backend | None]


class PortTaken(Exception):
    """A port that must be listened on belongs to somebody else."""


def free_port() -> int:
    """Return a loopback port that nobody listens on now.

    Somebody could take it before the program does; the program then fails and is restarted with
    another one.
    """
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(slots=True)
class PodPorts:
    """One pod's ports: container port → loopback port, and host port → container port."""

    address: str
    node: str
    ports: dict[int, int] = field(default_factory=dict)
    host_ports: dict[int, int] = field(default_factory=dict)


class Network:
    """What every address of one edge leads to."""

    def __init__(self) -> None:
        self._pods: dict[str, PodPorts] = {}
        self._by_address: dict[str, str] = {}
        self._node_ports: dict[int, Resolve] = {}

    def join(self, uid: str, pod: PodPorts) -> None:
        """Have a pod on the network; again with the same uid replaces it."""
        self._pods[uid] = pod
        self._by_address[pod.address] = uid

    def leave(self, uid: str) -> None:
        """Take a pod off the network; harmless when it was not on it."""
        pod = self._pods.pop(uid, None)
        if pod is not None and self._by_address.get(pod.address) == uid:
            del self._by_address[pod.address]

    def fresh_address(self, node_number: int) -> str:
        """Return an address of the node's range that no pod has."""
        for number in range(2, 65_000):
            address = f"{_POD_NETWORK}.{node_number}.{number}"
            if number > 254:
                address = f"{_POD_NETWORK}.{node_number + 100 + number // 250}.{number % 250 + 2}"
            if address not in self._by_address:
                return address
        raise PortTaken("every address of the node's range is taken")

    def pod_port(self, uid: str, port: int) -> Backend | None:
        """Return where a pod's port really is.

        A port the pod did not declare is tried as it is: its process may listen on it itself.
        """
        pod = self._pods.get(uid)
        return None if pod is None else (LOOPBACK, pod.ports.get(port, port))

    def at(self, address: str, port: int) -> Backend | None:
        """Return where a pod address and port really are."""
        uid = self._by_address.get(address)
        return None if uid is None else self.pod_port(uid, port)

    def node_port(self, node: str, port: int) -> Backend | None:
        """Return what a port of a node leads to: a pod's host port, else a Service's node port."""
        for pod in self._pods.values():
            if pod.node == node and port in pod.host_ports:
                inner = pod.host_ports[port]
                return (LOOPBACK, pod.ports.get(inner, inner))
        resolve = self._node_ports.get(port)
        return None if resolve is None else resolve()

    def host_ports_taken(self, node: str) -> set[int]:
        """Return the host ports pods of a node have."""
        return {port for pod in self._pods.values() if pod.node == node for port in pod.host_ports}

    def set_node_ports(self, ports: dict[int, Resolve]) -> None:
        """Say what the node ports of Services lead to."""
        self._node_ports = ports


class Forwarder:
    """Listens on one port and copies each connection to whatever *resolve* says."""

    def __init__(self, resolve: Resolve, name: str) -> None:
        self._resolve = resolve
        self._name = name
        self._server: asyncio.Server | None = None
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, address: str, port: int) -> None:
        """Listen; raises ``PortTaken``."""
        self.bind(address, port)
        await self.serve()

    def bind(self, address: str, port: int) -> None:
        """Take the port, 0 for any, without waiting; raises ``PortTaken``."""
        listening = socket.socket()
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((address, port))
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise PortTaken(f"{address}:{port}: {error.strerror}") from error
        listening.setblocking(False)
        self._socket = listening
        self.port = listening.getsockname()[1]

    async def serve(self) -> None:
        """Accept connections on the port that was taken."""
        if self._socket is not None:
            self._server = await asyncio.start_server(self._serve, sock=self._socket)

    async def stop(self) -> None:
        """Stop listening and cut what is open."""
        if self._server is not None:
            self._server.close()
        elif self._socket is not None:
            self._socket.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            await self._connect(reader, writer)
        except asyncio.CancelledError:
            # Ours alone: the listener is going.
            pass
        finally:
            if task is not None:
                self._tasks.discard(task)
            await _closed(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = self._resolve()
        if backend is None:
            _log.debug("nobody serves a port", port=self._name)
            return
        try:
            back_reader, back_writer = await dialled(backend)
        except (OSError, TimeoutError) as error:
            _log.debug("backend refuses", port=self._name, error=error)
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(copy_stream(reader, back_writer))
                tasks.create_task(copy_stream(back_reader, writer))
        finally:
            await _closed(back_writer)


async def dialled(backend: Backend) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a backend; one that was only just started is given a moment to listen.

    Nothing announces that a process listens, so refusals are asked about again for a while.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE_SECONDS
    while True:
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                return await asyncio.open_connection(*backend)
        except ConnectionRefusedError:
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(_RETRY_SECONDS)


async def copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction to its end, and tell the other side that it ended."""
    with contextlib.suppress(ConnectionError, OSError):
        while data := await reader.read(_COPY_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError, OSError):
        await writer.wait_closed()


@dataclass(frozen=True, slots=True)
class Published:
    """A port of a node that the machine publishes, as kind's ``extraPortMappings`` say."""

    node: str
    container_port: int
    host_port: int
    address: str = LOOPBACK


async def publish(network: Network, ports: Iterable[Published]) -> list[Forwarder]:
    """Listen on every published port; raises ``PortTaken`` and leaves none open then."""
    started: list[Forwarder] = []
    try:
        for port in ports:

            def resolve(wanted: Published = port) -> Backend | None:
                return network.node_port(wanted.node, wanted.container_port)

            forwarder = Forwarder(resolve, f"{port.address}:{port.host_port}")
            await forwarder.start(port.address, port.host_port)
            started.append(forwarder)
    except PortTaken:
        for forwarder in started:
            await forwarder.stop()
        raise
    return started
