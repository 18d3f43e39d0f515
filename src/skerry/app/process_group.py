"""A server as several equal processes behind one port, and who looks after them.

The supervisor listens, forks, and waits; it answers nothing itself. Every process inherits the
listening sockets, so a connection is taken by whichever process is free, and one that arrives when
a process has just died is taken by another: nothing is refused, and no queue is lost with it but
what waits in a process because none was free. They are equal servers over one etcd, as servers on
several machines are, and elect who runs controllers.

The first process starts alone, because it makes what is made once (keys, certificates, the first
objects). The group is ready when all are. From then on one that ends is started again, at once at
first and more slowly when it does not last; one that is stuck is killed, and started again like it
(``process_beats``). The supervisor's own end is theirs, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from skerry.app.console_record import no_console
from skerry.app.listening import listen_problem
from skerry.app.process_beats import (
    ENDED,
    LOOK_SECONDS,
    STUCK,
    STUCK_SECONDS,
    RestartCounts,
    SharedBeats,
    Silence,
)
from skerry.app.process_member import ProcessMember
from skerry.app.process_metrics import KeptMetrics
from skerry.app.process_peers import GroupName, Peers
from skerry.app.settings import ServerSettings
from skerry.app.standalone import StartError
from skerry.app.supervised import stop_signals
from skerry.kit import log as logging
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.ids import IdSource, SystemIds
from skerry.kit.log import Logger
from skerry.server.http.accepting import listening_sockets
from skerry.server.http.settings import HttpSettings
from skerry.server.watch.shared_revisions import SharedRevisions

log = Logger("supervisor")

# A process that lasted this long has its failures forgotten.
CALM_SECONDS = 60.0
_SHORTEST_PAUSE = 0.2
_MAX_PAUSE = 10.0
# Beyond what a server takes to drain, it is not going to end by itself.
_GRACE_SECONDS = 10.0

Announce = Callable[[str], None]
# Runs one process to its end, given what is its own and what tells that it is ready.
Serve = Callable[[ProcessMember, Announce], int]


def next_pause(last: float, lasted: float) -> float:
    """Return how many seconds pass before a process starts again that *lasted* so many, when the
    *last* pause was so long. One that was well until now is started at once."""
    if lasted >= CALM_SECONDS:
        return 0.0
    return min(_MAX_PAUSE, max(_SHORTEST_PAUSE, 2 * last))


@dataclass(slots=True)
class _Process:
    """One process, or the gap where it will be started again."""

    index: int
    pid: int = 0
    # Readable when the process has ended.
    ending: int = -1
    # Where it says that it is ready, until it has.
    saying: int = -1
    began: float = 0.0
    pause: float = 0.0
    due: float = 0.0
    # Whether it was killed because it did not answer.
    stuck: bool = False


def run_processes(
    settings: ServerSettings,
    count: int,
    serve: Serve,
    announce: Announce,
    clock: Clock | None = None,
) -> int:
    """Run *count* processes until SIGTERM or SIGINT; returns the exit code.

    *announce* gets the line that says ready once all of them are. Raises ``StartError`` when the
    port cannot be had.
    """
    logging.configure(verbosity=settings.verbosity, format=settings.log_format)
    sockets, console = asyncio.run(_listening(settings))
    # What is loaded now is never changed again: the processes share it.
    gc.freeze()
    with stop_signals() as stop, contextlib.ExitStack() as cleanup:
        for each in (*sockets, *console):
            cleanup.enter_context(each)
        group = ProcessGroup(count, sockets, serve, announce, clock or SystemClock(), console)
        return group.run(stop, settings.drain_seconds + _GRACE_SECONDS)


async def _listening(
    settings: ServerSettings,
) -> tuple[list[socket.socket], list[socket.socket]]:
    """Return the sockets of the server and of its console."""
    backlog = HttpSettings().backlog
    try:
        sockets = await listening_sockets(settings.bind_address, settings.port, backlog)
    except OSError as error:
        raise StartError(listen_problem(settings, error)) from error
    if settings.console_port is None:
        return sockets, []
    try:
        return sockets, await listening_sockets(
            settings.bind_address, settings.console_port, backlog
        )
    except OSError as error:
        problem = no_console(settings, error)
        if not settings.console_optional:
            raise StartError(problem) from error
        log.warning("the hub goes without its console", error=problem)
        return sockets, []


class ProcessGroup:
    """The processes of one server."""

    def __init__(
        self,
        count: int,
        sockets: Sequence[socket.socket],
        serve: Serve,
        announce: Announce,
        clock: Clock,
        console: Sequence[socket.socket] = (),
        ids: IdSource | None = None,
        *,
        look_seconds: float = LOOK_SECONDS,
        stuck_seconds: float = STUCK_SECONDS,
    ) -> None:
        self._processes = [_Process(index) for index in range(count)]
        self._sockets = sockets
        self._console = console
        self._name = GroupName.new(ids or SystemIds())
        self._metrics = [KeptMetrics() for _ in range(count)]
        self._serve = serve
        self._announce = announce
        self._now = clock.monotonic
        self._revisions = SharedRevisions(count)
        self._beats = SharedBeats(count)
        self._silence = Silence(
            count, self._now(), look_seconds=look_seconds, stuck_seconds=stuck_seconds
        )
        self._restarts = RestartCounts()
        self._lifeline, self._held = os.pipe()
        self._waiting = set(range(count))
        self._line = ""

    def run(self, stop: int, patience: float) -> int:
        """Keep the processes going until there is something to read on *stop*."""
        self._start(self._processes[0])
        while True:
            readable = self._readable(stop)
            if stop in readable:
                return self._stop(patience)
            for process in self._processes:
                if process.saying in readable:
                    self._said(process)
                if process.ending in readable:
                    code = self._ended(process)
                    if self._waiting:
                        self._stop(patience)
                        return code or 1
            if self._silence.due <= self._now():
                self._end_stuck()
            for process in self._gaps():
                if process.due <= self._now():
                    self._start(process)

    def _gaps(self) -> Iterator[_Process]:
        """Yield the processes that ought to run; the others wait for the first."""
        first = self._processes[0]
        for process in self._processes:
            if not process.pid and (process is first or first.index not in self._waiting):
                yield process

    def _readable(self, stop: int) -> list[int]:
        """Wait until something happens or is due; return the descriptors that say so."""
        watched = [stop]
        watched += [each.ending for each in self._processes if each.ending >= 0]
        watched += [each.saying for each in self._processes if each.saying >= 0]
        due = min((each.due for each in self._gaps()), default=self._silence.due)
        timeout = max(0.0, min(due, self._silence.due) - self._now())
        return select.select(watched, [], [], timeout)[0]

    def _end_stuck(self) -> None:
        """Kill the processes that have not been heard of for long; their end is seen like any."""
        for index in self._silence.look(self._beats.counts(), self._now()):
            process = self._processes[index]
            if process.pid:
                log.error("a process is stuck; it is killed", process=index, pid=process.pid)
                process.stuck = True
                os.kill(process.pid, signal.SIGKILL)

    def _start(self, process: _Process) -> None:
        self._beats.reset(process.index)
        process.stuck = False
        process.saying, said = os.pipe()
        process.began = self._now()
        # What is still to be printed would be printed by both.
        sys.stdout.flush()
        sys.stderr.flush()
        process.pid = os.fork()
        if process.pid == 0:
            code = 1
            try:
                code = self._child(process, said)
            finally:
                # Whatever happened, this process never goes on as the supervisor it was copied of.
                if sys.exc_info()[0] is not None:
                    traceback.print_exc()
                os._exit(code)
        os.close(said)
        process.ending = os.pidfd_open(process.pid)

    def _child(self, process: _Process, said: int) -> int:
        """Be one of the processes; return its exit code."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        # With the last copy of this end the lifeline ends; ours must not keep it.
        os.close(self._held)
        for other in self._processes:
            for descriptor in (other.ending, other.saying):
                if descriptor >= 0:
                    os.close(descriptor)
        member = ProcessMember(
            process.index,
            len(self._processes),
            self._sockets,
            self._console,
            self._revisions.of(process.index),
            self._beats.of(process.index),
            Peers(self._name, process.index, len(self._processes)),
            self._metrics,
            self._restarts,
            self._lifeline,
        )

        def ready(line: str) -> None:
            # From now on it is looked after, whatever it does next.
            member.beat.beat()
            os.write(said, line.encode())
            os.close(said)

        try:
            return self._serve(member, ready)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    def _said(self, process: _Process) -> None:
        """Take note that a process is ready; the first lets the others start."""
        line = os.read(process.saying, 65536).decode()
        os.close(process.saying)
        process.saying = -1
        if not line:
            return  # It ended without a word; that is dealt with as its end.
        first = process.index == 0 and 0 in self._waiting
        self._line = line if first else self._line
        if process.index in self._waiting:
            self._waiting.discard(process.index)
            if not self._waiting:
                self._announce(self._line)
            return
        log.info("a process serves again", v=0, process=process.index, pid=process.pid)

    def _ended(self, process: _Process) -> int:
        """Note the end of a process and when it starts again; return its exit code."""
        pid, code = process.pid, self._collected(process)
        now = self._now()
        process.pause = next_pause(process.pause, now - process.began)
        process.due = now + process.pause
        if not self._waiting:
            self._restarts.add(STUCK if process.stuck else ENDED)
            log.warning(
                "a process ended; it starts again",
                process=process.index,
                pid=pid,
                code=code,
                seconds=round(process.pause, 1),
            )
        return code

    def _collected(self, process: _Process) -> int:
        """Return the exit code of a process that has ended; there is a gap in its place then."""
        _, status = os.waitpid(process.pid, 0)
        os.close(process.ending)
        process.pid, process.ending = 0, -1
        return os.waitstatus_to_exitcode(status)

    def _stop(self, patience: float) -> int:
        """Have all processes end; return 0 when each did by itself, and well."""
        running = [each for each in self._processes if each.pid]
        # One that has not come as far as hearing signals meets the end of its lifeline.
        os.close(self._held)
        for process in running:
            os.kill(process.pid, signal.SIGTERM)
        deadline = self._now() + patience
        codes = []
        for process in running:
            if not select.select([process.ending], [], [], max(0.0, deadline - self._now()))[0]:
                log.error("a process does not end; it is killed", pid=process.pid)
                os.kill(process.pid, signal.SIGKILL)
            codes.append(self._collected(process))
        return max((1 if code else 0 for code in codes), default=0)
