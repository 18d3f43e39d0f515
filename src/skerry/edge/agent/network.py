"""Addresses and ports of an edge, whether its pods have networks of their own or not.

With namespaces (``pod_network``) a pod's address is real, though only the edge's own network has
it. Without, all processes share the machine's loopback interface, and addresses of pods and
Services are names: behind a pod's port stands the loopback port its process was given, and
Services get a loopback port each, which pods find in their environment. ``Network`` knows which.

A host port belongs to its node, so two nodes may have the same one; only published ports (kind's
``extraPortMappings``) are listened on at the machine.

Connections are copied byte by byte by the agent. A connection to a port nobody serves is closed,
as a refused one would be.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from skerry.edge.agent.pod_network import PodNetwork
from skerry.edge.agent.runtime import CannotStart
from skerry.kit.log import Logger
from skerry.kit.streams import copy_stream

_log = Logger("network")
LOOPBACK = "127.0.0.1"
# Enough for a backend on this machine; it either listens or refuses.
_DIAL_SECONDS = 5.0
_BACKLOG = 128
# Longer than any of the catalogue's programs takes to listen, short enough to be no surprise.
_PATIENCE_SECONDS = 1.0
_RETRY_SECONDS = 0.05
_POD_NETWORK = "10.244"

Backend = tuple[str, int]
Resolve = Callable[[], Backend | None]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[Backend], Awaitable[Streams]]
"""Connects to where a ``Backend`` says; raises ``OSError``."""


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
    """One pod's ports: container port → loopback port, and host port → container port.

    A pod that is ``inside`` the edge's network has its container ports at its own address.
    """

    address: str
    node: str
    ports: dict[int, int] = field(default_factory=dict)
    host_ports: dict[int, int] = field(default_factory=dict)
    inside: bool = False

    def place(self, port: int) -> Backend:
        """Return where a port really is.

        One the pod did not declare is tried as it is: its process may listen on it itself.
        """
        if self.inside:
            return (self.address, port)
        return (LOOPBACK, self.ports.get(port, port))


class Network:
    """What every address of one edge leads to; *inside* is the pods' own network, if any."""

    def __init__(self, inside: PodNetwork | None = None) -> None:
        self.inside = inside
        self._pods: dict[str, PodPorts] = {}
        self._by_address: dict[str, str] = {}
        self._node_ports: dict[int, Resolve] = {}
        # Places of this machine that pods may be led to: the edge's own API server.
        self.shared: frozenset[Backend] = frozenset()

    def join(self, uid: str, pod: PodPorts) -> None:
        """Have a pod on the network; again with the same uid replaces it."""
        self._pods[uid] = pod
        self.reserve(uid, pod.address)

    def leave(self, uid: str) -> None:
        """Take a pod off the network; harmless when it was not on it."""
        self._pods.pop(uid, None)
        for address in [known for known, owner in self._by_address.items() if owner == uid]:
            del self._by_address[address]

    def reserve(self, uid: str, address: str) -> None:
        """Keep an address for a pod that will join with it."""
        self._by_address[address] = uid

    def fresh_address(self, node_number: int, uid: str) -> str:
        """Return an address of the node's range that no pod has, now kept for this one."""
        for number in range(2, 65_000):
            address = f"{_POD_NETWORK}.{node_number}.{number}"
            if number > 254:
                address = f"{_POD_NETWORK}.{node_number + 100 + number // 250}.{number % 250 + 2}"
            if address not in self._by_address:
                self.reserve(uid, address)
                return address
        raise PortTaken("every address of the node's range is taken")

    def pod_port(self, uid: str, port: int) -> Backend | None:
        """Return where a pod's port really is; None when there is no such pod."""
        pod = self._pods.get(uid)
        return None if pod is None else pod.place(port)

    def at(self, address: str, port: int) -> Backend | None:
        """Return where a pod address and port really are."""
        uid = self._by_address.get(address)
        return None if uid is None else self.pod_port(uid, port)

    def node_port(self, node: str, port: int) -> Backend | None:
        """Return what a port of a node leads to: a pod's host port, else a Service's node port."""
        for pod in self._pods.values():
            if pod.node == node and port in pod.host_ports:
                return pod.place(pod.host_ports[port])
        resolve = self._node_ports.get(port)
        return None if resolve is None else resolve()

    async def connect(self, backend: Backend) -> Streams:
        """Connect to a backend, inside the pods' network where it is there; once, as probes do."""
        uid = self._by_address.get(backend[0], "")
        if self.inside is None or self._is_shared(backend):
            return await asyncio.open_connection(*backend)
        if uid not in self._pods or not self._pods[uid].inside:
            return await _outside(backend)
        try:
            return await _connected(self.inside.stream(uid), backend)
        except ConnectionRefusedError:
            # From within the pod, so one that listens for itself only is found as well.
            return await _connected(self.inside.stream(uid), (LOOPBACK, backend[1]))
        except CannotStart as error:
            raise ConnectionRefusedError(str(error)) from error

    def _is_shared(self, backend: Backend) -> bool:
        """Tell whether a place of this machine is one that belongs to the edge and its pods."""
        return backend in self.shared or any(
            (LOOPBACK, real) == backend
            for pod in self._pods.values()
            if not pod.inside
            for real in pod.ports.values()
        )

    async def dial(self, backend: Backend) -> Streams:
        """Connect to a backend, giving one that was only just started a moment to listen."""
        return await dialled(backend, self.connect)

    def set_node_ports(self, ports: dict[int, Resolve]) -> None:
        """Say what the node ports of Services lead to."""
        self._node_ports = ports


