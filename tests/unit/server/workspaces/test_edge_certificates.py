"""Certificates of edges: the time of issue is in the serial, and a lapsed one may still ask."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge_identity import EDGE_GROUPS, EDGES, LAPSED, LAPSED_LIFETIME
from skerry.api.errors import Unauthorized
from skerry.kit.ids import SeededIds
from skerry.server.security.client_certificates import NamedCertificate
from skerry.server.security.pki import Authority, new_ca
from skerry.server.workspaces.edge_certificates import (
    EdgeCertificates,
    EdgeIssuer,
    issued_at,
    new_serial,
)
from tests.kit.server.certificates import csr, subject
from tests.kit.server.clock import HandClock
from tests.kit.server.mailboxes import BOX, EDGE, MailboxPlace, mailbox_place

KEY = ec.generate_private_key(ec.SECP256R1())
CA = new_ca("edges", HandClock())
WEEK = timedelta(days=7)


class Place:
    """A hub that issues certificates and reads them back."""

    def __init__(self, mailboxes: MailboxPlace) -> None:
        self.clock, self.mailboxes = HandClock(), mailboxes
        self.issuer = EdgeIssuer(lambda: Authority(CA, self.clock), self.clock, SeededIds(1), WEEK)
        self.certificates = EdgeCertificates(mailboxes.mailboxes, self.clock)

    def issued(
        self, name: str = EDGE.common_name, groups: tuple[str, ...] = EDGE_GROUPS,
        seconds: int | None = None,
    ) -> NamedCertificate:  # fmt: skip
        request = x509.load_pem_x509_csr(csr(KEY, subject(name, groups)))
        pem = self.issuer.issue(request, seconds)
        return NamedCertificate(x509.load_pem_x509_certificate(pem))

    def refuses(self, certificate: NamedCertificate) -> bool:
        try:
            self.certificates.user(certificate)
        except Unauthorized:
            return True
        return False


async def hub() -> Place:
    return Place(await mailbox_place())


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_moments = st.integers(0, 10**16).map(lambda number: _EPOCH + timedelta(microseconds=number))


@given(_moments, st.integers(0, 99))
def test_a_serial_holds_the_microsecond_of_its_issue(moment: datetime, seed: int) -> None:
    serial = new_serial(moment, SeededIds(seed))
    assert issued_at(serial) == moment
    # X.509 has twenty bytes for it, and the first bit is a sign.
    assert serial.bit_length() < 160


@given(st.integers(0, 1 << 200))
def test_no_serial_of_a_stranger_breaks_anything(serial: int) -> None:
    found = issued_at(serial)
    assert found is None or found >= _EPOCH


async def test_an_edge_is_known_by_its_certificate_and_has_the_rights_of_an_edge_only() -> None:
    place = await hub()
    user, ends = place.certificates.user(place.issued())
    assert (user.name, user.home, user.groups) == (EDGE.user, BOX, EDGE_GROUPS)
    assert user.extra == {}
    assert ends == place.clock.now() + WEEK


async def test_a_certificate_lasts_as_long_as_asked_but_not_longer_than_the_hub_says() -> None:
    place = await hub()
    for seconds, wanted in ((3600, timedelta(hours=1)), (10**9, WEEK), (None, WEEK)):
        ends = place.issued(seconds=seconds).x509.not_valid_after_utc
        assert ends - place.clock.now() == wanted


async def test_a_lapsed_certificate_counts_for_asking_again_for_a_while() -> None:
    place = await hub()
    certificate = place.issued()
    place.clock.advance((WEEK + timedelta(seconds=1)).total_seconds())
    user, ends = place.certificates.user(certificate)
    assert user.extra == {LAPSED: ("true",)}
    place.clock.advance((ends - place.clock.now()).total_seconds() + 1)
    assert ends == certificate.x509.not_valid_after_utc + LAPSED_LIFETIME
    assert place.refuses(certificate)


async def test_a_revocation_ends_certificates_from_before_it_also_within_its_second() -> None:
    place = await hub()
    before = place.issued()
    place.mailboxes.change(BOX, revoked="2030-01-01T00:00:00.000500Z")
    place.clock.advance(0.0004)
    assert place.refuses(before)
    assert place.refuses(place.issued())
    place.clock.advance(0.0002)
    assert not place.refuses(place.issued())


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("system:edge:box:nonsense", EDGE_GROUPS),
        ("root", EDGE_GROUPS),
        (EDGE.common_name, ()),
        (EDGE.common_name, (EDGES, "system:masters")),
        (EDGE._replace(mailbox="other").common_name, EDGE_GROUPS),
    ],
)
async def test_what_claims_to_be_an_edges_and_is_not_of_its_form_is_refused_and_nobody_elses(
    name: str, groups: tuple[str, ...]
) -> None:
    place = await hub()
    certificate = place.issued(name, groups)
    assert place.certificates.concerns(certificate)
    assert place.refuses(certificate)


async def test_other_certificates_are_no_concern_of_it() -> None:
    place = await hub()
    assert not place.certificates.concerns(place.issued("ann", ("dev",)))
