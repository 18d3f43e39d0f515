"""Networks of pods that have namespaces, as the agent uses them; see ``network_keeper``.

The keeper outlives the agent, so pods stay connected while the agent is away. Asking it takes a
fraction of a millisecond; what then takes time (connecting, accepting) is done here, on sockets
it made.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skerry.edge.agent.processes import Process, alive, end_group, start_time, wait_gone
from skerry.edge.agent.runtime import CannotStart, Sandbox

_KEEPER = str(Path(__file__).parent / "network_keeper.py")
_SOCKET = "network.sock"
_RECORD = "keeper.json"
_ASK_SECONDS = 10.0
_BACKLOG = 128
# A gateway every pod has; what listens there in the router's name is reached by all of them.
GATEWAY = "169.254.1.1"
NODE_NETWORK = "172.18.0.0/16"


class NoNamespaces(Exception):
    """The machine does not let this user make namespaces; the text says what it refused."""


class NetworkLost(Exception):
    """The keeper has ended, and every pod's connection with it."""


class PodNetwork:
    """The network of one edge; ``start`` before anything else."""

    def __init__(self, directory: Path, service_network: str) -> None:
        self._directory = directory
        self._service_network = service_network
        self._keeper = Process(0, 0)
        self._connection: socket.socket | None = None

    async def start(self) -> None:
        """Find the keeper of an earlier agent, or start one; raises ``NoNamespaces``."""
        found = _recorded(self._directory)
        if found is None or not alive(found):
            found = await self._started()
        self._keeper = found
        self._connection = self._connected()

    async def _started(self) -> Process:
        self._directory.mkdir(parents=True, exist_ok=True)
        # -I -S: nothing of the environment or of site-packages.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _KEEPER, str(self._directory)),
            *(self._service_network, NODE_NETWORK),
            env={},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        output, _ = await process.communicate()
        try:
            said = json.loads(output)
        except json.JSONDecodeError as error:
            raise NoNamespaces("the network's keeper ended without a word") from error
        if said["failure"]:
            raise NoNamespaces(str(said["failure"]))
        found = Process(said["pid"], start_time(said["pid"]) or 0)
        (self._directory / _RECORD).write_text(json.dumps(found))
        return found

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_ASK_SECONDS)
        place = os.open(self._directory, os.O_PATH | os.O_CLOEXEC)
        try:
            # By a short way: the whole path may be longer than a socket's name can be.
            connection.connect(f"/proc/self/fd/{place}/{_SOCKET}")
        except OSError as error:
            connection.close()
            raise NoNamespaces(f"the network's keeper does not answer: {error}") from error
        finally:
            os.close(place)
        return connection

    def close(self) -> None:
        """Let go of the keeper, which goes on."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def lost(self) -> None:
        """Wait until the keeper has ended, which it does not by itself; raises ``NetworkLost``."""
        await wait_gone(self._keeper)
        raise NetworkLost("the keeper of the pods' network has ended; starting again")

    def attach(self, uid: str, address: str) -> Sandbox:
        """Have a namespace for a pod; the same again when it has one. Raises ``CannotStart``."""
        said, _ = self._ask({"add": uid, "address": address})
        keeper = f"/proc/{self._keeper.pid}"
        descriptor = said["descriptor"]
        return Sandbox(f"{keeper}/ns/user", f"{keeper}/fd/{descriptor}", self._keeper.start)

    def outside(self) -> Sandbox:
        """Return what a pod that shares the machine's network gets: everything but that."""
        return Sandbox(f"/proc/{self._keeper.pid}/ns/user", "", self._keeper.start)

    def detach(self, uid: str) -> None:
        """Forget a pod's namespace; harmless when it has none."""
        with contextlib.suppress(CannotStart):
            self._ask({"remove": uid})

    def stream(self, uid: str) -> socket.socket:
        """Return a TCP socket of a pod's namespace; raises ``CannotStart``."""
        return self._socket({"socket": uid})

    def listening(self, address: str, port: int) -> socket.socket:
        """Return a socket that listens in the router; raises ``OSError``."""
        found = self._socket({"socket": ""})
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((address, port))
            found.listen(_BACKLOG)
        except OSError:
            found.close()
            raise
        return found

    def datagram_socket(self) -> socket.socket:
        """Return a UDP socket of the router; raises ``CannotStart``."""
        return self._socket({"datagram": ""})

    def datagrams(self, address: str, port: int) -> socket.socket:
        """Return a UDP socket bound in the router; raises ``OSError``."""
        found = self.datagram_socket()
        try:
            found.bind((address, port))
        except OSError:
            found.close()
            raise
        return found

    def _socket(self, request: Mapping[str, Any]) -> socket.socket:
        _, passed = self._ask(request)
        # What comes by a socket is inherited by default: containers would hold it open.
        os.set_inheritable(passed[0], False)
        found = socket.socket(fileno=passed[0])
        found.setblocking(False)
        return found

    def _ask(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
        if self._connection is None:
            raise CannotStart("the pods' network is not up")
        try:
            self._connection.sendall(json.dumps(request).encode())
            line, passed, _, _ = socket.recv_fds(self._connection, 4096, 1)
        except OSError as error:
            raise CannotStart(f"the pods' network does not answer: {error}") from error
        said = json.loads(line) if line else {"failure": "the pods' network has ended"}
        if said.get("failure"):
            raise CannotStart(str(said["failure"]))
        return said, passed


def _recorded(directory: Path) -> Process | None:
    try:
        return Process(*json.loads((directory / _RECORD).read_text()))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None


def end_network(directory: Path) -> None:
    """End the keeper recorded in *directory*; harmless when there is none."""
    found = _recorded(directory)
    if found is not None:
        end_group(found)
