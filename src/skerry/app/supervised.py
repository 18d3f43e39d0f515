"""A command kept running by a supervisor, found again by what is recorded of it.

Who runs is recorded by pid and start time, so neither a crash nor a reused pid can mislead. A
command that a person started by hand notes itself in the same place, without a supervisor, so
that it is found and stopped in the same way; it is never replaced unasked.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skerry.edge.agent.processes import Process, alive, opened, start_time
from skerry.kit import log

_SUPERVISOR = str(Path(__file__).parent / "supervisor.py")
# A start is about a second of work; a machine that needs a minute has other problems.
_START_SECONDS = 60.0
_STOP_SECONDS = 15.0
_LOG_BYTES = 10 * 1024 * 1024
# Less than this is no space: not even the reason could be written down.
_LITTLE_BYTES = 64 * 1024
# How lines begin that say why a command ended: its own, and those about how it was called.
_SENTENCES = ("skerry ", "Error: ")
# Stands, in a command, for the descriptor to speak on; only the first start is waited for.
READY = "{ready}"


class NotStarted(Exception):
    """The command ended, or said nothing, before it was ready."""


class Interrupted(Exception):
    """Somebody asked to stop before the command was ready; nothing of it runs."""


@dataclass(frozen=True, slots=True)
class Supervised:
    """One command of ours, supervised."""

    record: Path
    log: Path

    @property
    def running(self) -> bool:
        """Whether the command runs now."""
        return alive(self._recorded("server"))

    @property
    def supervised(self) -> bool:
        """Whether somebody starts the command again when it fails."""
        return alive(self._recorded("supervisor"))

    @property
    def by_hand(self) -> bool:
        """Whether the command runs now, and was started without a supervisor."""
        return self.running and self._recorded("supervisor").pid == 0

    @property
    def pid(self) -> int:
        """The process of the command; 0 when it does not run."""
        process = self._recorded("server")
        return process.pid if alive(process) else 0

    def _recorded(self, role: str) -> Process:
        try:
            pid, start = json.loads(self.record.read_text())[role]
        except (FileNotFoundError, json.JSONDecodeError, KeyError, ValueError):
            return Process(0, 0)
        return Process(pid, start)

    def start(self, command: Sequence[str], stop: int = -1) -> bool:
        """Run ``python -m COMMAND``, detached; False when it runs already.

        Where the command has an argument ``{ready}``, that becomes a descriptor to speak on when
        it is ready, and this waits for it, too; without, it returns once the command runs.
        Something to read on the descriptor *stop* ends the wait, and the command.
        """
        if self.supervised and self.running:
            return False
        if self.by_hand:
            raise NotStarted(f"one that was started by hand runs there already (pid {self.pid})")
        # What lost its supervisor makes way.
        self.end()
        self._shorten_log()
        begin = self.log.stat().st_size if self.log.exists() else 0
        heard, ready_writer = os.pipe()
        os.set_inheritable(ready_writer, True)
        with self.log.open("ab") as log:
            supervisor = subprocess.Popen(  # noqa: S603 - our own program
                [
                    *(sys.executable, "-I", "-S", _SUPERVISOR, str(self.record), str(ready_writer)),
                    *(sys.executable, "-m", *command),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                close_fds=True,
                pass_fds=(ready_writer,),
            )
        os.close(ready_writer)
        try:
            awaited = {b"started", b"ready"} if READY in command else {b"started"}
            said = b""
            # By both: a command may be ready before it is in the record, and is not found then.
            while not awaited <= set(said.splitlines()):
                readable = _readable([heard, stop], _START_SECONDS)
                if stop in readable:
                    self._abandon(supervisor)
                    raise Interrupted
                more = os.read(heard, 4096) if readable else b""
                if not more:
                    self._abandon(supervisor)
                    raise NotStarted(self.last_words(begin))
                said += more
        finally:
            os.close(heard)
        # It is to outlive us: nobody waits for it here.
        supervisor.returncode = 0
        return True

    def _abandon(self, supervisor: subprocess.Popen[bytes]) -> None:
        """End a supervisor that may not have written down yet who it is, and its command."""
        supervisor.terminate()
        try:
            supervisor.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
        self.end()

    def _shorten_log(self) -> None:
        """Begin a new log when the old one is long; one predecessor is kept."""
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))

    def stop(self) -> None:
        """End the command and its supervisor; harmless when neither runs."""
        asked = self._recorded("server" if self.by_hand else "supervisor")
        if alive(asked):
            os.kill(asked.pid, signal.SIGTERM)
            _wait_gone(asked, _STOP_SECONDS)
        self.end()

    def end(self) -> None:
        """Make sure nothing of it runs, supervised or not."""
        for role in ("supervisor", "server"):
            process = self._recorded(role)
            if alive(process):
                os.kill(process.pid, signal.SIGKILL)
                _wait_gone(process, _STOP_SECONDS)

    def last_words(self, begin: int = 0) -> str:
        """Return the end of the log after its byte *begin*, where the reason usually is."""
        try:
            with self.log.open("rb") as file:
                file.seek(begin)
                lines = file.read().decode(errors="replace").strip().splitlines()
        except FileNotFoundError:
            lines = []
        sentences = [line for line in map(_message, lines[-40:]) if line.startswith(_SENTENCES)]
        if sentences:
            return sentences[-1]
        disk = os.statvfs(self.log.parent)
        if disk.f_bavail * disk.f_frsize < _LITTLE_BYTES:
            return f"no space is left on the disk of {self.log.parent}"
        return f"see {self.log}"

    def ending(self) -> int | None:
        """Return a descriptor that tells of the supervisor's end; None when there is none."""
        return opened(self._recorded("supervisor"))


