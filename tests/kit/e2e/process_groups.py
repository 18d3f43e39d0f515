"""A hub that runs as several processes, and connections of which the test knows whose they are."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.kit.e2e.hubs import Hub

_MAX_TRIES = 400
_ESTABLISHED = "01"


class Line:
    """A connection that is kept, to one process of a hub."""

    def __init__(self, hub: Hub, user: str = "kcp-admin") -> None:
        config = yaml.safe_load(hub.kubeconfig.read_text())
        self._token = next(u["user"]["token"] for u in config["users"] if u["name"] == user)
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        address = urlsplit(hub.url).netloc
        self._connection = http.client.HTTPSConnection(address, context=tls, timeout=30)
        self._connection.connect()
        # The handshake is done by whoever has taken the connection; only then is it theirs.
        self.ask("GET", "/readyz")
        self.pid = _process_of(hub, self._connection.sock.getsockname()[1])

    def ask(
        self, method: str, path: str, body: Any = None, as_user: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the document of the answer."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        if as_user:
            headers["Impersonate-User"] = as_user
        self._connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else {"text": text}

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the events of a watch until it ends; the connection is good for nothing else."""
        headers = {"Authorization": f"Bearer {self._token}"}
        self._connection.request("GET", f"{path}?watch=true", headers=headers)
        self._connection.sock.settimeout(None)
        answer = self._connection.getresponse()
        while event := answer.readline():
            yield json.loads(event)

    def cut(self) -> None:
        """End the connection while somebody may be reading from it."""
        self._connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()


def processes_of(hub: Hub) -> list[int]:
    """Return the processes that serve; their supervisor is not one of them."""
    found = Path(f"/proc/{hub.pid}/task/{hub.pid}/children").read_text().split()
    return [int(pid) for pid in found]


def line_to_each(hub: Hub, user: str = "kcp-admin") -> dict[int, Line]:
    """Return one connection to each process; which one takes a connection is chance."""
    wanted, lines = set(processes_of(hub)), dict[int, Line]()
    for _ in range(_MAX_TRIES):
        line = Line(hub, user)
        if line.pid in lines:
            line.close()
        lines.setdefault(line.pid, line)
        if set(lines) >= wanted:
            return lines
    raise AssertionError(f"of {wanted} only {set(lines)} took connections")


def _process_of(hub: Hub, client_port: int) -> int:
    """Return which process has the other end of a connection of ours."""
    port = urlsplit(hub.url).port or 0
    inode = ""
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = row.split()
        local, remote = (int(words[n].rpartition(":")[2], 16) for n in (1, 2))
        if (local, remote, words[3]) == (port, client_port, _ESTABLISHED):
            inode = words[9]
    # A hub of one process has no supervisor.
    for pid in (*processes_of(hub), hub.pid):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            except FileNotFoundError:
                continue
            if re.fullmatch(rf"socket:\[{inode}\]", target):
                return pid
    raise AssertionError(f"nobody has the connection from port {client_port}")