async def _outside(backend: Backend) -> Streams:
    """Connect to somewhere that is not this machine; raises ``OSError``.

    Pods that have a network of their own choose where the agent connects to for them: by the
    proxy's request, a probe's host, an endpoint of a Service. What listens on the machine's
    loopback often trusts whoever can reach it, as services of clouds at link-local addresses do.
    """
    host, port = backend
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # By address: a name could lead elsewhere when it is asked for again.
    known = dict.fromkeys(str(item[4][0]) for item in found)
    failure: OSError = PermissionError(errno.EACCES, "not outside this machine", host)
    for address in known:
        if is_near(address):
            continue
        try:
            return await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
    raise failure


def is_near(text: str) -> bool:
    """Tell whether an address is this machine's loopback, its link's, everybody's or nobody's."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
    )


class Forwarder:
    """Listens on one port and copies each connection to whatever *resolve* says."""

    def __init__(self, resolve: Resolve, name: str, connect: Connect | None = None) -> None:
        self._resolve = resolve
        self._name = name
        self._dial = connect or dialled
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
        self.take(listening)

    def take(self, listening: socket.socket) -> None:
        """Serve a socket that listens already."""
        listening.setblocking(False)
        self._socket = listening
        self.port = listening.getsockname()[1]

    async def serve(self) -> None:
        """Accept connections on the port that was taken."""
        if self._socket is not None:
            self._server = await asyncio.start_server(self._serve, sock=self._socket)

    def release(self) -> None:
        """Stop listening, and nothing else yet."""
        if self._server is not None:
            self._server.close()
        elif self._socket is not None:
            self._socket.close()

    async def stop(self) -> None:
        """Stop listening and cut what is open."""
        self.release()
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
            back_reader, back_writer = await self._dial(backend)
        except (OSError, TimeoutError) as error:
            _log.debug("backend refuses", port=self._name, error=error)
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(copy_stream(reader, back_writer))
                tasks.create_task(copy_stream(back_reader, writer))
        finally:
            await _closed(back_writer)


async def _connected(connecting: socket.socket, backend: Backend) -> Streams:
    try:
        await asyncio.get_running_loop().sock_connect(connecting, backend)
        return await asyncio.open_connection(sock=connecting)
    except BaseException:
        connecting.close()
        raise


async def _opened(backend: Backend) -> Streams:
    return await asyncio.open_connection(*backend)


async def dialled(backend: Backend, connect: Connect = _opened) -> Streams:
    """Connect to a backend; one that was only just started is given a moment to listen.

    Nothing announces that a process listens, so refusals are asked about again for a while.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE_SECONDS
    while True:
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                return await connect(backend)
        except ConnectionRefusedError:
            if loop.time() >= deadline:
                raise
            await asyncio.sleep(_RETRY_SECONDS)


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

            forwarder = Forwarder(resolve, f"{port.address}:{port.host_port}", network.dial)
            await forwarder.start(port.address, port.host_port)
            started.append(forwarder)
    except PortTaken:
        for forwarder in started:
            await forwarder.stop()
        raise
    return started
