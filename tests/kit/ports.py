"""Ports of servers that tests start, and start again.

The kernel gives ports of its local range to connections of anybody, also one that a server of ours
listened on until it was killed: it could not be started there again. So our ports lie below that
range, and below those that edges keep; each process that runs tests begins its search elsewhere.
"""

from __future__ import annotations

import os
import socket
from contextlib import closing
from itertools import count

# Ports that edges look for themselves (``app.ports``), node ports of Kubernetes, and then the
# kernel's own begin above.
_FIRST, _LAST = 15_000, 21_999
_SPAN = _LAST - _FIRST + 1
# Far enough apart for all that one process ever asks for.
_numbers = count(os.getpid() * 997)


def free_ports(number: int) -> list[int]:
    """Return ports on loopback that nobody listens on; each is returned once."""
    found: list[int] = []
    while len(found) < number:
        port = _FIRST + next(_numbers) % _SPAN
        with closing(socket.socket()) as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return found
