"""Whom a client certificate stands for, and whether it still does.

The handshake has verified the chain and the purpose of a certificate, but not its times: OpenSSL
would refuse a lapsed certificate before anybody could ask what it may still be good for. So every
time is checked here, of the certificate and of the authority that issued it, for every
certificate. A certificate must be issued by one of the authorities directly: the handshake does
not show intermediate ones, whose times nobody could check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Sequence
from datetime import datetime
from typing import Protocol

from cryptography import x509
from cryptography.x509.oid import NameOID

from skerry.api.errors import Unauthorized
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.server.security.pki import is_issued_by
from skerry.server.security.remembered import MAX_REMEMBERED, Remembered
from skerry.server.user import User

log = Logger("authentication")

# A certificate's own validity is checked this often on connections that stay open.
_SECONDS = 60.0
CREDENTIAL = "authentication.kubernetes.io/credential-id"
AUTHENTICATED = "system:authenticated"

Authorities = Callable[[], Sequence[x509.Certificate]]


class NamedCertificate:
    """A certificate with the names it carries."""

    __slots__ = ("groups", "name", "x509")

    def __init__(self, certificate: x509.Certificate) -> None:
        names = _values(certificate.subject, NameOID.COMMON_NAME)
        self.x509 = certificate
        self.name = names[0] if names else ""
        self.groups = tuple(_values(certificate.subject, NameOID.ORGANIZATION_NAME))


class SpecialCertificates(Protocol):
    """Certificates whose users and times have rules of their own."""

    def concerns(self, certificate: NamedCertificate) -> bool:
        """Tell whether *certificate* is one of them."""

    def user(self, certificate: NamedCertificate) -> tuple[User, datetime]:
        """Return the user, and until when it is that one; raises Unauthorized."""


class ClientCertificates:
    """Users by client certificate.

    Without *authorities* the issuer is taken to be checked elsewhere. Serial numbers in *revoked*
    are refused, and so are names that begin with one of *reserved*, unless they are *special*: who
    bears such a name was given it here, by one of the authorities that are our *own*.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        authorities: Authorities = lambda: (),
        own: Authorities | None = None,
        revoked: Container[int] = frozenset(),
        reserved: tuple[str, ...] = (),
        special: SpecialCertificates | None = None,
        issued_by: Callable[[x509.Certificate, x509.Certificate], bool] = is_issued_by,
    ) -> None:
        self._clock = clock
        self._authorities = authorities
        self._own = own or authorities
        self._revoked = revoked
        self._reserved = reserved
        self._special = special
        self._issued_by = issued_by
        self._known: Remembered[bytes] = Remembered(clock, _SECONDS)
        # By certificate, which authority signed it: of all that is checked this alone takes long,
        # a tenth of a millisecond, and it alone never changes.
        self._signed: dict[bytes, x509.Certificate] = {}

    def user(self, der: bytes) -> User | None:
        """Return the user of a certificate; None when it names nobody.

        Raises Unauthorized for one that does not hold.
        """
        return self._known.get(der) or self._read(der)

    def forget(self) -> None:
        """Check every certificate anew when it is next shown."""
        self._known.clear()
        self._signed.clear()

    def _read(self, der: bytes) -> User | None:
        try:
            certificate = NamedCertificate(x509.load_der_x509_certificate(der))
        except ValueError as error:
            log.info("client certificate cannot be read", v=2, error=error)
            raise Unauthorized from error
        special = self._special
        if special is not None and not special.concerns(certificate):
            special = None
        issuers = self._authorities() if special is None else self._own()
        authority = self._checked(der, certificate.x509, issuers)
        credential = {CREDENTIAL: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
        if special is not None:
            user, until = special.user(certificate)
        else:
            until = certificate.x509.not_valid_after_utc
            if until < self._clock.now():
                raise _refused("it has expired", certificate.x509)
            if not certificate.name:
                return None
            user = User(certificate.name, "", _with_authenticated(certificate.groups))
            if is_reserved(self._reserved, user):
                raise _refused("its user or a group is reserved", certificate.x509)
        user = User(user.name, user.uid, user.groups, {**user.extra, **credential}, user.home)
        self._known.put(der, user, until)
        if authority is not None:
            if len(self._signed) >= MAX_REMEMBERED:
                self._signed.clear()
            self._signed[der] = authority
        return user

    def _checked(
        self, der: bytes, certificate: x509.Certificate, authorities: Sequence[x509.Certificate]
    ) -> x509.Certificate | None:
        """Check what holds for every certificate, special ones included; return who issued it,
        if that is for us to know."""
        now = self._clock.now()
        if certificate.serial_number in self._revoked:
            raise _refused("it is revoked", certificate)
        if now < certificate.not_valid_before_utc:
            raise _refused("it is not valid yet", certificate)
        if not authorities:
            return None
        signed = self._signed.get(der)
        first = [signed] if signed is not None and signed in authorities else []
        for authority in [*first, *authorities]:
            valid = authority.not_valid_before_utc <= now <= authority.not_valid_after_utc
            if valid and (authority is signed or self._issued_by(certificate, authority)):
                return authority
        raise _refused("no authority that is valid now issued it", certificate)


def has_serial(der: bytes | None, serial: int) -> bool:
    """Tell whether a certificate has this serial number; cheap for one that has not."""
    if der is None or serial.to_bytes(serial.bit_length() // 8 + 1, "big") not in der:
        return False
    try:
        return x509.load_der_x509_certificate(der).serial_number == serial
    except ValueError:
        return False


def is_reserved(reserved: tuple[str, ...], user: User) -> bool:
    """Tell whether the server alone gives out the name or a group of *user*."""
    return bool(reserved) and any(n.startswith(reserved) for n in (user.name, *user.groups))


def _refused(why: str, certificate: x509.Certificate) -> Unauthorized:
    log.info("client certificate refused", v=2, reason=why, serial=f"{certificate.serial_number:x}")
    return Unauthorized()


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED)


def _values(subject: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in subject.get_attributes_for_oid(oid)]
