"""Where a server listens, by which names it is found there, and why it cannot listen."""

from __future__ import annotations

import errno

from skerry.app.settings import ServerSettings
from skerry.server.security.tls import OWN_NAME


def listen_problem(settings: ServerSettings, error: OSError) -> str:
    """Return why the port of *settings* cannot be had."""
    problem = f"cannot listen on {settings.bind_address}:{settings.port}: {error.strerror or error}"
    if error.errno == errno.EADDRINUSE:
        problem += "; --port names another, 0 takes any"
    return problem


def reachable(address: str) -> str:
    """Return an address clients on this machine can use for a server bound to *address*."""
    return "127.0.0.1" if address in ("0.0.0.0", "::", "") else address  # noqa: S104 - compared


def own_name(settings: ServerSettings) -> tuple[str, ...]:
    """Return the name the server's own certificate is asked for by, where another is shown."""
    return (OWN_NAME,) if settings.tls_cert_to_all else ()
