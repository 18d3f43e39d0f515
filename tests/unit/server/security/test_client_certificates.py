"""Times, issuers and names of client certificates, which the handshake does not check."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from skerry.api.errors import Unauthorized
from skerry.server.security.client_certificates import ClientCertificates, NamedCertificate
from skerry.server.security.pki import Authority, Credential, new_ca
from skerry.server.user import User
from tests.kit.server.clock import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def ca(clock: HandClock) -> Credential:
    return new_ca("ca", clock)


def der(ca: Credential, clock: HandClock, name: str = "jane", *groups: str) -> bytes:
    return Authority(ca, clock).client(name, groups).x509.public_bytes(Encoding.DER)


def accepting(clock: HandClock, *authorities: Credential, **more: object) -> ClientCertificates:
    found = [each.x509 for each in authorities]
    return ClientCertificates(clock, authorities=lambda: found, **more)  # type: ignore[arg-type]


def test_a_certificate_counts_from_its_first_to_its_last_moment(
    clock: HandClock, ca: Credential
) -> None:
    shown, accepted = der(ca, clock), accepting(clock, ca)
    begin = clock.moment
    for days, holds in ((-2.1, False), (-1.9, True), (0, True), (364.9, True), (365.1, False)):
        clock.moment = begin + timedelta(days=days)
        accepted.forget()
        if holds:
            assert accepted.user(shown)
        else:
            with pytest.raises(Unauthorized):
                accepted.user(shown)


@pytest.mark.parametrize("days", [-2.5, 3651])
def test_an_authority_outside_its_time_vouches_for_nobody(
    clock: HandClock, ca: Credential, days: float
) -> None:
    clock.moment += timedelta(days=days)
    shown = der(ca, clock)
    with pytest.raises(Unauthorized):
        accepting(clock, ca).user(shown)
    young = new_ca("ca", clock)
    assert accepting(clock, ca, young).user(der(young, clock)), "another one vouches for its own"
    with pytest.raises(Unauthorized):
        accepting(clock, ca, young).user(shown)


def test_a_stranger_of_the_same_name_is_no_authority(clock: HandClock, ca: Credential) -> None:
    with pytest.raises(Unauthorized):
        accepting(clock, ca).user(der(new_ca("ca", clock), clock))


def test_what_is_remembered_ends_with_the_certificate(clock: HandClock, ca: Credential) -> None:
    shown, accepted = der(ca, clock), accepting(clock, ca)
    clock.advance(timedelta(days=365).total_seconds() - 10)
    assert accepted.user(shown)
    clock.advance(20)
    with pytest.raises(Unauthorized):
        accepted.user(shown)


def test_who_signed_a_certificate_is_found_out_once(clock: HandClock, ca: Credential) -> None:
    checked: list[x509.Certificate] = []

    def issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
        checked.append(authority)
        return certificate.issuer == authority.subject

    trusted, revoked = [new_ca("other", clock).x509, ca.x509], set[int]()
    accepted = ClientCertificates(
        clock, authorities=lambda: trusted, revoked=revoked, issued_by=issued_by
    )
    shown = der(ca, clock)
    for _ in range(3):
        assert accepted.user(shown)
        clock.advance(61)
    assert checked == trusted, "neither is asked again"
    accepted.forget()
    assert accepted.user(shown)
    assert checked == [*trusted, *trusted]

    clock.advance(61)
    authority = trusted.pop()
    with pytest.raises(Unauthorized):
        accepted.user(shown)
    trusted.append(authority)
    revoked.add(x509.load_der_x509_certificate(shown).serial_number)
    with pytest.raises(Unauthorized):
        accepted.user(shown)


class _Edges:
    """Certificates of edges, as a hub has them."""

    def concerns(self, certificate: NamedCertificate) -> bool:
        return certificate.name.startswith("system:edge")

    def user(self, certificate: NamedCertificate) -> tuple[User, datetime]:
        return User(certificate.name), certificate.x509.not_valid_after_utc


def test_a_name_that_is_given_here_counts_by_our_own_authority_alone(
    clock: HandClock, ca: Credential
) -> None:
    other = new_ca("other", clock)
    accepted = accepting(clock, ca, other, own=lambda: [ca.x509], special=_Edges())
    assert accepted.user(der(other, clock)), "of anybody else it vouches"
    assert accepted.user(der(ca, clock, "system:edge:a"))
    with pytest.raises(Unauthorized):
        accepted.user(der(other, clock, "system:edge:a"))


def test_a_reserved_name_or_group_is_nobodys(clock: HandClock, ca: Credential) -> None:
    accepted = accepting(clock, ca, reserved=("system:serviceaccount:", "system:kcp:"))
    for name, groups in (("system:serviceaccount:a:b", ()), ("jane", ("system:kcp:x",))):
        with pytest.raises(Unauthorized):
            accepted.user(der(ca, clock, name, *groups))
