"""PEM files with several blocks in them, and names for the keys they hold."""

from __future__ import annotations

import base64
import hashlib

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"-----END ", b"-----"


def blocks(pem: bytes, label: str) -> list[bytes]:
    """Return the blocks of *pem* whose label ends with *label*, in order; the rest is skipped.

    A block that does not end before the next one begins is none.
    """
    found: list[bytes] = []
    begun: list[bytes] = []
    name = b""
    for line in pem.splitlines(keepends=True):
        bare = line.rstrip()
        if bare.startswith(_BEGIN) and bare.endswith(_DASHES):
            name, begun = bare[len(_BEGIN) : -len(_DASHES)], [line]
        elif begun:
            begun.append(line)
            if bare == _END + name + _DASHES:
                if name.endswith(label.encode()):
                    found.append(b"".join(begun))
                begun = []
    return found


def key_id(public: CertificatePublicKeyTypes) -> str:
    """Return the name of a key: the hash of its encoding, as Kubernetes names them."""
    encoded = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.urlsafe_b64encode(hashlib.sha256(encoded).digest()).rstrip(b"=").decode("ascii")
