"""Runs a command inside a running container: for probes, hooks and ``kubectl exec``.

Runs as a process of its own (``python -I -S entering.py FILE``): enters the namespaces of the
container's first process, becomes the command there, and ends as it does. Its streams are the
command's. The file says what to do, the command's variables among it, and is removed when it was
read; of this process's own variables only the terminal's kind is passed on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))))

from skerry.edge.agent import namespaces, privileges

_CANNOT_RUN, _NOT_FOUND = 126, 127


def _enter(paths: list[str]) -> None:
    """Enter a container's namespaces; raises ``OSError``, also when there are none to enter."""
    if not paths:
        raise OSError("a container without namespaces")
    own = {os.stat(f"/proc/self/ns/{kind}").st_ino for kind in namespaces.KINDS}
    opened = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
    for descriptor in opened:
        # Entering the namespace one is in already is refused for users, needless for the rest.
        if os.fstat(descriptor).st_ino not in own:
            namespaces.join_descriptor(descriptor)
        os.close(descriptor)


def _become(spec: dict[str, Any]) -> None:
    argv = spec["argv"]
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            # Ignored by this interpreter, and the command would inherit that.
            signal.signal(number, signal.SIG_DFL)
        os.chdir(spec["directory"])
        privileges.become(privileges.rights_from(spec["rights"]))
        namespaces.die_with_parent()
        privileges.close_at_exec()
        os.execvpe(argv[0], argv, spec["environment"])  # noqa: S606 - our purpose
    except OSError as error:
        sys.stderr.write(f'exec: "{argv[0]}": {error.strerror}\n')
        sys.stderr.flush()
        os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _CANNOT_RUN)


def _become_directly(spec: dict[str, Any]) -> None:
    """Become a command where there is nothing to enter."""
    if spec["bubblewrap"]:
        from skerry.edge.agent import bubblewrap

        try:
            bubblewrap.become(spec["bubblewrap"], spec)
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            sys.stderr.flush()
            os._exit(_CANNOT_RUN)
    _become(spec)


def _take_foreground() -> None:
    """Have the terminal, if there is one, for a group of processes that the container knows.

    The group of whoever forked us has no number here, and a shell gives the terminal back at its
    end to the group that had it before.
    """
    if not os.isatty(0):
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
    finally:
        signal.signal(signal.SIGTTOU, before)


def _read_task(path: str) -> dict[str, Any]:
    with open(path) as file:
        os.unlink(path)
        spec: dict[str, Any] = json.load(file)
    terminal = os.environ.get("TERM")  # noqa: TID251 - of whoever looks on
    if terminal is not None:
        spec["environment"].setdefault("TERM", terminal)
    return spec


def main() -> None:
    """Enter, run, and end as the command ends."""
    spec = _read_task(sys.argv[1])
    if spec["namespaces"] is None:
        privileges.enter_group(privileges.opened_group(spec["control_group"]))
        _become_directly(spec)
    try:
        # Those who share the process namespace must not look into what is not theirs yet.
        privileges.set_dumpable(False)
        privileges.hide_arguments(b"exec")
        group = privileges.opened_group(spec["control_group"])
        _enter(spec["namespaces"])
        privileges.enter_group(group)
    except OSError as error:
        sys.stderr.write(f"cannot enter the container: {error}\n")
        os._exit(_CANNOT_RUN)
    # Only children are in the process namespace that was entered.
    pid = os.fork()
    if pid == 0:
        _take_foreground()
        _become(spec)
    status = os.waitpid(pid, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
