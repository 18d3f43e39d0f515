"""Whom a TLS connection believes."""

from __future__ import annotations

import ssl


def trusting(certificates: bytes) -> ssl.SSLContext:
    """Return the settings of a client that believes *certificates* (PEM); the system's if empty.

    As in Go whatever is given is trusted, a server's own certificate too: programs that make one
    for themselves hand that out as the authority. OpenSSL alone would ask for who signed it.
    Raises ``ssl.SSLError`` or ``ValueError`` when it cannot be read.
    """
    context = ssl.create_default_context(cadata=certificates.decode("ascii") or None)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