@contextlib.contextmanager
def noted(record: Path, announce: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """Yield *announce*, and have this process found by its record from that line to its end."""
    written: list[str] = []

    def noting(line: str) -> None:
        # Not earlier: one that cannot start must not hide the one that is in its way.
        written.append(note(record))
        announce(line)

    yield noting
    if written and record.exists() and record.read_text() == written[-1]:
        record.unlink()


def note(record: Path) -> str:
    """Write down that this process runs, by hand; returns what was written."""
    own = os.getpid()
    content = json.dumps({"server": [own, start_time(own)]})
    fresh = record.with_suffix(".new")
    fresh.write_text(content)
    fresh.replace(record)
    return content


def announcing(descriptor: int) -> Callable[[str], None]:
    """Return what prints a line and tells a waiting starter, once, that all is ready."""
    waiting = [descriptor] if descriptor >= 0 else []

    def announce(line: str) -> None:
        log.announce(line)
        while waiting:
            ready_writer = waiting.pop()
            os.write(ready_writer, b"ready\n")
            os.close(ready_writer)

    return announce


def _message(line: str) -> str:
    """Return what a line of a log says, be it text or JSON."""
    if not line.startswith("{"):
        return line
    try:
        return str(json.loads(line).get("msg", ""))
    except json.JSONDecodeError:
        return line


def wait_any(processes: Sequence[Supervised], stop: int) -> bool:
    """Wait until there is something to read on *stop*; False when a supervisor ends before."""
    endings = [process.ending() for process in processes]
    known = [descriptor for descriptor in endings if descriptor is not None]
    try:
        if len(known) < len(endings):
            return False
        return stop in _readable([*known, stop], None)
    finally:
        for descriptor in known:
            os.close(descriptor)


@contextlib.contextmanager
def stop_signals() -> Iterator[int]:
    """Yield a descriptor that has something to read once this process is asked to end.

    Asked again it goes on ending, so a second Ctrl-C leaves nothing behind either. A signal that
    was ignored before stays so: that is how ``nohup`` and shells keep background commands.
    """
    asked, teller = os.pipe()
    os.set_blocking(teller, False)
    before = {}
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, lambda *_: None)
    former = signal.set_wakeup_fd(teller, warn_on_full_buffer=False)
    try:
        yield asked
    finally:
        signal.set_wakeup_fd(former)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(asked)
        os.close(teller)


def _readable(descriptors: Sequence[int], seconds: float | None) -> list[int]:
    """Return which of the descriptors have something to read within a time, or have ended."""
    return select.select([each for each in descriptors if each >= 0], [], [], seconds)[0]


def _wait_gone(process: Process, seconds: float) -> None:
    descriptor = opened(process)
    if descriptor is None:
        return
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
