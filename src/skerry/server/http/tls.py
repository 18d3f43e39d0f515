"""TLS contexts: the server's, which asks for client certificates without demanding them."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from skerry.server.security.pki import Credential, Pki

# OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python's ssl module does not name.
_NO_CHECK_TIME = ssl.VerifyFlags(0x200000)


def server_context(pki: Pki, client_ca: bytes | None = None) -> ssl.SSLContext:
    """Return the context of a server that proves itself with *pki*.

    A client may show a certificate; it must then be signed by our CA (or by one of those in
    *client_ca*, PEM), or the handshake fails. Others authenticate by token or not at all. Times
    of certificates are not checked here but by authentication (``ClientCertificates``), which
    knows what a lapsed one may still do.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_credential(context, pki.server)
    context.load_verify_locations(cadata=(client_ca or pki.ca.certificate).decode("ascii"))
    context.verify_mode = ssl.CERT_OPTIONAL
    context.verify_flags |= _NO_CHECK_TIME
    # Go clients offer h2 first and take http/1.1 when it is the only answer.
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    return context


def client_context(ca: bytes, credential: Credential | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts *ca* and shows *credential*."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=ca.decode("ascii"))
    if credential is not None:
        load_credential(context, credential)
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
