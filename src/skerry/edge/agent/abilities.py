"""What each way to run containers can enforce on this machine, found out by asking it."""

from __future__ import annotations

import platform

from skerry.edge.agent.privileges import knows_seccomp
from skerry.edge.agent.runtime import Abilities
from skerry.edge.agent.seccomp_filter import default_filter
from skerry.edge.agent.security_context import ADDABLE_CAPABILITIES, DEFAULT_CAPABILITIES

# What ``kubectl debug`` asks for. Processes of one user may trace each other without it, so that it
# is as good as given where containers are that user.
_TRACING = frozenset({"SYS_PTRACE"})


def can_filter() -> bool:
    """Tell whether system calls can be judged here: by the kernel, and with numbers we know."""
    return knows_seccomp() and bool(default_filter(platform.machine()))


def of_namespaces(edge_user: int, *, seccomp: bool) -> Abilities:
    """Return what is enforced in namespaces; only root can give them more than one user."""
    return Abilities(
        isolated=True,
        network=True,
        users="any" if edge_user == 0 else "one",
        capabilities=DEFAULT_CAPABILITIES | ADDABLE_CAPABILITIES,
        seccomp=seccomp,
    )


def of_bubblewrap(*, users: bool, seccomp: bool) -> Abilities:
    """Return what is enforced below bubblewrap, where no program has a capability."""
    return Abilities(
        isolated=True,
        users="one" if users else "own",
        capabilities=_TRACING,
        seccomp=seccomp,
    )


def of_processes(edge_user: int, *, seccomp: bool) -> Abilities:
    """Return what is enforced on plain processes: only what a process gives up itself."""
    usual = DEFAULT_CAPABILITIES if edge_user == 0 else frozenset()
    return Abilities(capabilities=usual | _TRACING, seccomp=seccomp)
