"""How an edge judges its certificate, against the library it does without."""

from __future__ import annotations

import base64
import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge_identity import EdgeName
from skerry.logic.fleet.syncing.certificates import (
    EdgeIdentity,
    PendingRequest,
    Standing,
    Validity,
    Way,
    age_seconds,
    decode_identity,
    lifetime_seconds,
    renewal_seconds,
    validity_of,
    verdict_of,
    ways_to_certificate,
)

NOW = datetime(2030, 1, 10, tzinfo=UTC)
KEY = ec.generate_private_key(ec.SECP256R1())
EDGE = EdgeName("a" * 16, "00000000-0000-0000-0000-000000000007")
# RFC 5280 writes dates to 2049 in one form and later ones in another.
moments = st.integers(-(19 * 365 * 86400), 230 * 365 * 86400).map(
    lambda seconds: datetime.fromtimestamp(seconds, UTC)
)
texts = st.text(max_size=20)
requests = st.builds(
    PendingRequest,
    key=texts,
    request=texts,
    name=texts,
    credential=st.sampled_from(["bootstrap:a", "bootstrap:b", "certificate", "account"]),
)


def signed(not_before: datetime, not_after: datetime, common_name: str = "x") -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    return built.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@given(st.tuples(moments, moments).map(sorted), st.sampled_from(["x", "y" * 60]))
def test_the_validity_is_what_the_library_reads(dates: list[datetime], name: str) -> None:
    pem = signed(dates[0], dates[1], name)
    assert validity_of(b"# a comment\n" + pem + pem) == Validity(dates[0], dates[1])


@given(st.integers(0, 600), st.integers(0, 255))
def test_a_garbled_certificate_is_read_or_refused_with_a_value_error(at: int, byte: int) -> None:
    der = bytearray(ssl_der(signed(NOW, NOW + timedelta(days=1))))
    der[at % len(der)] = byte
    with contextlib.suppress(ValueError):
        validity_of(pem_of(bytes(der)))
    with contextlib.suppress(ValueError):
        validity_of(pem_of(bytes(der[:at])))


@pytest.mark.parametrize("text", [b"", b"nothing", b"-----BEGIN CERTIFICATE-----", b"\x00"])
def test_what_is_no_certificate_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="certificate"):
        validity_of(text)


def ssl_der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


def pem_of(der: bytes) -> bytes:
    body = base64.encodebytes(der)
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"


@given(st.lists(requests, max_size=6))
def test_an_identity_is_read_back_and_keeps_one_request_for_each_kind_of_credential(
    asked: list[PendingRequest],
) -> None:
    identity = EdgeIdentity(edge=EDGE.user, certificate="c", key="k", received=NOW)
    for request in asked:
        identity = identity.with_pending(request)
        assert identity.pending_by(request.credential) == request
    kinds = [request.kind for request in identity.pending]
    assert len(kinds) == len(set(kinds)) == len({request.kind for request in asked})
    assert decode_identity(identity.encode()) == identity
    for request in identity.pending:
        assert identity.without_pending(request).pending_by(request.credential) is None


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"pending": 7}', b'{"received": "soon"}'])
def test_what_is_no_identity_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="edge identity"):
        decode_identity(text)


def test_no_key_is_shown_by_accident() -> None:
    request = PendingRequest(key="secret", request="r", name="edge-1", credential="certificate")
    identity = EdgeIdentity(edge=EDGE.user, certificate="c", key="secret", pending=(request,))
    assert "secret" not in repr(identity)


@pytest.mark.parametrize(
    ("mailbox", "uid", "fits"),
    [
        (EDGE.mailbox, EDGE.uid, True),
        (EDGE.mailbox, "", True),
        ("b" * 16, EDGE.uid, False),
        (EDGE.mailbox, "00000000-0000-0000-0000-000000000008", False),
    ],
)
def test_a_certificate_is_used_for_its_own_edge_only(mailbox: str, uid: str, fits: bool) -> None:
    identity = EdgeIdentity(edge=EDGE.user, certificate="c", key="k")
    assert identity.is_for(mailbox, uid) is fits
    assert not EdgeIdentity().is_for(mailbox, uid)


@given(st.floats(0, 0.999), st.integers(60, 10**7))
def test_a_certificate_is_renewed_when_two_thirds_are_over_and_never_later(
    fraction: float, seconds: int
) -> None:
    identity = EdgeIdentity(lifetime_seconds=seconds)
    wait = renewal_seconds(identity, 0.0, fraction)
    assert 0.56 * seconds <= wait <= seconds * 2 / 3
    assert renewal_seconds(identity, wait, fraction) == 0.0


@given(st.integers(-86400, 86400), st.integers(0, 10**7))
def test_an_age_is_the_same_whatever_the_edge_thinks_of_the_time(skew: int, age: int) -> None:
    off = timedelta(seconds=skew)
    identity = EdgeIdentity(received=NOW + off, lifetime_seconds=600)
    now = NOW + timedelta(seconds=age) + off
    assert age_seconds(identity, NOW + timedelta(seconds=600), now) == age


def test_a_clock_that_was_set_back_is_helped_by_the_dates_of_the_hub() -> None:
    identity = EdgeIdentity(received=NOW + timedelta(days=1), lifetime_seconds=600)
    assert age_seconds(identity, NOW + timedelta(seconds=600), NOW + timedelta(seconds=90)) == 90


def test_a_lifetime_begins_when_the_request_was_decided() -> None:
    validity = Validity(NOW - timedelta(days=2), NOW + timedelta(days=7))
    assert lifetime_seconds(validity, NOW) == 7 * 86400
    assert lifetime_seconds(validity, None) == 9 * 86400
    # A clock at the approver's that is off by years is not believed.
    assert lifetime_seconds(validity, NOW + timedelta(days=900)) == 9 * 86400


def test_a_verdict_is_read_from_a_request() -> None:
    made = {"metadata": {"creationTimestamp": "2030-01-10T00:00:00Z"}}
    assert verdict_of(made).certificate == b""
    approved = {"type": "Approved", "status": "True", "lastUpdateTime": "2030-01-12T00:00:00Z"}
    issued = made | {"status": {"conditions": [approved], "certificate": "YQ=="}}
    assert verdict_of(issued) == (b"a", "", NOW + timedelta(days=2))
    denied = {"type": "Denied", "status": "True", "message": "no"}
    assert verdict_of(made | {"status": {"conditions": [denied]}}).refusal == "Denied: no"
    with pytest.raises(ValueError, match=r"."):
        verdict_of(made | {"status": {"certificate": "%%"}})


@given(st.builds(Standing, *[st.booleans()] * 6))
def test_a_working_certificate_is_left_alone_and_every_other_edge_has_a_way_if_there_is_one(
    standing: Standing,
) -> None:
    ways = ways_to_certificate(standing)
    if standing.has_certificate and not standing.refused:
        assert (Way.RENEW in ways) is standing.due
        assert (Way.REDEEM in ways) is (standing.bootstrap and standing.distrusted)
        return
    assert (Way.REDEEM in ways) is standing.bootstrap
    assert (Way.RENEW in ways) is standing.has_certificate
    assert (Way.EXCHANGE in ways) is (standing.account and not standing.has_certificate)
    assert not ways or not standing.bootstrap or ways[0] is Way.REDEEM
