"""One container's parent: keeps its output and its exit code when the agent is away.

Runs as a process of its own (``python -I -S shim.py``), so it imports nothing of skerry and little
else. The agent may be killed at any time; the shim then goes on writing the log, and what it finds
out in the end waits in a file. Its own stdin carries the specification; one line on its stdout
says that the program runs, or why it does not.

Log lines have the form of the container runtime interface: time, stream, F (full) or P (partial
line), text.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from typing import Any, NamedTuple, NoReturn

# Longer lines are cut and marked partial, as containerd does.
_MAX_LINE = 16 * 1024
# How long to read on for children that outlive the program and hold its output open.
_DRAIN_SECONDS = 0.2
_CANNOT_START = 128
_MAX_DESCRIPTOR = 1 << 30
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
# Namespaces that a container's first process makes for itself.
_MADE = ("ipc", "uts", "mnt")


def start_time(pid: int) -> int:
    """Return when a process began, in clock ticks; tells it from a later one of the same pid."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


class _Log:
    """Appends records; begins anew once the file is full, keeping one predecessor."""

    def __init__(self, path: str, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._open()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        self._size = os.fstat(self._file).st_size

    def write(self, stream: str, tag: str, line: bytes) -> None:
        nanoseconds = time.time_ns()
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        record = f"{moment}.{rest:09d}Z {stream} {tag} ".encode() + line + b"\n"
        # A full disk must not end the program; its output is what is lost.
        with contextlib.suppress(OSError):
            os.write(self._file, record)
        self._size += len(record)
        if self._size > self._max_bytes:
            os.close(self._file)
            os.replace(self._path, f"{self._path}.1")
            self._open()


class _Lines:
    """Cuts one stream's bytes into log records."""

    def __init__(self, log: _Log, stream: str, channel: int) -> None:
        self._log = log
        self._stream = stream
        self.channel = channel
        self._pending = b""

    def feed(self, data: bytes) -> None:
        *whole, self._pending = (self._pending + data).split(b"\n")
        for line in whole:
            self._write(line, "F")
        while len(self._pending) > _MAX_LINE:
            self._log.write(self._stream, "P", self._pending[:_MAX_LINE])
            self._pending = self._pending[_MAX_LINE:]

    def _write(self, line: bytes, tag: str) -> None:
        while len(line) > _MAX_LINE:
            self._log.write(self._stream, "P", line[:_MAX_LINE])
            line = line[_MAX_LINE:]
        self._log.write(self._stream, tag, line)

    def end(self) -> None:
        if self._pending:
            self._write(self._pending, "F")
            self._pending = b""


def _write_file(path: str, content: dict[str, Any]) -> None:
    """Replace a file as a whole, so that a reader never sees half of it."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w") as file:
        json.dump(content, file)
    os.replace(temporary, path)


class _Ends(NamedTuple):
    """The two sides of a program's streams: ours, and what the program gets.

    ``feed`` is where its input is written, if it has any; with a terminal everything is one.
    """

    output: int
    errors: int
    feed: int
    given: tuple[int, int, int]

    def close_given(self) -> None:
        for end in set(self.given):
            os.close(end)


def _ends(spec: dict[str, Any]) -> _Ends:
    if spec.get("tty"):
        ours, given = os.openpty()
        return _Ends(ours, -1, ours, (given, given, given))
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    if not spec.get("stdin"):
        nothing = os.open(os.devnull, os.O_RDONLY)
        return _Ends(out_read, err_read, -1, (nothing, out_write, err_write))
    in_read, in_write = os.pipe()
    return _Ends(out_read, err_read, in_write, (in_read, out_write, err_write))


class _Way(NamedTuple):
    """What a container's first process needs of its shim: where to pass its namespaces on to, and
    the user namespace in which it is somebody else; -1 when there is none."""

    passing: socket.socket
    identity: int = -1
    # The container's control group, opened while its path could be seen.
    group: int = -1


def _become(spec: dict[str, Any], given: tuple[int, int, int], way: _Way) -> None:
    """Turn this (forked) process into the program; returns only by raising."""
    os.setsid()
    for number in (*_IGNORED, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    for target, source in enumerate(given):
        os.dup2(source, target)
    if spec.get("tty"):
        from skerry.edge.agent import attaching

        attaching.take_terminal()
    from skerry.edge.agent import namespaces, privileges

    if spec.get("bubblewrap"):
        privileges.enter_group(way.group)
        from skerry.edge.agent import bubblewrap

        bubblewrap.become(spec["bubblewrap"], spec)
    if spec.get("sandbox"):
        _enter_root(spec["sandbox"], way)
        if child := os.fork():
            _be_first(child)
    os.chdir(spec["directory"])
    privileges.enter_group(way.group)
    if way.identity >= 0:
        namespaces.join_descriptor(way.identity)
    privileges.become(privileges.rights_from(spec["rights"]))
    privileges.close_at_exec()
    os.execvpe(spec["argv"][0], spec["argv"], spec["environment"])  # noqa: S606 - our purpose


def _enter_namespaces(sandbox: dict[str, Any]) -> int:
    """Join the pod's namespaces; the next child is in a process namespace, its first or not.

    Returns the user namespace in which the container is somebody else than root, where only one
    user can be had; -1 when that is not asked for.
    """
    from skerry.edge.agent import namespaces

    processes = sandbox["processes"]
    namespaces.join(sandbox["user"])
    if sandbox["network"]:
        namespaces.join(sandbox["network"])
    asked = sandbox.get("identity")
    identity = namespaces.identity_namespace(*asked) if asked else -1
    if processes:
        namespaces.join(processes)
    else:
        namespaces.unshare(namespaces.CLONE_NEWPID)
    return identity


def _enter_root(sandbox: dict[str, Any], way: _Way) -> None:
    """Have a file system and a host name of the container's own.

    The namespaces are passed to the shim before anything of the user's can run: nobody may look
    into this process, not even the agent, which enters them later.
    """
    from skerry.edge.agent import container_root, namespaces, root_plan

    namespaces.die_with_parent()
    namespaces.unshare(namespaces.CLONE_NEWNS | namespaces.CLONE_NEWUTS | namespaces.CLONE_NEWIPC)
    made = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in _MADE]
    socket.send_fds(way.passing, [b"n"], made)
    for descriptor in made:
        os.close(descriptor)
    for name, value in sandbox["sysctls"].items():
        with open(f"/proc/sys/{name.replace('.', '/')}", "w") as file:
            file.write(value)
    container_root.build(sandbox["root"], root_plan.steps_from(sandbox["steps"]))
    namespaces.change_root(sandbox["root"])
    namespaces.set_host_name(sandbox["host_name"])


def _be_first(child: int) -> NoReturn:
    """Be the first process of a namespace: bury the dead, and end with the program.

    The program itself is not the first, because the kernel spares that one every signal it has
    no handler for. Signals come to the whole group; here they are not meant.
    """
    from skerry.edge.agent import namespaces, privileges

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    privileges.hide_arguments()
    privileges.become(privileges.Rights(no_new_privileges=True))
    namespaces.die_with_parent()
    # Whoever waits for the program to have started waits for one of these to be closed.
    os.closerange(3, _MAX_DESCRIPTOR)
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(_exit_of(status)["code"])


class _Started(NamedTuple):
    """What was started: its process, none when nothing was; what failed; and how to enter it."""

    pid: int
    failure: str = ""
    namespaces: tuple[str, ...] = ()


def _spawn(spec: dict[str, Any], ends: _Ends) -> _Started:
    """Start the program."""
    from skerry.edge.agent import privileges

    reader, writer = os.pipe()  # closed by a successful exec
    ours, theirs = socket.socketpair()
    identity = -1
    try:
        group = privileges.opened_group(spec.get("control_group", ""))
        if spec.get("oci"):
            return _Started(_created(spec["oci"], ends, group))
        if spec.get("sandbox"):
            identity = _enter_namespaces(spec["sandbox"])
        # From its first moment on: who shares its process namespace may be waiting for it.
        privileges.set_dumpable(False)
        pid = os.fork()
    except OSError as error:
        return _Started(0, str(error))
    if pid == 0:
        try:
            _become(spec, ends.given, _Way(theirs, identity, group))
        except OSError as error:
            os.write(writer, f"{error.strerror}: {error.filename or spec['argv'][0]}".encode())
        os._exit(_CANNOT_START)
    privileges.set_dumpable(True)
    ends.close_given()
    os.close(writer)
    theirs.close()
    entered = _entered(ours, identity) if spec.get("sandbox") else ()
    return _Started(pid, os.read(reader, 4096).decode(errors="replace"), entered)


def _entered(passed: socket.socket, identity: int) -> tuple[str, ...]:
    """Return paths that stand for a container's namespaces, in the order they must be entered.

    They are files of this process, which lives as long as the container does.
    """
    _, made, _, _ = socket.recv_fds(passed, 1, len(_MADE))
    passed.close()
    for descriptor in made:
        os.set_inheritable(descriptor, False)
    by_kind = dict(zip(_MADE, made, strict=False))
    own = f"/proc/{os.getpid()}"
    paths = [f"{own}/ns/user", *(f"{own}/fd/{by_kind[kind]}" for kind in ("ipc", "uts") if made)]
    paths += [f"{own}/ns/net", f"{own}/ns/pid_for_children"]
    paths += [f"{own}/fd/{by_kind['mnt']}"] if made else []
    return (*paths, f"{own}/fd/{identity}") if identity >= 0 else tuple(paths)


def _created(oci: dict[str, Any], ends: _Ends, group: int) -> int:
    """Have an OCI runtime make the container; returns its first process, which still waits."""
    from skerry.edge.agent import oci_process, privileges

    before = privileges.own_group() if group >= 0 else -1
    oci_process.enter(oci)
    # What is made in a control group stays there; the shim does not.
    privileges.enter_group(group)
    try:
        pid = oci_process.create(oci, ends.given)
    finally:
        privileges.enter_group(before)
    ends.close_given()
    return pid


def _begin(oci: dict[str, Any]) -> str:
    """Let a created container run; returns what went wrong."""
    from skerry.edge.agent import oci_process

    try:
        oci_process.start(oci)
    except OSError as error:
        return str(error)
    return ""


def _forget(oci: dict[str, Any]) -> None:
    from skerry.edge.agent import oci_process

    oci_process.delete(oci)


def _exit_of(status: int) -> dict[str, Any]:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return {"code": 128 + number, "signal": number}
    return {"code": os.WEXITSTATUS(status), "signal": 0}


def _attached(spec: dict[str, Any], ends: _Ends) -> Any:
    """Let others attach to the program, where it wants input; None elsewhere."""
    if ends.feed < 0:
        return None
    from skerry.edge.agent.attaching import Attachment

    directory = os.path.dirname(spec["record"])
    terminal, once = bool(spec.get("tty")), bool(spec.get("stdin_once"))
    return Attachment(directory, ends.feed, terminal=terminal, once=once)


class _Copying:
    """Logs what a program writes, and shows it to whoever is attached, until it has ended."""

    def __init__(self, pid: int, streams: dict[int, _Lines], attached: Any) -> None:
        self._pid = pid
        self._streams = streams
        self._attached = attached
        self._selector = selectors.DefaultSelector()
        self._open = set(streams)
        self._ended = os.pidfd_open(pid)
        for end in (*streams, self._ended):
            self._selector.register(end, selectors.EVENT_READ)
        if attached is not None:
            attached.watch(self._selector)
        self._status, self._deadline = -1, float("inf")

    def run(self) -> int:
        """Go on to the end; returns the program's wait status."""
        while self._status < 0 or self._open:
            left = self._deadline - time.clock_gettime(time.CLOCK_MONOTONIC)
            if left <= 0:
                break
            for key, _ in self._selector.select(None if self._status < 0 else left):
                if key.data is not None:
                    key.data.handle(key.fd)
                elif key.fd == self._ended:
                    self._reap()
                else:
                    self._take(key.fd)
        for lines in self._streams.values():
            lines.end()
        if self._attached is not None:
            self._attached.close()
        return self._status

    def _reap(self) -> None:
        self._selector.unregister(self._ended)
        self._status = os.waitpid(self._pid, 0)[1]
        self._deadline = time.clock_gettime(time.CLOCK_MONOTONIC) + _DRAIN_SECONDS

    def _take(self, end: int) -> None:
        try:
            data = os.read(end, 65536)
        except OSError:
            data = b""  # a terminal whose program has gone
        if not data:
            self._selector.unregister(end)
            self._open.discard(end)
            return
        self._streams[end].feed(data)
        if self._attached is not None:
            self._attached.received(self._streams[end].channel, data)


def main() -> None:
    """Run one program to its end."""
    spec = json.loads(sys.stdin.buffer.read())
    sys.path.append(spec["sources"])
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    log = _Log(spec["log"], spec["log_bytes"])
    began = time.time_ns()
    # The parent is recorded first: whoever finds the record ends the group, program included.
    shim = {"shim": os.getpid(), "shim_start": start_time(os.getpid())}
    _write_file(spec["record"], {**shim, "began_ns": began})
    ends = _ends(spec)
    attached = _attached(spec, ends)
    pid, failure, entered = _spawn(spec, ends)
    if not failure:
        program = {"pid": pid, "pid_start": start_time(pid), "namespaces": entered}
        _write_file(spec["record"], {**shim, **program, "began_ns": began})
        failure = _begin(spec["oci"]) if spec.get("oci") else ""
        if failure:
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps({"pid": pid, "failure": failure}) + "\n").encode())
        os.close(1)
    streams = {ends.output: _Lines(log, "stdout", 1), ends.errors: _Lines(log, "stderr", 2)}
    streams.pop(-1, None)
    status = _Copying(pid, streams, attached).run() if pid else _CANNOT_START << 8
    found = _exit_of(status)
    if spec.get("oci") and pid:
        _forget(spec["oci"])
    _write_file(
        spec["exit"],
        {**found, "failure": failure, "began_ns": began, "ended_ns": time.time_ns()},
    )


if __name__ == "__main__":
    main()
