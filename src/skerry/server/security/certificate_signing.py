"""Kubernetes' own signers, with the server's authority."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from skerry.logic.machinery.certificate_signers import (
    BACKDATED,
    KUBELET_SERVING,
    Subject,
    lifetime,
    refusal,
)
from skerry.server.security.certificate_requests import (
    RequestError,
    organizations_of,
    parse_request,
)
from skerry.server.security.pki import Authority


class CertificateSigning:
    """Signs what ``spec`` of a CertificateSigningRequest asks for; *authority* is the present one.

    Whether it may be signed has been decided by whoever approved it.
    """

    def __init__(self, authority: Callable[[], Authority]) -> None:
        self._authority = authority

    def subject(self, spec: Mapping[str, Any]) -> Subject:
        """Return whom a request is for; nobody in particular where it cannot be read."""
        try:
            return subject_of(parse_request(dict(spec)))
        except (RequestError, ValueError):
            return Subject()

    def signed(self, spec: Mapping[str, Any]) -> tuple[bytes, str]:
        """Return the certificate, PEM, or why there is none."""
        try:
            request = parse_request(dict(spec))
            subject = subject_of(request)
            why = refusal(spec["signerName"], subject, spec.get("usages") or ())
            if why:
                return b"", why
            serving = spec["signerName"] == KUBELET_SERVING
            purpose = (
                ExtendedKeyUsageOID.SERVER_AUTH if serving else ExtendedKeyUsageOID.CLIENT_AUTH
            )
            return self._authority().sign_request(
                request,
                lifetime(spec),
                backdated=BACKDATED,
                purpose=purpose,
                alternatives=_alternatives(request),
                enciphers="key encipherment" in spec["usages"],
            ), ""
        except (RequestError, InvalidSignature, UnsupportedAlgorithm, ValueError) as error:
            return b"", str(error)


def subject_of(request: x509.CertificateSigningRequest) -> Subject:
    """Return whom a request asks a certificate for; RequestError where it cannot be read."""
    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    others = list(_alternatives(request) or ())

    def of(kind: type[x509.GeneralName]) -> tuple[str, ...]:
        return tuple(str(each.value) for each in others if isinstance(each, kind))

    return Subject(
        str(names[0].value) if names else "",
        tuple(organizations_of(request)),
        of(x509.DNSName),
        of(x509.IPAddress),
        of(x509.RFC822Name),
        of(x509.UniformResourceIdentifier),
    )


def _alternatives(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    except (x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError("its extensions cannot be parsed") from error
