"""A program that makes a key and a certificate signing request, and ends.

``python -m skerry.edge.syncer.identity.signing_request`` reads
``{"commonName": …, "organization": …}`` and writes ``{"key": …, "request": …, "name": …}``, both
PEM, the name that of the CertificateSigningRequest. It is a process of its own because
``cryptography`` is a sixth of a syncer's memory, and needed for a moment once in days. The key
passes through a pipe to the process that keeps it; it is in no argument, environment or file of
this one.
"""

from __future__ import annotations

import sys

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

from skerry.api.edge_identity import request_name


class Subject(msgspec.Struct, rename="camel"):
    """Whose certificate it is to be."""

    common_name: str
    organization: str


class SigningRequest(msgspec.Struct):
    """A private key, the request for it, and the name of the latter."""

    key: str
    request: str
    name: str


def signing_request(subject: Subject) -> SigningRequest:
    """Return a new P-256 key with a request for *subject*."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, subject.organization),
            x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name),
        ]
    )
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return SigningRequest(
        private.decode(), request.public_bytes(Encoding.PEM).decode(), request_name(public)
    )


def main() -> None:
    """Answer one request on standard input."""
    subject = msgspec.json.decode(sys.stdin.buffer.read(), type=Subject)
    sys.stdout.buffer.write(msgspec.json.encode(signing_request(subject)))


if __name__ == "__main__":
    main()
