"""Who sends the load of the API suite: ``wrk`` where it is installed, this process elsewhere.

A generator shares the machine with what it measures. One in Python needs as much of a core for a
GET as our server, and so measures itself; one in C needs a fraction. Whichever it is, what it used
itself is reported beside what it measured.
"""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench import load
from bench.load import Server

CONNECTIONS = 32
# Where the name of an object goes in the body of a create.
NAME = "NAME"
_RBAC = "rbac.authorization.k8s.io"
_ACCOUNT = "bench"


@dataclass(frozen=True, slots=True)
class Load:
    """What came of one load, and what sending it took."""

    requests: int
    failures: int
    seconds: float
    generator_seconds: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def generator_us(self) -> float:
        return self.generator_seconds / max(1, self.requests) * 1e6


class Generator(Protocol):
    """Sends requests over kept connections, one at a time on each."""

    name: str

    def get(self, server: Server, path: str, seconds: float) -> Load:
        """Read one object again and again."""

    def create(self, server: Server, path: str, body: str, mark: str, seconds: float) -> Load:
        """Create object after object of *body*, named after *mark*."""


def chosen(connections: int = CONNECTIONS) -> Generator:
    """Return the best generator there is on this machine."""
    found = shutil.which("wrk")
    return Wrk(found, connections) if found else InProcess(connections)


class InProcess:
    """The generator of this package."""

    name = "in-process"

    def __init__(self, connections: int) -> None:
        self._connections = connections

    def get(self, server: Server, path: str, seconds: float) -> Load:
        request = server.request("GET", path)
        return self._run(server, lambda _: request, seconds)

    def create(self, server: Server, path: str, body: str, mark: str, seconds: float) -> Load:
        def make(index: int) -> bytes:
            return server.request("POST", path, body.replace(NAME, f"{mark}-{index}").encode())

        return self._run(server, make, seconds)

    def _run(self, server: Server, make: Callable[[int], bytes], seconds: float) -> Load:
        began = time.process_time()
        outcome = asyncio.run(
            load.run(server, make, connections=self._connections, seconds=seconds)
        )
        used = time.process_time() - began
        return Load(outcome.requests, outcome.failures, outcome.seconds, used)


class Wrk:
    """``wrk``, one thread. It shows no client certificate: the server must know a token."""

    name = "wrk"

    def __init__(self, program: str, connections: int) -> None:
        self._program = program
        self._connections = connections

    def get(self, server: Server, path: str, seconds: float) -> Load:
        return self._run(server, "", path, seconds)

    def create(self, server: Server, path: str, body: str, mark: str, seconds: float) -> Load:
        head, tail = (json.dumps(part) for part in body.split(NAME))
        script = f"""
local count = 0
local headers = {{["Content-Type"] = "application/json"}}
for name, value in pairs(wrk.headers) do headers[name] = value end
request = function()
  count = count + 1
  return wrk.format("POST", nil, headers, {head} .. "{mark}-" .. count .. {tail})
end
"""
        return self._run(server, script, path, seconds)

    def _run(self, server: Server, script: str, path: str, seconds: float) -> Load:
        with tempfile.TemporaryDirectory(prefix="skerry-bench-") as folder:
            file = Path(folder) / "load.lua"
            file.write_text(script + _REPORT)
            url = f"https://{server.host}:{server.port}{server.prefix}{path}"
            headers = [word for line in server.headers.splitlines() for word in ("-H", line)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [self._program, "-t1", f"-c{self._connections}", f"-d{max(1, round(seconds))}s",
                 *headers, "-s", str(file), url],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seen = json.loads(done.stdout.rsplit("\n", 1)[-1])
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Load(seen["requests"], seen["failures"], seen["microseconds"] / 1e6, used)


_REPORT = """
done = function(summary)
  local e = summary.errors
  io.write(string.format('{"requests": %d, "failures": %d, "microseconds": %d}',
    summary.requests, e.connect + e.read + e.write + e.status + e.timeout, summary.duration))
end
"""


def with_token(server: Server) -> Server:
    """Return *server* as an account of its own that may do everything knows it, by a token.

    It works on any Kubernetes, so that ours and a peer are asked in the same way.
    """
    account = {"metadata": {"name": _ACCOUNT}}
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    binding = {
        "metadata": {"name": _ACCOUNT},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": _ACCOUNT}],
    }
    asked = {"spec": {"expirationSeconds": 3600}}
    for path, body in (
        (accounts, account),
        (f"/apis/{_RBAC}/v1/clusterrolebindings", binding),
        (f"{accounts}/{_ACCOUNT}/token", asked),
    ):
        status, answer = load.ask(server, "POST", path, json.dumps(body).encode())
        if status not in (200, 201, 409):
            raise RuntimeError(f"POST {path}: {status} {answer[:300]!r}")
    token = json.loads(answer)["status"]["token"]
    return replace(server, headers=f"Authorization: Bearer {token}\r\n")
