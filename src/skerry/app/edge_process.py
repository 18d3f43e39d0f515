"""Embedded edges as processes of this machine: started, found again, stopped, removed.

An edge is a directory. Who runs it is recorded there by pid and start time, so neither a crash nor
a reused pid can mislead; whatever is found running without its supervisor is ended before a new
one starts.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from skerry.app.edge_config import (
    NETWORK_DIRECTORY,
    PODS_DIRECTORY,
    EdgeConfig,
    EdgeConfigError,
    load_config,
    save_config,
)
from skerry.app.edge_syncer import EdgeSyncer
from skerry.app.ports import NoPortFree, lasting_port
from skerry.app.supervised import READY, NotStarted, Supervised
from skerry.edge.agent.leftovers import end_all
from skerry.edge.agent.pod_network import end_network
from skerry.kit.secret_files import secret_directory

_RECORD = "processes.json"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
# Its nodes are called NAME-control-plane and NAME-worker2, which are labels of 63 characters.
_NAME_LENGTH = 48
LOG = "edge.log"


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
    def process(self) -> Supervised:
        """The edge's server, supervised."""
        return Supervised(self.directory / _RECORD, self.directory / LOG)

    @property
    def syncer(self) -> EdgeSyncer:
        """The edge's syncer, once it has joined a hub."""
        return EdgeSyncer(self.name, self.directory / "syncer", self.kubeconfig)

    @property
    def running(self) -> bool:
        """Whether the edge's server runs now."""
        return self.process.running

    def create(self, config: EdgeConfig) -> None:
        """Make the edge's directory; an edge that is there already must be the same."""
        check_name(self.name)
        if self.exists:
            known = self.config
            if (config.host_paths, config.host_network) != (known.host_paths, known.host_network):
                # What pods may have of the machine is the operator's to change at any time.
                known = replace(
                    known, host_paths=config.host_paths, host_network=config.host_network
                )
                save_config(self.directory, known)
            if replace(config, api_port=known.api_port) != known and (
                config.api_port in (0, known.api_port)
            ):
                raise EdgeError(
                    f"edge {self.name} exists with another configuration; "
                    f"first: skerry edge delete {self.name}"
                )
            return
        try:
            port = config.api_port or lasting_port(config.api_address, self.directory)
        except NoPortFree as error:
            raise EdgeError(f"edge {self.name}: {error}") from error
        config = replace(config, api_port=port)
        # Before anything is kept: a user who must change a port need not delete an edge first.
        _check_ports(config)
        try:
            save_config(self.directory, config)
        except OSError as error:
            raise EdgeError(
                f"edge {self.name} cannot be kept in {self.directory}: {error.strerror}"
            ) from error

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other commands about this edge waiting meanwhile."""
        secret_directory(self.directory)
        with (self.directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def start(self) -> None:
        """Run the edge, detached; returns when it answers. Harmless when it runs already."""
        with self._alone():
            self._start()

    def _start(self) -> None:
        process = self.process
        if process.supervised and process.running:
            self.syncer.start()
            return
        # One that lost its supervisor; its pods are taken over by the next.
        process.end()
        _check_ports(self.config)
        try:
            process.start(["skerry.app.edge_run", str(self.directory), READY])
        except NotStarted as error:
            self._end_pods()
            raise EdgeError(f"edge {self.name} did not start: {error}") from error
        self.syncer.start()

    def stop(self) -> None:
        """End the edge's syncer, its server and every pod; harmless when nothing runs."""
        with self._alone():
            self._stop()

    def _stop(self) -> None:
        self.syncer.stop()
        self.process.stop()
        self._end_pods()

    def _end_pods(self) -> None:
        """End every process of every pod, and then the network they were on."""
        end_all(self.directory / PODS_DIRECTORY)
        end_network(self.directory / NETWORK_DIRECTORY)

    def delete(self) -> bool:
        """Stop the edge and remove its directory; False when there is no such edge."""
        if not self.exists:
            return False
        with self._alone():
            self._stop()
            shutil.rmtree(self.directory, ignore_errors=True)
        return True


def check_name(name: str) -> None:
    """Raise unless nodes, contexts and folders can be called after an edge of this name."""
    if len(name) > _NAME_LENGTH or not _NAME.match(name):
        raise EdgeError(
            f"edge name {name!r}: want a lower-case RFC 1123 label of at most {_NAME_LENGTH} "
            "characters: letters a to z, digits and '-', with a letter or digit at either end, "
            "such as florin or shop-12"
        )


def _check_ports(config: EdgeConfig) -> None:
    """Raise when a port the edge needs belongs to somebody else."""
    delete = f"skerry edge delete {config.name} and create it anew"
    wanted = [(config.api_address, config.api_port, "its API server", delete)]
    wanted += [
        (port.address, port.host_port, "extraPortMappings", "name another hostPort there")
        for port in config.published
    ]
    for address, port, purpose, way_out in wanted:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                raise EdgeError(
                    f"edge {config.name} needs port {port} on {address} for {purpose}, "
                    f"which cannot be had: {error.strerror}; end who has it, or {way_out}"
                ) from error


@dataclass(frozen=True, slots=True)
class EdgeHome:
    """Where the edges of one user are kept: a directory, or a link to one, per edge."""

    root: Path

    def edge(self, name: str, directory: Path | None = None) -> EdgeProcess:
        """Return an edge by name; *directory* is where it is, when not here."""
        if directory is not None:
            return EdgeProcess(name, directory.resolve())
        if "/" in name or name in ("", ".", ".."):
            raise EdgeError(f"edge name {name!r}: want a name, not a path; see --data-dir")
        return EdgeProcess(name, (self.root / name).resolve())

    def register(self, edge: EdgeProcess) -> None:
        """Find an edge by name later, wherever it is."""
        place = self.root / edge.name
        if place.resolve() == edge.directory:
            return
        secret_directory(self.root)
        if place.is_symlink():
            place.unlink()
        if not place.exists():
            place.symlink_to(edge.directory)

    def forget(self, name: str) -> bool:
        """Forget where an edge was; False when nothing was known of it."""
        place = self.root / name
        if not place.is_symlink():
            return False
        place.unlink()
        return True

    def edges(self) -> Iterator[EdgeProcess]:
        """Yield every edge, by name."""
        if not self.root.is_dir():
            return
        for place in sorted(self.root.iterdir()):
            edge = EdgeProcess(place.name, place.resolve())
            if edge.exists:
                yield edge
