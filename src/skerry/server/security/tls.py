"""TLS contexts: the server's, which asks for client certificates without demanding them."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skerry.server.security.pki import Credential

# The name by which a server that shows everybody a given certificate is asked for its own one.
OWN_NAME = "apiserver-loopback-client"
# OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python's ssl module does not name.
_NO_CHECK_TIME = ssl.VerifyFlags(0x200000)


class LiveContext(ssl.SSLContext):
    """The context of a listening server, which can be exchanged for another at any time.

    Handshakes that begin afterwards use the new one; connections that are open go on. It stands
    in for the *present* one wherever the event loop makes a connection secure.
    """

    present: ssl.SSLContext

    def __new__(cls, present: ssl.SSLContext) -> LiveContext:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        made.present = present
        return made

    def __init__(self, present: ssl.SSLContext) -> None:
        """Begin with *present*."""

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        return self.present.wrap_bio(*arguments, **named)


@dataclass(frozen=True, slots=True)
class Shown:
    """The certificates that a server shows: its own, and perhaps one that it was *given*.

    To clients that ask for one of *names* it shows the latter; *to_all* shows that one to whoever
    does not ask for ``OWN_NAME``, as kube-apiserver does.
    """

    own: Credential
    given: Credential | None = None
    names: tuple[str, ...] = ()
    to_all: bool = False

    def context(self, clients: str) -> ssl.SSLContext:
        """Return the context of a server that proves itself so.

        A client may show a certificate, too; it must then be signed by one of the authorities
        *clients* (PEM), or the handshake fails. Others authenticate by token or not at all. Times
        of certificates are not checked here but by authentication (``ClientCertificates``), which
        knows what a lapsed one may still do.

        Where *clients* are none it asks for no certificate and is for browsers: one that holds any
        certificate would have its user choose which to show.
        """
        context = _context(clients, self.own)
        if self.given is None:
            return context
        other = _context(clients, self.given)

        def choose(
            secured: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext
        ) -> None:
            named = name is not None and is_named(name, self.names)
            if name != OWN_NAME if self.to_all else named:
                secured.context = other

        context.sni_callback = choose
        return context


def is_named(name: str, names: Collection[str]) -> bool:
    """Tell whether a certificate for *names* is good for the host *name*."""
    wanted = name.lower().rstrip(".")
    _, _, parent = wanted.partition(".")
    good = {wanted, f"*.{parent}"} if parent else {wanted}
    return any(each.lower() in good for each in names)


def _context(clients: str, credential: Credential) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_credential(context, credential)
    if clients:
        context.load_verify_locations(cadata=clients)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= _NO_CHECK_TIME
    # Go clients offer h2 first and take http/1.1 when it is the only answer.
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    # Clients of Kubernetes resume no session, and none outlives the server that made it. Two
    # tickets with the client's certificate in each are a sixth of a handshake.
    context.num_tickets = 0
    return context


def load_credential(context: ssl.SSLContext, credential: Credential) -> None:
    """Give *context* a certificate and key held in memory.

    OpenSSL as Python shows it reads files only, so they pass through one that nobody else can
    read and that is gone when this returns.
    """
    descriptor, name = tempfile.mkstemp(prefix="skerry-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(credential.key + credential.certificate)
        context.load_cert_chain(name)
    finally:
        Path(name).unlink(missing_ok=True)
