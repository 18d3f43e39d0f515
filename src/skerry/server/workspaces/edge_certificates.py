"""Certificates of edges: issued from requests, read back as users, lapsed ones included.

The serial number of such a certificate begins with the time of issue in microseconds. X.509 has
no other place for it (``notBefore`` lies a little in the past, for edges whose clock is behind),
and a revocation must tell certificates from before it from those after, also within one second.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cryptography import x509

from skerry.api.edge_identity import (
    EDGE_GROUPS,
    EDGES,
    LAPSED,
    LAPSED_LIFETIME,
    EdgeName,
    edge_of_common_name,
    is_edge_name,
)
from skerry.api.errors import Unauthorized
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.server.security.client_certificates import NamedCertificate
from skerry.server.security.pki import Authority
from skerry.server.user import User
from skerry.server.workspaces.mailboxes import Mailboxes

# An edge whose clock is behind by this much can still use a certificate at once.
_BACKDATED = timedelta(minutes=10)
_RANDOM_BYTES = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

log = Logger("edges")


class EdgeIssuer:
    """Issues certificates for *lifetime*, or for less where a request asks for that."""

    def __init__(
        self,
        authority: Callable[[], Authority],
        clock: Clock,
        ids: IdSource,
        lifetime: timedelta,
    ) -> None:
        """*authority* returns what signs now; it may be rotated."""
        self._authority = authority
        self._clock = clock
        self._ids = ids
        self._lifetime = lifetime

    def issue(self, request: x509.CertificateSigningRequest, seconds: int | None) -> bytes:
        """Return the certificate, PEM, for a request that was checked and approved."""
        valid = self._lifetime
        if seconds is not None:
            valid = min(valid, timedelta(seconds=seconds))
        serial = new_serial(self._clock.now(), self._ids)
        return self._authority().sign_request(request, valid, backdated=_BACKDATED, serial=serial)


class EdgeCertificates:
    """Users by the certificates of edges."""

    def __init__(self, mailboxes: Mailboxes, clock: Clock) -> None:
        self._mailboxes = mailboxes
        self._clock = clock

    def concerns(self, certificate: NamedCertificate) -> bool:
        """Tell whether a certificate claims to be an edge's; such names are nobody else's."""
        return EDGES in certificate.groups or is_edge_name(certificate.name)

    def user(self, certificate: NamedCertificate) -> tuple[User, datetime]:
        edge = edge_of_common_name(certificate.name)
        issued = issued_at(certificate.x509.serial_number)
        now, ends = self._clock.now(), certificate.x509.not_valid_after_utc
        if edge is None or certificate.groups != EDGE_GROUPS or issued is None or issued > ends:
            raise _refused(certificate, "it is not of the form of an edge's certificate")
        if not self._mailboxes.admits(edge, issued):
            raise _refused(certificate, "its edge is revoked, or has no mailbox")
        if now <= ends:
            return edge_user(edge), ends
        if now > ends + LAPSED_LIFETIME:
            raise _refused(certificate, f"it lapsed more than {LAPSED_LIFETIME.days} days ago")
        return edge_user(edge, lapsed=True), ends + LAPSED_LIFETIME


def edge_user(edge: EdgeName, *, lapsed: bool = False) -> User:
    """Return the user an edge acts as."""
    extra = {LAPSED: ("true",)} if lapsed else {}
    return User(edge.user, edge.uid, EDGE_GROUPS, extra, edge.mailbox)


def new_serial(now: datetime, ids: IdSource) -> int:
    """Return a serial number that tells the time of issue; 64 bits of it are random."""
    microseconds = (now - _EPOCH) // _MICROSECOND
    return microseconds << 8 * _RANDOM_BYTES | int.from_bytes(ids.bytes(_RANDOM_BYTES), "big")


def issued_at(serial: int) -> datetime | None:
    """Return when a certificate with *serial* was issued; None when it does not tell."""
    try:
        return _EPOCH + (serial >> 8 * _RANDOM_BYTES) * _MICROSECOND
    except OverflowError:
        return None


def _refused(certificate: NamedCertificate, why: str) -> Unauthorized:
    log.info("certificate refused", v=2, user=certificate.name, reason=why)
    return Unauthorized()
