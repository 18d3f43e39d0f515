"""What a CertificateSigningRequest asks for, read from the PEM inside it.

Everything that can be wrong is reported as errors of fields, so that whoever wrote the request
learns which one to mend. Sizes are bounded before anything is parsed or verified.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from skerry.api.edge_identity import EDGES, USAGES, EdgeName, request_name
from skerry.api.errors import FieldError

_REQUEST = "spec.request"
# An RSA request of 8192 bits has 4 KB; more is no request for a certificate.
_MAX_REQUEST_BYTES = 16 * 1024
_MIN_RSA_BITS = 2048
# Verifying a signature costs the cube of this.
_MAX_RSA_BITS = 8192
_CURVES = ("secp256r1", "secp384r1")
_PEM = "PEM block type must be CERTIFICATE REQUEST"


class RequestError(Exception):
    """A request that is not well formed; ``errors`` name the fields."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(str(error) for error in errors))
        self.errors = list(errors)


def parse_request(spec: dict[str, Any]) -> x509.CertificateSigningRequest:
    """Return the request in ``spec.request``; raises RequestError."""
    text = spec.get("request")
    if not isinstance(text, str) or not text:
        raise _wrong(_PEM)
    if len(text) > _MAX_REQUEST_BYTES:
        raise _wrong(f"it has {len(text)} characters: want at most {_MAX_REQUEST_BYTES}")
    try:
        pem = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _wrong("it is not base64") from error
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        raise _wrong(_PEM)
    try:
        return x509.load_pem_x509_csr(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _wrong("it cannot be parsed") from error


def organizations_of(request: x509.CertificateSigningRequest) -> list[str]:
    """Return the groups that a certificate for *request* would put its user in."""
    found = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return [str(attribute.value) for attribute in found]


def check_edge_request(obj: dict[str, Any], edge: EdgeName) -> x509.CertificateSigningRequest:
    """Return the request of *edge* for its certificate; raises RequestError."""
    spec = obj.get("spec") or {}
    request = parse_request(spec)
    errors = [*_usage_errors(spec), *_key_errors(request), *_subject_errors(request, edge)]
    if not errors:
        errors += _name_errors(obj, request)
    if errors:
        raise RequestError(errors)
    return request


def _usage_errors(spec: dict[str, Any]) -> list[FieldError]:
    usages = spec.get("usages") or []
    if sorted(map(str, usages)) == sorted(USAGES):
        return []
    wanted = " and ".join(f'"{usage}"' for usage in USAGES)
    return [FieldError.invalid("spec.usages", usages, f"want {wanted}")]


def _key_errors(request: x509.CertificateSigningRequest) -> list[FieldError]:
    try:
        key = request.public_key()
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, rsa.RSAPublicKey):
        if not _MIN_RSA_BITS <= key.key_size <= _MAX_RSA_BITS:
            detail = f"an RSA key has {_MIN_RSA_BITS} to {_MAX_RSA_BITS} bits"
            return [_error(f"{detail}, this one {key.key_size}")]
    elif isinstance(key, ec.EllipticCurvePublicKey):
        if key.curve.name not in _CURVES:
            return [_error(f"an elliptic curve is P-256 or P-384, this one {key.curve.name}")]
    elif not isinstance(key, ed25519.Ed25519PublicKey):
        return [_error("want a key on P-256, P-384 or Ed25519, or an RSA key")]
    try:
        valid = request.is_signature_valid
    except (ValueError, InvalidSignature, UnsupportedAlgorithm):
        valid = False
    return [] if valid else [_error("its signature does not fit its key")]


def _subject_errors(request: x509.CertificateSigningRequest, edge: EdgeName) -> list[FieldError]:
    wanted = [(NameOID.ORGANIZATION_NAME, EDGES), (NameOID.COMMON_NAME, edge.common_name)]
    found = [(attribute.oid, str(attribute.value)) for attribute in request.subject]
    if sorted(found, key=_by_text) != sorted(wanted, key=_by_text):
        shown = request.subject.rfc4514_string()[:200]
        detail = f"want the subject O={EDGES}, CN={edge.common_name}, found {shown!r}"
        return [_error(detail)]
    try:
        extensions = list(request.extensions)
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return [_error("its extensions cannot be parsed")]
    if any(isinstance(each.value, x509.SubjectAlternativeName) for each in extensions):
        return [_error("an edge's certificate has no alternative names")]
    return []


def _name_errors(obj: dict[str, Any], request: x509.CertificateSigningRequest) -> list[FieldError]:
    wanted = request_name(
        request.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    name = (obj.get("metadata") or {}).get("name") or ""
    if name == wanted:
        return []
    detail = f'the name follows from the key: want "{wanted}"'
    return [FieldError.invalid("metadata.name", name, detail)]


def _by_text(attribute: tuple[x509.ObjectIdentifier, str]) -> tuple[str, str]:
    return attribute[0].dotted_string, attribute[1]


def _error(detail: str) -> FieldError:
    # The request itself is not repeated: it is long, and the sender has it.
    return FieldError.invalid(_REQUEST, "<PEM>", detail)


def _wrong(detail: str) -> RequestError:
    return RequestError([_error(detail)])
