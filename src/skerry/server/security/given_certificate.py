"""A certificate for serving that a person gives, as kube-apiserver's ``--tls-cert-file``.

It is shown to clients that ask for one of its names; everybody else, and whatever runs on this
machine, gets the certificate the server makes itself. The file holds the certificate, then
perhaps those above it. One that is self-signed is an authority, which kubeconfigs and
``kube-root-ca.crt`` then name besides our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from skerry.server.security.pem import blocks
from skerry.server.security.pki import Credential


@dataclass(frozen=True, slots=True)
class GivenCertificate:
    """The certificate, the host names it is good for, and the authorities in its file."""

    credential: Credential
    names: tuple[str, ...]
    roots: bytes


def read_given(certificate_file: Path, key_file: Path) -> GivenCertificate:
    """Return what the files hold; ValueError when they do not belong together."""
    pem, key = certificate_file.read_bytes(), key_file.read_bytes()
    found = blocks(pem, "CERTIFICATE")
    if not found:
        raise ValueError(f"{certificate_file}: want a certificate, PEM")
    leaf = x509.load_pem_x509_certificate(found[0])
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except TypeError as error:
        raise ValueError(f"{key_file}: the key is encrypted; want one that is not") from error
    if private.public_key().public_bytes(*form) != leaf.public_key().public_bytes(*form):
        raise ValueError(f"{key_file} is not the key of {certificate_file}")
    try:
        alternatives = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound as error:
        raise ValueError(f"{certificate_file}: the certificate names no host") from error
    names = tuple(alternatives.value.get_values_for_type(x509.DNSName))
    return GivenCertificate(Credential(b"".join(found), key), names, _roots(found[1:]))


def read_client_authorities(file: Path | None) -> bytes:
    """Return the authorities in *file*, PEM, that vouch for clients; ValueError if it has none.

    Whatever else the file holds is left out. Each must be an authority: a certificate of a client
    in this place would be a mistake that nobody notices before it matters.
    """
    if file is None:
        return b""
    found = blocks(file.read_bytes(), "CERTIFICATE")
    if not found:
        raise ValueError(f"{file}: want certificates of authorities, PEM")
    for number, pem in enumerate(found, 1):
        certificate = x509.load_pem_x509_certificate(pem)
        try:
            basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        except x509.ExtensionNotFound:
            basic = None
        if basic is None or not basic.value.ca:
            subject = certificate.subject.rfc4514_string()
            raise ValueError(f"{file}: certificate {number} ({subject}) is of no authority")
    return b"".join(found)


def _roots(above: list[bytes]) -> bytes:
    certificates = [(pem, x509.load_pem_x509_certificate(pem)) for pem in above]
    return b"".join(pem for pem, each in certificates if each.subject == each.issuer)
