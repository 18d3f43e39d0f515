"""Room for the connections of a fleet.

Every edge has two connections, and shells commonly allow a process 1,024 open files, though the
system would grant it more. Whoever serves takes as much of that as it can use.
"""

from __future__ import annotations

import contextlib
import resource

# Two connections of each of 20,000 edges, and as much again for everybody else.
_WANTED = 1 << 16


def raise_open_files() -> None:
    """Allow this process as many open files as it may have, up to what a hub can use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # A container may refuse what it announces.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
