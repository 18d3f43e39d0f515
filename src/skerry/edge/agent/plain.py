"""Containers as plain processes: no isolation, nothing needed of the machine.

Each container is a shim with the program below it, in a session of its own. The program's paths
and ports are translated (see ``paths``); it starts in a directory where its mounts appear as
links, so that relative paths and ``SKERRY_ROOT`` lead to them.

With bubblewrap on the machine the same processes run in a mount and process namespace instead,
where mounts are what they claim to be. A pod that has a sandbox has more: its containers run in
namespaces of their own (see ``container_root``) on the pod's network (see ``network_keeper``), so
that nothing of what they say has to be translated.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from skerry.edge.agent.catalogue import Catalogue
from skerry.edge.agent.paths import filled, real_path, with_real_paths, with_real_ports
from skerry.edge.agent.processes import Process, alive, end_group, signal_group, wait_gone
from skerry.edge.agent.runtime import CannotStart, Container, ContainerSpec, Exit, Image

_SHIM = str(Path(__file__).parent / "shim.py")
_ENTERING = str(Path(__file__).parent / "entering.py")
# Where this package is, for processes that are started without the environment's paths.
SOURCES = str(Path(__file__).parents[3])
RECORD = "record.json"
EXIT = "exit.json"
LOG = "log"
# The reason of an end that nobody saw.
LOST = "ContainerStatusUnknown"
# As kubelet: containerLogMaxSize.
_LOG_BYTES = 10 * 1024 * 1024
_TRIAL_SECONDS = 5.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What a program finds on any machine; nothing of the agent's own environment is passed on.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Wrap = Callable[[ContainerSpec, Sequence[str]], Sequence[str]]


class PlainRuntime:
    """Runs containers as processes; *wrap* may put something around a program."""

    name = "skerry-process"
    version = "1.0"

    def __init__(self, catalogue: Catalogue, isolation: str = "none", wrap: Wrap | None = None):
        self.isolation = isolation
        self._catalogue = catalogue
        self._wrap = wrap

    def image(self, reference: str) -> Image:
        return self._catalogue.find(reference)

    async def start(self, spec: ContainerSpec) -> Container:
        return await self.launch(self._told(spec, spec.argv), sandbox=_sandbox(spec))

    async def launch(self, run: ContainerSpec, **how: Any) -> Container:
        """Start what *run* says, in the machine's or the container's own words, below a shim.

        *how* is for the shim: in which namespaces, through which OCI runtime.
        """
        run.directory.mkdir(parents=True, exist_ok=True)
        message = {
            "argv": run.argv,
            "environment": dict(run.environment),
            "directory": run.working_directory,
            "user": run.user,
            "group": run.group,
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
        loop = asyncio.get_running_loop()
        failure = await loop.run_in_executor(None, _run_shim, json.dumps(message).encode())
        found = self.adopt(run.directory)
        if failure or found is None:
            raise CannotStart(failure or _SPEECHLESS)
        return found

    def adopt(self, directory: Path) -> Container | None:
        record = _read(directory / RECORD)
        return None if record is None else _ProcessContainer(directory, record)

    def beside(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        run = self._told(spec, argv)
        if spec.sandbox is None:
            return run
        task = {
            "pid": (_read(spec.directory / RECORD) or {}).get("pid", 0),
            "argv": run.argv,
            "directory": run.working_directory,
            "user": spec.user,
            "group": spec.group,
            "locale": run.environment.get("LC_CTYPE"),
        }
        words = (sys.executable, "-I", "-S", _ENTERING, json.dumps(task))
        return replace(run, argv=words, working_directory="/")

    def _told(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        """Return what to run in the words of where it runs: the machine's, or the container's."""
        if spec.sandbox is not None:
            return contained(spec, argv)
        root = _root(spec)
        first = _first_port(spec)
        known, rest = _by_origin(spec.image, argv)
        isolated = self._wrap is not None
        words = [filled(word, spec.ports, first, spec.mounts) for word in known]
        for argument in rest:
            text = argument if isolated else with_real_paths(argument, spec.mounts)
            words.append(with_real_ports(text, spec.ports))
        environment = _environment(spec, root, isolated=isolated)
        found = replace(
            spec,
            argv=tuple(words),
            environment=environment,
            working_directory=_directory(spec, root),
        )
        if self._wrap is not None:
            found = replace(found, argv=tuple(self._wrap(spec, words)))
        return found


def _first_port(spec: ContainerSpec) -> int:
    """Return the port a program that serves one is to serve."""
    if len(spec.ports) > 1 and spec.image.ports and spec.image.ports[0] in spec.ports:
        return spec.image.ports[0]
    return min(spec.ports, default=0)


def _by_origin(image: Image, argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words of a command that come from the catalogue, and those the pod says.

    Only the catalogue's have places to be filled; a pod's text is never looked into.
    """
    size = len(image.entrypoint)
    if tuple(argv[:size]) != image.entrypoint:
        size = 0
    if tuple(argv[size:]) == image.command:
        size = len(argv)
    if argv[0] in image.programs:
        return (*image.programs[argv[0]], *argv[1:size]), argv[max(1, size) :]
    return argv[:size], argv[size:]


