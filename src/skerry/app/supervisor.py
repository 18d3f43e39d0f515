"""Keeps one command running: a process of its own that starts it again whenever it fails.

Runs as ``python -I -S supervisor.py RECORD FD COMMAND…`` so that it costs 8 MB and cannot break
with what it watches. FD is a pipe on which two speak at the first start: the supervisor once the
command runs and is in the record, and the command when it is ready, where it has ``{ready}``; that
is -1 on every later start, when nobody listens.

Which process it is and which one it runs stands in the record, each by pid and start time. There is
no record of a command that does not run yet: its pid would be 0, and whoever signals that one
signals their own process group. SIGTERM ends both; a command that ends well is not started again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time

_SHORTEST_PAUSE = 0.2
_MAX_PAUSE = 10.0
# A command that ran this long has its failures forgotten.
_CALM_SECONDS = 60.0
_AWAITED = {signal.SIGTERM, signal.SIGCHLD}
# Between tries to write the record down where the disk was full.
_NOTE_SECONDS = 2.0


def start_time(pid: int) -> int:
    """Return when a process began, in clock ticks; 0 when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0


class _Supervisor:
    def __init__(self, record: str, command: list[str], inherited: int) -> None:
        self._record = record
        self._command = command
        self._inherited = inherited
        self._child = 0
        self._noted = False

    def run(self) -> int:
        if self._inherited >= 0:
            os.set_inheritable(self._inherited, "{ready}" in self._command)
        pause = _SHORTEST_PAUSE
        while True:
            began = time.clock_gettime(time.CLOCK_MONOTONIC)
            self._start()
            code, stopping = self._waited()
            if stopping or code == 0:
                return 0
            ran = time.clock_gettime(time.CLOCK_MONOTONIC) - began
            pause = _SHORTEST_PAUSE if ran > _CALM_SECONDS else min(_MAX_PAUSE, 2 * pause)
            self._say(f"supervisor: exit code {code} after {ran:.1f} s; again in {pause} s")
            if signal.sigtimedwait({signal.SIGTERM}, pause) is not None:
                return 0

    def _start(self) -> None:
        words = [str(self._inherited) if word == "{ready}" else word for word in self._command]
        self._child = os.posix_spawn(
            words[0],
            words,
            os.environ,  # noqa: TID251 - passed on
            setsigmask=(),
        )
        self._note(self._child)
        # Only the first start is waited for; its end of the pipe must be the last one open.
        self._hang_up()

    def _say(self, line: str) -> None:
        """Write a line in the form that the command's own lines have."""
        words = " ".join(self._command).replace("=", " ")
        if "--log-format json" in words:
            now = time.clock_gettime(time.CLOCK_REALTIME)
            line = json.dumps({"ts": now, "severity": "warning", "msg": line})
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def _hang_up(self) -> None:
        """Tell who started us that the command runs; who was killed meanwhile need not hear it."""
        if self._inherited >= 0:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._inherited, b"started\n")
            os.close(self._inherited)
            self._inherited = -1

    def _note(self, child: int) -> None:
        """Write down who we are, and the command's process."""
        own = os.getpid()
        content = {"supervisor": [own, start_time(own)], "server": [child, start_time(child)]}
        temporary = f"{self._record}.new"
        try:
            with open(temporary, "w") as file:
                json.dump(content, file)
            os.replace(temporary, self._record)
            self._noted = True
        except OSError:
            # A full disk ends nothing: it is written as soon as it can be.
            self._noted = False

    def _waited(self) -> tuple[int, bool]:
        """Return the command's exit code, and whether it ended because it was asked to."""
        stopping = False
        while True:
            ended, status = os.waitpid(self._child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status), stopping
            if not self._noted:
                self._note(self._child)
            heard = (
                signal.sigwaitinfo(_AWAITED)
                if self._noted
                else signal.sigtimedwait(_AWAITED, _NOTE_SECONDS)
            )
            if heard is not None and heard.si_signo == signal.SIGTERM:
                stopping = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._child, signal.SIGTERM)


def main() -> None:
    """Supervise until SIGTERM."""
    record, inherited, *command = sys.argv[1:]
    # Blocked and waited for, so that none can come between two steps and be missed.
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.exit(_Supervisor(record, command, int(inherited)).run())


if __name__ == "__main__":
    main()
