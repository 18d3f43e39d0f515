"""Embedded edges as processes of this machine: started, found again, stopped, removed.

An edge is a directory. Who runs it is recorded there by pid and start time, so neither a crash nor
a reused pid can mislead; whatever is found running without its supervisor is ended before a new
one starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from skerry.app.edge_config import (
    PODS_DIRECTORY,
    EdgeConfig,
    EdgeConfigError,
    load_config,
    save_config,
)
from skerry.edge.agent.leftovers import end_all
from skerry.edge.agent.processes import Process, alive, opened

_SUPERVISOR = str(Path(__file__).parent / "supervisor.py")
_RECORD = "processes.json"
LOG = "edge.log"
# A start is about a second of work; a machine that needs a minute has other problems.
_START_SECONDS = 60.0
_STOP_SECONDS = 15.0
_LOG_BYTES = 10 * 1024 * 1024
# Linux lends ports from 32768 on.
_FIRST_PORT, _PORTS = 22_000, 10_000


class EdgeError(Exception):
    """What is wrong with an edge, and what to do about it."""


@dataclass(frozen=True, slots=True)
class EdgeProcess:
    """One edge of this machine."""

    name: str
    directory: Path

    @property
    def exists(self) -> bool:
        return (self.directory / "edge.json").exists()

    @property
    def config(self) -> EdgeConfig:
        try:
            return load_config(self.directory)
        except EdgeConfigError as error:
            raise EdgeError(f"edge {self.name}: {error}") from error

    @property
    def kubeconfig(self) -> Path:
        """The edge's own kubeconfig, with administrator's rights."""
        return self.directory / "admin.kubeconfig"

    @property
    def running(self) -> bool:
        """Whether the edge's server runs now."""
        return alive(self._recorded("server"))

    def _recorded(self, role: str) -> Process:
        try:
            pid, start = json.loads((self.directory / _RECORD).read_text())[role]
        except (FileNotFoundError, json.JSONDecodeError, KeyError, ValueError):
            return Process(0, 0)
        return Process(pid, start)

    def create(self, config: EdgeConfig) -> None:
        """Make the edge's directory; an edge that is there already must be the same."""
        if self.exists:
            known = self.config
            if replace(config, api_port=known.api_port) != known and (
                config.api_port in (0, known.api_port)
            ):
                raise EdgeError(
                    f"edge {self.name} exists with another configuration; "
                    f"first: skerry edge delete {self.name}"
                )
            return
        config = replace(config, api_port=config.api_port or _lasting_port(config))
        # Before anything is kept: a user who must change a port need not delete an edge first.
        _check_ports(config)
        save_config(self.directory, config)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other commands about this edge waiting meanwhile."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def start(self) -> None:
        """Run the edge, detached; returns when it answers. Harmless when it runs already."""
        with self._alone():
            self._start()

    def _start(self) -> None:
        if alive(self._recorded("supervisor")) and self.running:
            return
        # One that lost its supervisor; its pods are taken over by the next.
        self._end_servers()
        config = self.config
        _check_ports(config)
        ready, told = os.pipe()
        os.set_inheritable(told, True)
        command = [sys.executable, "-m", "skerry.app.edge_run", str(self.directory), "{ready}"]
        self._shorten_log()
        with (self.directory / LOG).open("ab") as log:
            supervisor = subprocess.Popen(  # noqa: S603 - our own program
                [
                    *(sys.executable, "-I", "-S", _SUPERVISOR),
                    *(str(self.directory / _RECORD), str(told)),
                    *command,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                close_fds=True,
                pass_fds=(told,),
            )
        os.close(told)
        answer = _read_line(ready, _START_SECONDS)
        # It is to outlive us: nobody waits for it here.
        supervisor.returncode = 0
        if not answer:
            self._stop()
            raise EdgeError(f"edge {self.name} did not start: {self._last_words()}")

    def _shorten_log(self) -> None:
        """Begin a new log when the old one is long; one predecessor is kept."""
        log = self.directory / LOG
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))

    def stop(self) -> None:
        """End the edge's server and every pod of it; harmless when it does not run."""
        with self._alone():
            self._stop()

    def _stop(self) -> None:
        supervisor = self._recorded("supervisor")
        if alive(supervisor):
            os.kill(supervisor.pid, signal.SIGTERM)
            _wait_gone(supervisor, _STOP_SECONDS)
        self._end_servers()
        end_all(self.directory / PODS_DIRECTORY)

    def _end_servers(self) -> None:
        """Make sure that no server of the edge runs, supervised or not; pods are left alone."""
        for role in ("supervisor", "server"):
            process = self._recorded(role)
            if alive(process):
                os.kill(process.pid, signal.SIGKILL)
                _wait_gone(process, _STOP_SECONDS)

    def delete(self) -> None:
        """Stop the edge and remove its directory."""
        if not self.directory.exists():
            return
        with self._alone():
            self._stop()
            if self.exists:
                shutil.rmtree(self.directory, ignore_errors=True)

    def _last_words(self) -> str:
        """Return the end of the log, where the reason usually is."""
        try:
            lines = (self.directory / LOG).read_text(errors="replace").strip().splitlines()
        except FileNotFoundError:
            lines = []
        told = [line for line in lines[-40:] if line.startswith("skerry edge")]
        return told[-1] if told else f"see {self.directory / LOG}"


