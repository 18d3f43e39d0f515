"""The hub and its controllers as supervised processes of one data directory."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from skerry.app.admin_kubeconfig import admin_kubeconfig
from skerry.app.console_record import console_record
from skerry.app.kubeconfig_files import load
from skerry.app.ports import NoPortFree, is_free, lasting_port
from skerry.app.supervised import READY, Interrupted, NotStarted, Supervised, wait_any
from skerry.kit.secret_files import secret_directory
from skerry.wire.kubeconfig import KubeconfigError

# The hub's own cluster and context in its kubeconfig, which names no workspace.
HUB_CONTEXT = "base"
_PARTS = ("hub", "controllers")
_NOBODY = -1
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class StackError(Exception):
    """What did not start or stop, in a sentence."""


@dataclass(frozen=True, slots=True)
class Part:
    """How one process of the stack is; *supervised*: somebody starts it again when it fails."""

    name: str
    running: bool
    pid: int
    supervised: bool


@dataclass(frozen=True, slots=True)
class Stack:
    """A hub and its controllers."""

    data_dir: Path

    @property
    def kubeconfig(self) -> Path:
        """The file that leads to the hub as its administrator."""
        return admin_kubeconfig(self.data_dir)

    @property
    def url(self) -> str:
        """Where the hub answers; empty before its first start."""
        try:
            known = load([self.kubeconfig])
        except KubeconfigError:
            return ""
        return str(known.clusters.get(HUB_CONTEXT, {}).get("server", ""))

    @property
    def console(self) -> str:
        """Where the hub's console is; empty without one."""
        try:
            return console_record(self.data_dir).read_text().strip()
        except OSError:
            return ""

    def _process(self, name: str) -> Supervised:
        record = hub_record(self.data_dir) if name == "hub" else self.data_dir / f"{name}.json"
        return Supervised(record, self.data_dir / f"{name}.log")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other commands that start or stop this stack waiting meanwhile."""
        try:
            secret_directory(self.data_dir)
            lock = (self.data_dir / "stack.lock").open("w")
        except OSError as error:
            raise StackError(f"cannot keep data in {self.data_dir}: {error.strerror}") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def up(
        self,
        hub_flags: Sequence[str],
        controller_flags: Sequence[str],
        stop: int = _NOBODY,
        *,
        console: bool = True,
    ) -> bool:
        """Start what does not run: the hub, and the controllers once it answers.

        Returns whether the hub was started; one that ran already has the flags it had.
        The controllers wait by themselves for their provider workspace. Something to read on the
        descriptor *stop* ends what was begun here and raises ``Interrupted``. With *console* the
        hub serves one where only this machine reaches it.
        """
        hub = self._process("hub")
        if hub.by_hand:
            raise StackError(
                f"a hub that was started with skerry hub keeps its data in {self.data_dir}; "
                f"first: skerry down --data-dir {self.data_dir}"
            )
        try:
            flags = ["--data-dir", str(self.data_dir), *self._with_lasting_port(hub_flags)]
            if console:
                flags += self._console_flags(hub_flags)
            begun = hub.start(["skerry.cli", "hub", *flags, "--ready-fd", READY], stop)
        except (NotStarted, NoPortFree) as error:
            raise StackError(f"the hub did not start: {error}") from error
        # Not the current context: that is wherever somebody who uses the file has gone.
        flags = ["--kubeconfig", str(self.kubeconfig), "--espw-context", HUB_CONTEXT]
        flags += _log_flags(hub_flags)
        try:
            self._process("controllers").start(
                ["skerry.cli", "controllers", *flags, *controller_flags], stop
            )
        except Interrupted:
            if begun:
                hub.stop()
            raise
        return begun

    def _with_lasting_port(self, flags: Sequence[str]) -> list[str]:
        """Have "any port" mean the same one after each restart: others have written it down."""
        given = _flag(flags, "--port")
        if given is None or given.strip() != "0":
            return list(flags)
        address = _flag(flags, "--bind-address") or "127.0.0.1"
        known = urlsplit(self.url).port
        port = known if known and is_free(address, known) else lasting_port(address, self.data_dir)
        # The last one counts.
        return [*flags, "--port", str(port)]

    def _console_flags(self, flags: Sequence[str]) -> list[str]:
        """Have the hub serve its console on a port that stays the same, on loopback alone."""
        address = _flag(flags, "--bind-address") or "127.0.0.1"
        if _flag(flags, "--console-port") is not None or address not in _LOOPBACK:
            return []
        known = urlsplit(self.console).port
        if not known or not is_free(address, known):
            known = lasting_port(address, self.data_dir / "console")
        # Nobody asked for that port: where it is taken after all, the hub goes without.
        return ["--console-port", str(known), "--console-optional"]

    def wait(self, stop: int) -> bool:
        """Wait until there is something to read on *stop*; False when a supervisor ends before."""
        return wait_any([self._process(name) for name in _PARTS], stop)

    def down(self) -> None:
        """Stop everything, however the hub was started; harmless when nothing runs."""
        for name in reversed(_PARTS):
            self._process(name).stop()

    def parts(self) -> list[Part]:
        """Return how each process is."""
        found = []
        for name in _PARTS:
            process = self._process(name)
            found.append(Part(name, process.running, process.pid, process.supervised))
        return found


def _flag(words: Sequence[str], name: str) -> str | None:
    """Return the value a flag has among words that another command will read."""
    found = None
    for number, word in enumerate(words):
        if word == name:
            found = words[number + 1] if number + 1 < len(words) else ""
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found


def log_format(words: Sequence[str]) -> str | None:
    """Return the form of log lines that *words* ask a hub for."""
    return _flag(words, "--log-format")


def _log_flags(words: Sequence[str]) -> list[str]:
    """Return what *words* say about log lines, in words that every command of ours reads."""
    form, verbosity = log_format(words), _flag(words, "--v") or _flag(words, "-v")
    found = [] if form is None else ["--log-format", form]
    return found if verbosity is None else [*found, "-v", verbosity]


def hub_record(data_dir: Path) -> Path:
    """Return where it is noted which process is the hub of a folder."""
    return data_dir / "hub.json"
