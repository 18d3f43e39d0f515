"""Ports that are kept for a server's whole life."""

from __future__ import annotations

import errno
import hashlib
import socket
from pathlib import Path

# Linux lends ports from 32768 on.
_FIRST, _COUNT = 22_000, 10_000


class NoPortFree(Exception):
    """Every port that could be kept is taken."""


def lasting_port(address: str, directory: Path) -> int:
    """Return a free port below those the kernel lends to connections.

    One of the kernel's could be lent to somebody else while the server is down. Where to look
    first depends on the directory, so servers seldom meet, not even equally named ones of
    different users that are created at once.
    """
    first = int(hashlib.sha256(str(directory).encode()).hexdigest(), 16)
    for step in range(_COUNT):
        port = _FIRST + (first + step) % _COUNT
        if is_free(address, port):
            return port
    raise NoPortFree(f"no port between {_FIRST} and {_FIRST + _COUNT} of {address} is free")


def is_free(address: str, port: int) -> bool:
    """Tell whether a server could listen there now."""
    return not obstacle(address, port)


def obstacle(address: str, port: int) -> str:
    """Return why a server cannot listen there now; empty when it can."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        # As servers do: a port whose connections of before are still fading is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except PermissionError:
            return "needs rights that you do not have here"
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            return "is taken by another program" if taken else f"cannot be had: {error.strerror}"
        return ""
