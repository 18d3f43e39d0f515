"""The process that holds an edge's network: a router, and a namespace for each pod.

Runs as a process of its own (``python -I -S network_keeper.py DIRECTORY SERVICES NODES``), outlives
the agent as pods do, and ends with the edge. In a user namespace where it is root it holds one
network namespace that routes, and one per pod, joined to it by a pair of interfaces. A pod has a
real address; the router takes all addresses of Services and nodes for its own, so that whoever
listens there in its name is reached by every pod.

It does nothing but answer the agent, on a socket in its directory, one line of JSON each way:

* ``{"add": UID, "address": A}``: have a namespace for a pod; answers its number among our files
* ``{"remove": UID}``: forget it
* ``{"socket": UID or ""}``: pass a TCP socket of a pod's namespace, or of the router's
* ``{"datagram": ""}``: the same for UDP

A socket belongs to the namespace it was made in for as long as it lives, so the agent, outside,
connects and listens with it as if it were inside.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))))

from skerry.edge.agent import container_root, machine_files, namespaces, netlink, root_plan

SOCKET = "network.sock"
# A gateway every pod has: link-local, so it is nobody's on either side.
GATEWAY = "169.254.1.1"
_INTERFACE = "eth0"
_MAX_LINE = 4096
_MAX_FILES = 65536


class Keeper:
    """The namespaces, and what is done with them."""

    def __init__(self) -> None:
        self._router = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._pods: dict[str, tuple[int, str]] = {}
        self._made = 0

    def prepare(self, local: list[str]) -> None:
        """Make the router."""
        netlink.set_up("lo")
        netlink.add_address("lo", GATEWAY)
        for network in local:
            netlink.add_local(network)
        _set("ip_forward", "1")
        _set("ip_unprivileged_port_start", "0")

    def add(self, uid: str, address: str) -> int:
        """Have a namespace for a pod; returns the descriptor that stands for it."""
        if uid in self._pods:
            return self._pods[uid][0]
        self._made += 1
        name = f"pod{self._made}"
        pod = self._fresh()
        self._pods[uid] = (pod, name)
        try:
            netlink.add_pair(name, _INTERFACE, pod)
            netlink.set_up(name)
            netlink.add_route(f"{address}/32", name)
            namespaces.join_descriptor(pod)
            netlink.add_address(_INTERFACE, address)
            netlink.set_up(_INTERFACE)
            netlink.add_route(f"{GATEWAY}/32", _INTERFACE)
            netlink.add_route("0.0.0.0/0", _INTERFACE, GATEWAY)
        except OSError:
            namespaces.join_descriptor(self._router)
            self.remove(uid)
            raise
        finally:
            namespaces.join_descriptor(self._router)
        return pod

    def _fresh(self) -> int:
        """Return a new namespace that leads nowhere yet."""
        try:
            namespaces.unshare(namespaces.CLONE_NEWNET)
            netlink.set_up("lo")
            _set("ip_unprivileged_port_start", "0")
            return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            namespaces.join_descriptor(self._router)

    def remove(self, uid: str) -> None:
        """Forget a pod's namespace; it goes with its last process."""
        found = self._pods.pop(uid, None)
        if found is not None:
            descriptor, name = found
            with contextlib.suppress(OSError):
                netlink.remove_link(name)
            os.close(descriptor)

    def socket(self, uid: str, kind: int) -> socket.socket:
        """Return a socket of a pod's namespace; of the router's without one."""
        if not uid:
            return socket.socket(socket.AF_INET, kind)
        try:
            namespaces.join_descriptor(self._pods[uid][0])
            return socket.socket(socket.AF_INET, kind)
        finally:
            namespaces.join_descriptor(self._router)

    def answer(self, asked: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """Return the answer to a request, and what to pass with it."""
        if "add" in asked:
            return {"descriptor": self.add(asked["add"], asked["address"])}, []
        if "remove" in asked:
            self.remove(asked["remove"])
            return {}, []
        kind = "socket" if "socket" in asked else "datagram"
        uid = asked[kind]
        if uid and uid not in self._pods:
            return {"failure": f"no network for pod {uid}"}, []
        made = self.socket(uid, socket.SOCK_STREAM if kind == "socket" else socket.SOCK_DGRAM)
        return {}, [made.detach()]


def _set(name: str, value: str) -> None:
    with open(f"/proc/sys/net/ipv4/{name}", "w") as file:
        file.write(value)


def _serve(keeper: Keeper, listening: socket.socket) -> None:
    while True:
        connection, _ = listening.accept()
        with connection:
            while line := connection.recv(_MAX_LINE):
                try:
                    reply, passed = keeper.answer(json.loads(line))
                except OSError as error:
                    reply, passed = {"failure": str(error)}, []
                text = json.dumps(reply).encode() + b"\n"
                try:
                    socket.send_fds(connection, [text], passed)
                except OSError:
                    break  # the agent has gone; the next one asks again
                finally:
                    for descriptor in passed:
                        os.close(descriptor)


def _try_containers(directory: str) -> None:
    """Prove that containers can be made here: raises ``OSError`` when they cannot."""
    place = os.path.join(directory, "trial")
    os.makedirs(place, exist_ok=True)
    _apart(lambda: _in_trial(place))


def _in_trial(place: str) -> None:
    namespaces.unshare(namespaces.CLONE_NEWPID)
    _apart(lambda: _view(place))


def _apart(action: Callable[[], None]) -> None:
    """Do something in a process of its own; raises ``OSError`` with what went wrong there."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _report(write, action)
    os.close(write)
    with open(read) as answer:
        failure = answer.read()
    os.waitpid(child, 0)
    if failure:
        raise OSError(failure)


def _view(place: str) -> None:
    namespaces.unshare(namespaces.CLONE_NEWNS | namespaces.CLONE_NEWUTS | namespaces.CLONE_NEWIPC)
    steps = root_plan.root_plan(machine_files.MachineFiles(), root_plan.Wanted())
    container_root.build(place, steps)
    namespaces.change_root(place)


def _report(write: int, action: Callable[[], None]) -> None:
    """Do something and end; what goes wrong is written down."""
    try:
        action()
    except OSError as error:
        os.write(write, str(error).encode())
    os._exit(0)


def _keep(directory: str, local: list[str], reply: int, go: int) -> None:
    """Be the keeper, in namespaces of its own, until killed."""
    os.setsid()
    namespaces.unshare(namespaces.CLONE_NEWUSER | namespaces.CLONE_NEWNET)
    os.write(reply, b"unshared\n")
    if not os.read(go, 1):
        os._exit(1)
    keeper = Keeper()
    keeper.prepare(local)
    keeper.add("trial", "169.254.2.1")
    keeper.remove("trial")
    _try_containers(directory)
    os.chdir(directory)
    # By a relative name: the whole path may be longer than a socket's name can be.
    listening = socket.socket(socket.AF_UNIX)
    if os.path.lexists(SOCKET):
        os.unlink(SOCKET)
    listening.bind(SOCKET)
    os.chmod(SOCKET, 0o600)
    listening.listen(16)
    os.write(reply, b"ready\n")
    os.close(reply)
    _serve(keeper, listening)


def main() -> None:
    """Start the keeper and go; one line of JSON says its pid, or why there is none."""
    directory, *local = sys.argv[1:]
    # What was open where we come from must not be held open for as long as we live.
    os.closerange(3, _MAX_FILES)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    reply_reader, reply = os.pipe()
    go_read, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        # Nobody reads what it could say; the line above it would be held open.
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        try:
            _keep(directory, local, reply, go_read)
        except OSError as error:
            os.write(reply, f"{error}\n".encode())
        os._exit(1)
    os.close(reply)
    with open(reply_reader) as answer:
        said = answer.readline().strip()
        if said == "unshared":
            namespaces.map_identities(pid, os.geteuid(), os.getegid())
            os.write(go, b"g")
            said = answer.readline().strip()
    failure = "" if said == "ready" else said or "the network's keeper ended without a word"
    sys.stdout.write(json.dumps({"pid": pid, "failure": failure}) + "\n")


if __name__ == "__main__":
    main()
