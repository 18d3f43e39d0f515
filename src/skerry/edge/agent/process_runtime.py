"""Containers as processes of this machine, each below a shim and in a session of its own.

How far they are kept apart is in ``Abilities`` and in ``isolation``:

* ``namespaces``: a pod that has a sandbox has a network of its own (see ``network_keeper``), and
  its containers see what ``root_plan`` says in namespaces of their own (see ``container_root``)
* ``bubblewrap``: the same files through that program, with the machine's network
* ``none``: the machine's files, users and network; paths and ports are translated, and the program
  starts in a directory where its mounts appear as links

Everywhere a program begins with the rights its security context leaves it (see ``privileges``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skerry.edge.agent.catalogue import Catalogue
from skerry.edge.agent.machine_files import MachineFiles, interpreter_paths
from skerry.edge.agent.namespaces import KINDS
from skerry.edge.agent.privileges import Rights
from skerry.edge.agent.process_container import EXIT, LOG, RECORD, ProcessContainer, read_json
from skerry.edge.agent.program_words import below_root, contained, translated
from skerry.edge.agent.root_plan import BadMountPath, Content, Step, Wanted, root_plan
from skerry.edge.agent.runtime import (
    Abilities,
    CannotStart,
    Container,
    ContainerSpec,
    Image,
    Mount,
    Users,
)
from skerry.edge.agent.seccomp_filter import default_filter

_SHIM = str(Path(__file__).parent / "shim.py")
_ENTERING = str(Path(__file__).parent / "entering.py")
# Where this package is, for processes that are started without the environment's paths.
SOURCES = str(Path(__file__).parents[3])
# As kubelet: containerLogMaxSize.
_LOG_BYTES = 10 * 1024 * 1024


class ProcessRuntime:
    """Runs containers as processes; *bubblewrap* is that program, where it is to be used."""

    name = "skerry-process"
    version = "1.0"

    def __init__(
        self,
        catalogue: Catalogue,
        isolation: str = "none",
        abilities: Abilities | None = None,
        bubblewrap: str = "",
        private: Sequence[str] = (),
    ) -> None:
        """*private* are paths of the machine that no container sees, wherever they lie."""
        self.isolation = isolation
        self.abilities = abilities or Abilities()
        self._catalogue = catalogue
        self._bubblewrap = bubblewrap
        self._private = tuple(private)

    def image(self, reference: str) -> Image:
        return self._catalogue.find(reference)

    async def start(self, spec: ContainerSpec) -> Container:
        # Planning looks at many files; how many is the pod's to choose.
        how = await asyncio.get_running_loop().run_in_executor(None, self._how, spec)
        return await self.launch(self._command(spec, spec.argv), **how)

    async def launch(self, run: ContainerSpec, **how: Any) -> Container:
        """Start what *run* says, in the machine's or the container's own words, below a shim.

        *how* is for the shim: in which namespaces, through which OCI runtime.
        """
        run.directory.mkdir(parents=True, exist_ok=True)
        message = {
            "argv": run.argv,
            "environment": dict(run.environment),
            "directory": run.working_directory,
            "rights": rights_of(run, self.abilities.users)._asdict(),
            "control_group": run.confinement.control_group,
            "log": str(run.directory / LOG),
            "log_bytes": _LOG_BYTES,
            "record": str(run.directory / RECORD),
            "exit": str(run.directory / EXIT),
            "sources": SOURCES,
            "stdin": run.input.stdin,
            "stdin_once": run.input.once,
            "tty": run.input.tty,
            **how,
        }
        failure = await _carried_through(_run_shim, json.dumps(message).encode())
        found = self.adopt(run.directory)
        if failure or found is None:
            raise CannotStart(failure or _SPEECHLESS)
        return found

    def adopt(self, directory: Path) -> Container | None:
        record = read_json(directory / RECORD)
        return None if record is None else ProcessContainer(directory, record)

    def beside(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        try:
            run = self._command(spec, argv)
            path = _write_task(spec.directory, self._task(spec, run))
        except OSError as error:
            raise CannotStart(f"a command cannot be run: {error}") from error
        words = (sys.executable, "-I", "-S", _ENTERING, path)
        # None of the container's variables: they would be obeyed by our own interpreter's loader.
        return replace(run, argv=words, environment={}, working_directory="/")

    def _require_sandbox(self, spec: ContainerSpec) -> None:
        """Refuse what would be run on the machine itself where pods have namespaces."""
        if self.abilities.network and spec.sandbox is None:
            raise CannotStart("the pod has no namespaces")

    def _task(self, spec: ContainerSpec, run: ContainerSpec) -> dict[str, Any]:
        self._require_sandbox(spec)
        record = read_json(spec.directory / RECORD) or {}
        by_process = [f"/proc/{record.get('pid', 0)}/ns/{kind}" for kind in KINDS]
        if spec.sandbox is not None and not record.get("pid"):
            # Never without: it would be run on the machine itself.
            raise CannotStart("the container is not running")
        return {
            # An image's container, or one of an agent before this one, is entered by its process.
            "namespaces": (record.get("namespaces") or by_process) if spec.sandbox else None,
            "argv": run.argv,
            "directory": run.working_directory,
            "rights": rights_of(spec, self.abilities.users)._asdict(),
            "control_group": spec.confinement.control_group,
            "environment": dict(run.environment),
            "bubblewrap": self._wrapped(spec),
        }

    def _how(self, spec: ContainerSpec) -> dict[str, Any]:
        self._require_sandbox(spec)
        return {"sandbox": self._sandbox(spec), "bubblewrap": self._wrapped(spec)}

    def _sandbox(self, spec: ContainerSpec) -> dict[str, Any] | None:
        """Return what the shim must know to give a container its namespaces."""
        if spec.sandbox is None:
            return None
        root = spec.directory / "root"
        root.mkdir(parents=True, exist_ok=True)
        return {
            "user": spec.sandbox.user,
            "network": spec.sandbox.network,
            "host_name": spec.sandbox.host_name,
            "processes": spec.beside,
            "identity": identity_of(spec, self.abilities.users),
            "sysctls": dict(spec.confinement.sysctls),
            "root": str(root),
            "steps": self._steps(spec),
        }

    def _wrapped(self, spec: ContainerSpec) -> dict[str, Any] | None:
        """Return what must be known to start a container through bubblewrap."""
        if not self._bubblewrap or spec.sandbox is not None:
            return None
        identity = identity_of(spec, self.abilities.users)
        if identity is None and self.abilities.users == "one":
            identity = (0, 0)
        return {
            "program": self._bubblewrap,
            "identity": identity,
            "steps": self._steps(spec),
        }

    def _steps(self, spec: ContainerSpec) -> list[Step]:
        """Return the plan of what a container sees; raises ``CannotStart``."""
        wanted = Wanted(
            [_content(mount) for mount in spec.mounts],
            (*interpreter_paths(), *spec.image.paths),
            self._private,
            spec.confinement.read_only_root,
            spec.confinement.storage_bytes,
            spec.confinement.control_group,
        )
        try:
            return root_plan(MachineFiles(), wanted)
        except BadMountPath as error:
            raise CannotStart(str(error)) from error

    def _command(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        """Return what to run in the words of where it runs: the machine's, or the container's."""
        if spec.sandbox is not None:
            return contained(spec, argv)
        if self._bubblewrap:
            return contained(spec, argv, own_network=False)
        found = translated(spec, argv, _root(spec))
        Path(found.working_directory).mkdir(parents=True, exist_ok=True)
        return found


def _write_task(directory: Path, task: Mapping[str, Any]) -> str:
    """Write a task where only this user reads it, and return where; whoever does it removes it.

    Not as an argument: everybody on the machine can see those, and variables may be secret.
    """
    descriptor, path = tempfile.mkstemp(prefix="task-", dir=directory)
    with os.fdopen(descriptor, "w") as file:
        json.dump(task, file)
    return path


def rights_of(spec: ContainerSpec, users: Users) -> Rights:
    """Return what a program begins with; see ``Confinement`` for what was asked."""
    asked = spec.confinement
    rights = Rights(
        capabilities=sorted(asked.capabilities),
        no_new_privileges=asked.no_new_privileges,
        seccomp=default_filter(platform.machine()) if asked.seccomp else "",
    )
    if users == "any":
        return rights._replace(
            user=asked.user or 0, group=asked.group or 0, groups=list(asked.groups)
        )
    if users == "own":
        # Without a namespace a filter may be set only by that promise, unless by root; and root in
        # a container around us has not every right.
        return rights._replace(no_new_privileges=True)
    return rights


def identity_of(spec: ContainerSpec, users: Users) -> tuple[int, int] | None:
    """Return who a container is in a namespace with one user only; None for root."""
    asked = spec.confinement
    found = (asked.user or 0, asked.group or 0)
    return found if users == "one" and any(found) else None


def _content(mount: Mount) -> Content:
    volume = mount.volume
    return Content(
        str(volume.root),
        volume.inside,
        mount.path,
        mount.is_read_only,
        volume.links,
        volume.devices,
    )


_SPEECHLESS = "the container's shim ended without a word"


async def _carried_through(begin: Callable[[bytes], str], message: bytes) -> str:
    """Return what *begin* says, run by a thread; who stops waiting waits for its end all the same.

    A shim cannot be called back. Whoever ends a container that is about to start must find all of
    its record, or it would wait for a program that it does not know.
    """
    begun = asyncio.get_running_loop().run_in_executor(None, begin, message)
    try:
        return await asyncio.shield(begun)
    except asyncio.CancelledError:
        await asyncio.wait([begun])
        raise


def _run_shim(message: bytes) -> str:
    """Start a shim and give it its task; returns what went wrong, empty when the program runs."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    # -I -S: nothing of the environment or of site-packages; starts in 15 ms and takes 8 MB.
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", _SHIM],
        {},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, in_read, 0),
            (os.POSIX_SPAWN_DUP2, out_write, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
        setsid=True,
    )
    os.close(in_read)
    os.close(out_write)
    with open(in_write, "wb") as task, contextlib.suppress(BrokenPipeError):
        task.write(message)
    with open(out_read, "rb") as answer:
        line = answer.readline()
    failure = str(json.loads(line)["failure"]) if line else _SPEECHLESS
    if failure:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    return failure


def _root(spec: ContainerSpec) -> Path:
    """Make the directory where the container's mounts appear as links."""
    root = spec.directory / "root"
    root.mkdir(parents=True, exist_ok=True)
    for mount in spec.mounts:
        link = root / below_root(mount.path)
        if link.is_symlink() or link == root or link.exists():
            continue
        # A mount below another one is reached through its own path only.
        with contextlib.suppress(OSError):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(mount.source)
    return root