def _read_line(descriptor: int, seconds: float) -> bytes:
    """Return what is said on a pipe; empty when it is closed, or nothing is said in time."""
    try:
        readable, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 4096) if readable else b""
    finally:
        os.close(descriptor)


def _wait_gone(process: Process, seconds: float) -> None:
    descriptor = opened(process)
    if descriptor is None:
        return
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)


def _lasting_port(config: EdgeConfig) -> int:
    """Return a free port for the API server, below those the kernel lends to connections.

    It is kept for the edge's whole life; one of the kernel's could be lent to somebody else while
    the edge is stopped. Where to look first depends on the name, so edges seldom meet.
    """
    first = int(hashlib.sha256(config.name.encode()).hexdigest(), 16)
    for step in range(_PORTS):
        port = _FIRST_PORT + (first + step) % _PORTS
        with socket.socket() as probe:
            try:
                probe.bind((config.api_address, port))
            except OSError:
                continue
            return port
    raise EdgeError(f"no port between {_FIRST_PORT} and {_FIRST_PORT + _PORTS} is free")


def _check_ports(config: EdgeConfig) -> None:
    """Raise when a port the edge needs belongs to somebody else."""
    wanted = [(config.api_address, config.api_port, "its API server")]
    wanted += [(port.address, port.host_port, "extraPortMappings") for port in config.published]
    for address, port, purpose in wanted:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                raise EdgeError(
                    f"edge {config.name} needs port {port} on {address} for {purpose}, "
                    f"which cannot be had: {error.strerror}"
                ) from error


@dataclass(frozen=True, slots=True)
class EdgeHome:
    """Where the edges of one user are kept: a directory, or a link to one, per edge."""

    root: Path

    def edge(self, name: str, directory: Path | None = None) -> EdgeProcess:
        """Return an edge by name; *directory* is where it is, when not here."""
        if directory is not None:
            return EdgeProcess(name, directory.resolve())
        return EdgeProcess(name, (self.root / name).resolve())

    def register(self, edge: EdgeProcess) -> None:
        """Find an edge by name later, wherever it is."""
        place = self.root / edge.name
        if place.resolve() == edge.directory:
            return
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if place.is_symlink():
            place.unlink()
        if not place.exists():
            place.symlink_to(edge.directory)

    def forget(self, name: str) -> None:
        """Forget where an edge was."""
        place = self.root / name
        if place.is_symlink():
            place.unlink()

    def edges(self) -> Iterator[EdgeProcess]:
        """Yield every edge, by name."""
        if not self.root.is_dir():
            return
        for place in sorted(self.root.iterdir()):
            edge = EdgeProcess(place.name, place.resolve())
            if edge.exists:
                yield edge


def announcing(descriptor: int) -> Callable[[str], None]:
    """Return what tells a waiting starter that the edge is ready, once."""

    def announce(line: str) -> None:
        print(line, flush=True)  # noqa: T201 - the log's own line
        if descriptor >= 0:
            os.write(descriptor, b"ready\n")
            os.close(descriptor)

    return announce