def contained(spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
    """Return what to run in a container with namespaces: what was said, and the image's own."""
    first = _first_port(spec)
    known, rest = _by_origin(spec.image, argv)
    words = [filled(word, spec.ports, first, (), "0.0.0.0") for word in known]  # noqa: S104
    environment = {"PATH": _PATH, "HOME": "/root"}
    for name, value in spec.image.environment.items():
        environment[name] = filled(value, spec.ports, first, (), "0.0.0.0")  # noqa: S104
    # The same names as without namespaces, so that a script may rely on them.
    environment |= {f"SKERRY_PORT_{port}": str(port) for port in spec.ports}
    return replace(
        spec,
        argv=(*words, *rest),
        environment={**environment, **spec.environment},
        working_directory=spec.working_directory or spec.image.working_directory or "/",
    )


def _sandbox(spec: ContainerSpec) -> dict[str, Any] | None:
    """Return what the shim must know to give a container its namespaces."""
    if spec.sandbox is None:
        return None
    root = spec.directory / "root"
    root.mkdir(parents=True, exist_ok=True)
    named = [*spec.image.entrypoint, *spec.image.command]
    named += [word for words in spec.image.programs.values() for word in words]
    programs = [os.path.dirname(word) for word in named if word.startswith("/")]
    return {
        "user": spec.sandbox.user,
        "network": spec.sandbox.network,
        "host_name": spec.sandbox.host_name,
        "processes": f"/proc/{spec.beside}/ns/pid" if spec.beside else "",
        "root": str(root),
        "mounts": [[str(m.source), m.path, m.read_only] for m in spec.mounts],
        "required": [sys.prefix, sys.base_prefix, *programs],
    }


_SPEECHLESS = "the container's shim ended without a word"


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


class _ProcessContainer:
    """A shim and the program below it, ours or found again."""

    def __init__(self, directory: Path, record: Mapping[str, Any]) -> None:
        self._directory = directory
        self._shim = Process(record["shim"], record["shim_start"])
        self._program = Process(record.get("pid", 0), record.get("pid_start", 0))
        self.began = _moment(record["began_ns"])

    @property
    def identity(self) -> str:
        # The directory is the pod's uid, the container's name and the attempt.
        text = "/".join(self._directory.parts[-4:])
        return f"skerry://{hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def process(self) -> int:
        return self._program.pid

    async def wait(self) -> Exit:
        await wait_gone(self._shim)
        # Reap it when it is our child; a found one is init's.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._shim.pid, os.WNOHANG)  # noqa: ASYNC222 - does not wait
        found = _read(self._directory / EXIT)
        if found is not None:
            failure = str(found.get("failure") or "")
            return Exit(
                found["code"],
                _moment(found["began_ns"]),
                _moment(found["ended_ns"]),
                found["signal"],
                "StartError" if failure else LOST if found.get("lost") else "",
                failure or (_LOST_TEXT if found.get("lost") else ""),
            )
        # The shim was killed, or the machine went down; the program must not go on unwatched.
        end_group(self._program)
        await wait_gone(self._program)
        ended = self._last_sign()
        self._record_loss(ended)
        return Exit(137, self.began, ended, signal.SIGKILL, LOST, _LOST_TEXT)

    def _last_sign(self) -> datetime:
        """Return the last time anything is known of the container."""
        try:
            seconds = (self._directory / LOG).stat().st_mtime
        except OSError:
            return self.began
        return max(self.began, _EPOCH + timedelta(seconds=int(seconds)))

    def _record_loss(self, ended: datetime) -> None:
        """Write what the shim could not, for whoever asks later."""
        began_ns, ended_ns = (int((m - _EPOCH).total_seconds() * 1e9) for m in (self.began, ended))
        lost = {"code": 137, "signal": 9, "failure": "", "lost": True}
        found = {**lost, "began_ns": began_ns, "ended_ns": ended_ns}
        with contextlib.suppress(OSError):
            (self._directory / EXIT).write_text(json.dumps(found))

    def signal(self, number: int) -> None:
        signal_group(self._program, number)


_LOST_TEXT = "The container could not be located when the pod was terminated"


def end_recorded(directory: Path) -> bool:
    """Kill what is recorded in a container's directory, shim and program; True when it ran."""
    record = _read(directory / RECORD)
    if record is None:
        return False
    program = Process(record.get("pid", 0), record.get("pid_start", 0))
    shim = Process(record["shim"], record["shim_start"])
    ran = alive(program)
    end_group(program)
    end_group(shim)
    return ran


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _root(spec: ContainerSpec) -> Path:
    """Make the directory where the container's mounts appear as links."""
    root = spec.directory / "root"
    root.mkdir(parents=True, exist_ok=True)
    for mount in spec.mounts:
        link = root / mount.path.strip("/")
        if link.is_symlink() or link == root or link.exists():
            continue
        # A mount below another one is reached through its own path only.
        with contextlib.suppress(OSError):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(mount.source)
    return root


def _directory(spec: ContainerSpec, root: Path) -> str:
    wanted = spec.working_directory or spec.image.working_directory
    if not wanted:
        return str(root)
    real = real_path(wanted, spec.mounts)
    if real != wanted:
        return real
    below = root / wanted.strip("/")
    below.mkdir(parents=True, exist_ok=True)
    return str(below)


def _environment(spec: ContainerSpec, root: Path, *, isolated: bool) -> dict[str, str]:
    first = min(spec.ports, default=0)
    found = {"PATH": _PATH, "HOME": str(root), "SKERRY_ROOT": str(root)}
    for name, value in spec.image.environment.items():
        found[name] = filled(value, spec.ports, first, spec.mounts)
    for wanted, real in spec.ports.items():
        found[f"SKERRY_PORT_{wanted}"] = str(real)
    for name, value in spec.environment.items():
        found[name] = value if isolated else with_real_paths(value, spec.mounts)
    return found


def bubblewrap(path: str = "") -> Wrap | None:
    """Return what puts bubblewrap around a program; None when the machine cannot do it.

    It must be recent enough to know overlays, and allowed to make namespaces; the only sure way
    to know is to try.
    """
    program = path or shutil.which("bwrap")
    if not program:
        return None
    # The machine's own files under a layer that is thrown away, so mount points can be made.
    own = [program, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    own += ["--overlay-src", "/", "--tmp-overlay", "/", "--dev", "/dev", "--proc", "/proc"]
    try:
        tried = subprocess.run(  # noqa: S603 - a program the administrator installed
            [*own, "--", "true"], capture_output=True, timeout=_TRIAL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if tried.returncode != 0:
        return None

    def wrap(spec: ContainerSpec, argv: Sequence[str]) -> Sequence[str]:
        words = list(own)
        for mount in sorted(spec.mounts, key=lambda item: item.path):
            words.append("--ro-bind" if mount.read_only else "--bind")
            words += [str(mount.source), mount.path]
        return [*words, "--", *argv]

    return wrap
