"""Servers to measure: ours, started for the purpose, and any other by its kubeconfig."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from bench.load import Server

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Measured:
    """A server and, where it is ours, its process."""

    server: Server
    kubeconfig: Path
    process: subprocess.Popen[str] | None = None
    ready_seconds: float = 0.0

    @property
    def pid(self) -> int:
        """The process's id; what runs on another machine has none here."""
        if self.process is None:
            raise RuntimeError("the process of another machine's server is not known")
        return self.process.pid

    def cpu_seconds(self) -> float:
        """Return the processor time used so far; 0 for a server that is not ours."""
        if self.process is None:
            return 0.0
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_mb(self) -> float:
        """Return the resident memory in megabytes; 0 for a server that is not ours."""
        return self._megabytes("VmRSS:")

    def max_resident_mb(self) -> float:
        """Return the most megabytes that were ever resident."""
        return self._megabytes("VmHWM:")

    def _megabytes(self, name: str) -> float:
        if self.process is None:
            return 0.0
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
        return 0.0


@contextlib.contextmanager
def ours(
    command: str = "serve",
    flags: Sequence[str] = (),
    tree: Path | None = None,
    under: Sequence[str] = (),
) -> Iterator[Measured]:
    """Start one of our servers on a fresh data directory; stop it at the end.

    It is this tree's unless another checkout is given, and runs *under* a program that looks on
    if one is named.
    """
    environment = dict(os.environ)
    if tree is not None:
        environment["PYTHONPATH"] = str(tree / "src")
    with tempfile.TemporaryDirectory(prefix="skerry-bench-") as directory:
        data = Path(directory) / "data"
        began = time.perf_counter()
        arguments = [sys.executable, "-m", "skerry.cli", command, "--data-dir", str(data)]
        process = subprocess.Popen(
            [*under, *arguments, "--port", "0", "-v", "0", *flags],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if " ready at " not in line:
                raise RuntimeError(f"skerry {command} did not start: {line!r}")
            ready = time.perf_counter() - began
            kubeconfig = data / "admin.kubeconfig"
            yield Measured(from_kubeconfig(kubeconfig), kubeconfig, process, ready)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120 if under else 30)


def from_kubeconfig(path: Path) -> Server:
    """Return the server of a kubeconfig's current context."""
    config = yaml.safe_load(path.read_text())
    contexts = {c["name"]: c["context"] for c in config["contexts"]}
    context = contexts[config["current-context"]]
    cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == context["cluster"])
    user = next(u["user"] for u in config["users"] if u["name"] == context["user"])
    url = urlsplit(cluster["server"])
    token = user.get("token")
    return Server(
        url.hostname or "",
        url.port or 443,
        _tls(cluster, user),
        f"Authorization: Bearer {token}\r\n" if token else "",
        url.path.rstrip("/"),
    )


def _tls(cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    if authority:
        tls = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    elif cluster.get("certificate-authority"):
        tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
    else:
        tls = ssl.create_default_context()
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if user.get("client-certificate-data"):
        with tempfile.NamedTemporaryFile() as file:
            for name in ("client-key-data", "client-certificate-data"):
                file.write(base64.b64decode(user[name]) + b"\n")
            file.flush()
            tls.load_cert_chain(file.name)
    elif user.get("client-certificate"):
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
    return tls
