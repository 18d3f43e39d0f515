"""Requests for certificates, made for tests."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Sequence
from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID

from skerry.server.security.pki import Credential, Pki
from skerry.server.security.tls import Shown, load_credential

Key = CertificateIssuerPrivateKeyTypes


def subject(name: str, groups: Sequence[str] = ()) -> x509.Name:
    return x509.Name(
        [
            *[x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups],
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )


def csr(key: Key, of: x509.Name, alternatives: x509.SubjectAlternativeName | None = None) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(of)
    if alternatives is not None:
        builder = builder.add_extension(alternatives, critical=False)
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, digest).public_bytes(serialization.Encoding.PEM)


@lru_cache
def encoded_csr(name: str = "jane", *groups: str) -> str:
    """Return a request for *name* as ``spec.request`` holds it."""
    key = ec.generate_private_key(ec.SECP256R1())
    return base64.b64encode(csr(key, subject(name, groups))).decode()


def client_context(ca: bytes, credential: Credential | None = None) -> ssl.SSLContext:
    """Return the context of a client that trusts *ca* and shows *credential*."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cadata=ca.decode("ascii"))
    if credential is not None:
        load_credential(context, credential)
    return context


def server_context(
    pki: Pki, given: Credential | None = None, names: Sequence[str] = (), *, to_all: bool = False
) -> ssl.SSLContext:
    """Return the context of a server that proves itself with *pki* and trusts its clients."""
    return Shown(pki.server, given, tuple(names), to_all).context(pki.bundle.decode("ascii"))
