"""Runs a command inside a running container: for probes, hooks and ``kubectl exec``.

Runs as a process of its own (``python -I -S entering.py SPECIFICATION``): enters the namespaces of
the container's first process, becomes the command there, and ends as it does. Its environment and
streams are the command's.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))))

from skerry.edge.agent import namespaces

# The user namespace first: it gives the right to enter the others. Mounts last: opening the
# others takes the machine's /proc.
_ORDER = ("user", "ipc", "uts", "net", "pid", "mnt")
_CANNOT_RUN, _NOT_FOUND = 126, 127


def _enter(pid: int) -> None:
    own = {kind: os.stat(f"/proc/self/ns/{kind}").st_ino for kind in _ORDER}
    opened = []
    for kind in _ORDER:
        path = f"/proc/{pid}/ns/{kind}"
        # Entering the namespace one is in already is refused for users, needless for the rest.
        if os.stat(path).st_ino != own[kind]:
            opened.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    for descriptor in opened:
        namespaces.join_descriptor(descriptor)


def _become(spec: dict[str, Any]) -> None:
    argv, environment = spec["argv"], dict(os.environ)  # noqa: TID251 - the command's
    if spec["locale"] is None:
        # The interpreter's own idea.
        environment.pop("LC_CTYPE", None)
    try:
        namespaces.drop_capabilities()
        os.chdir(spec["directory"])
        become_user(spec.get("user"), spec.get("group"))
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - our purpose
    except OSError as error:
        sys.stderr.write(f'exec: "{argv[0]}": {error.strerror}\n')
        sys.stderr.flush()
        os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _CANNOT_RUN)


def become_user(user: int | None, group: int | None) -> None:
    """Go on as another user and group, where they are named."""
    if group is not None or user is not None:
        os.setgroups([])
    if group is not None:
        os.setgid(group)
    if user is not None:
        os.setuid(user)


def main() -> None:
    """Enter, run, and end as the command ends."""
    spec = json.loads(sys.argv[1])
    try:
        _enter(spec["pid"])
    except OSError as error:
        sys.stderr.write(f"cannot enter the container: {error}\n")
        os._exit(_CANNOT_RUN)
    # Only children are in the process namespace that was entered.
    pid = os.fork()
    if pid == 0:
        namespaces.die_with_parent()
        _become(spec)
    status = os.waitpid(pid, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
