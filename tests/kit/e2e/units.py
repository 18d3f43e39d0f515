"""Starts services as systemd would, where there is no systemd: user, directories, read-only system.

A unit's ``ExecStart`` runs in namespaces of its own: everything is read-only but its state, its
``/tmp`` is private, and it gains no privilege. It counts as started when it has said so.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PROGRAM = "/usr/local/bin/skerry"
_STATE, _ETC = Path("/var/lib"), "/etc/skerry"
# The machine's own /etc is read-only, and has no place to show another folder in.
_SHOWN_ETC = "/tmp/etc-skerry"
# Only a failing test waits this long.
_PATIENCE_SECONDS = 60.0


def settings_of(unit: Path, instance: str = "") -> dict[str, list[str]]:
    """Return the settings of a unit, in order; an empty assignment forgets those before it."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        name, equals, value = line.partition("=")
        if not equals or line.startswith(("#", ";")):
            continue
        found.setdefault(name, []).append(value.replace("%i", instance))
        if not value:
            found[name] = []
    return found


class Machine:
    """A machine's state and configuration below one folder, with users by number."""

    def __init__(self, folder: Path, users: Mapping[str, int]) -> None:
        self.folder = folder
        self._users = users
        self.state, self.etc = folder / "state", folder / "etc"
        for path in (self.state, self.etc):
            path.mkdir(parents=True)
            path.chmod(0o755)

    def configure(self, path: str, content: bytes, user: str) -> None:
        """Have a file below ``/etc/skerry`` that the group of *user* may read."""
        target = self.etc / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        for each, mode in ((target.parent, 0o750), (target, 0o640)):
            os.chown(each, 0, self._users[user])
            each.chmod(mode)
        self.etc.chmod(0o755)

    def prepare(self, settings: Mapping[str, list[str]]) -> tuple[int, list[Path]]:
        """Make the state directories of a unit; return its user and them."""
        user = self._users[settings["User"][0]]
        made = []
        for name in " ".join(settings["StateDirectory"]).split():
            path = self.state / name
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(int(settings["StateDirectoryMode"][0], 8))
            os.chown(path, user, user)
            made.append(path)
        return user, made


class Service:
    """One service of a *machine*."""

    def __init__(self, machine: Machine, unit: Path, instance: str = "", flags: str = "") -> None:
        settings = settings_of(unit, instance)
        user, writable = machine.prepare(settings)
        self._socket = f"skerry-{os.getpid()}-{unit.stem}"  # a name of the kernel's own
        self.log = machine.folder / f"{unit.stem}.log"
        self.command = [
            "bwrap", "--die-with-parent", "--unshare-ipc", "--unshare-uts",
            "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
            "--perms", "1777", "--tmpfs", "/tmp",
            *_interpreter(), "--tmpfs", str(_STATE),
            *(w for path in writable
              for w in ("--bind", str(path), str(_STATE / path.relative_to(machine.state)))),
            "--ro-bind", str(machine.etc), _SHOWN_ETC,
            "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin",
            "--setenv", "NOTIFY_SOCKET", f"@{self._socket}", "--chdir", "/",
            "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs",
            "--bounding-set=-all", "--inh-caps=-all", *_words(settings, flags),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start it; return what it said when it was ready."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"\0{self._socket}")
            manager.settimeout(_PATIENCE_SECONDS)
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(self.command, stdout=log, stderr=log)
            try:
                said = manager.recv(4096).decode()
            except TimeoutError:
                self._process.kill()
                self._process.wait()
                raise AssertionError(f"never ready: {self.log.read_text()}") from None
        assert said.startswith("READY=1"), said
        return said

    def stop(self) -> None:
        """Stop it as systemd does."""
        assert self._process is not None
        # bwrap waits for the service, its only child.
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGTERM)
        assert self._process.wait(_PATIENCE_SECONDS) == 0, self.log.read_text()


def _words(settings: Mapping[str, list[str]], flags: str) -> list[str]:
    """Return the command line, with *flags* for the variable of the environment file."""
    (line,) = settings["ExecStart"]
    words: list[str] = []
    for word in shlex.split(line):
        if word == PROGRAM:
            words += [sys.executable, "-m", "skerry.cli"]
        elif word.startswith("$"):
            words += shlex.split(flags)
        else:
            words.append(word.replace(_ETC, _SHOWN_ETC))
    return words


def _interpreter() -> list[str]:
    """Return what shows the tests' interpreter to users who may not enter its owner's home."""
    shown = sorted({Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[3]})
    hidden = {Path("/", path.parts[1]) for path in shown} & {Path("/root"), Path("/home")}
    # A checkout below /tmp is hidden as well, by the service's own.
    behind = (*hidden, Path("/tmp"))
    inside = [path for path in shown if any(path.is_relative_to(each) for each in behind)]
    between = sorted({up for path in inside for up in path.parents if len(up.parts) > 2})
    return [
        *(word for path in sorted(hidden) for word in ("--tmpfs", str(path))),
        *(word for path in between for word in ("--perms", "0755", "--dir", str(path))),
        *(word for path in shown for word in ("--ro-bind", str(path), str(path))),
    ]
