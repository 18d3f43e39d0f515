from __future__ import annotations

import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from skerry.kit.secret_files import write_secret
from skerry.server.security.pki import Authority, open_pki, server_names
from tests.kit.server.clock import HandClock

NAMES = server_names(("hub.example", "10.1.2.3"))


def test_the_same_directory_gives_the_same_certificates_again(tmp_path: Path) -> None:
    assert open_pki(tmp_path / "pki", NAMES) == open_pki(tmp_path / "pki", NAMES)


def test_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_pki(tmp_path / "pki", NAMES)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "pki").iterdir()}
    assert modes == {0o600}
    assert not list((tmp_path / "pki").glob("*.part"))


def test_the_server_answers_to_every_name_it_is_given(tmp_path: Path) -> None:
    certificate = open_pki(tmp_path, NAMES).server.x509
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)
    assert "hub.example" in names.get_values_for_type(x509.DNSName)
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"127.0.0.1", "::1", "10.1.2.3"}


def test_the_admin_is_a_master_and_certificates_are_valid_two_days_before(tmp_path: Path) -> None:
    clock = HandClock()
    admin = open_pki(tmp_path, NAMES, clock).admin.x509
    subject = admin.subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "kubernetes-admin"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"
    assert admin.not_valid_before_utc == clock.now() - timedelta(days=2)


def test_leaves_are_renewed_near_their_end_and_the_ca_is_not(tmp_path: Path) -> None:
    clock = HandClock()
    first = open_pki(tmp_path, NAMES, clock)
    clock.advance(timedelta(days=300).total_seconds())
    second = open_pki(tmp_path, NAMES, clock)
    assert second.ca == first.ca
    assert second.server != first.server
    assert second.admin != first.admin


def test_only_the_server_certificate_is_renewed_when_its_names_change(tmp_path: Path) -> None:
    first = open_pki(tmp_path, NAMES)
    second = open_pki(tmp_path, (*NAMES, "new.example"))
    assert second.server != first.server
    assert (second.ca, second.admin) == (first.ca, first.admin)


def test_a_key_without_its_certificate_is_replaced(tmp_path: Path) -> None:
    first = open_pki(tmp_path, NAMES)
    # As a crash in the middle of a renewal leaves it.
    write_secret(tmp_path / "server.key", first.admin.key)
    second = open_pki(tmp_path, NAMES)
    assert second.server.certificate != first.server.certificate


def test_leaves_of_another_ca_are_replaced(tmp_path: Path) -> None:
    ours, other = open_pki(tmp_path / "a", NAMES), open_pki(tmp_path / "b", NAMES)
    for name, credential in (("crt", other.server.certificate), ("key", other.server.key)):
        write_secret(tmp_path / "a" / f"server.{name}", credential)
    again = open_pki(tmp_path / "a", NAMES)
    assert again.server != other.server
    assert again.ca == ours.ca


def test_a_signing_request_gets_a_client_certificate_for_its_subject(tmp_path: Path) -> None:
    pki = open_pki(tmp_path, NAMES)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    request = (
        x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    )
    signed = Authority(pki.ca, HandClock()).sign_request(request)
    certificate = x509.load_pem_x509_certificate(signed)
    certificate.verify_directly_issued_by(pki.ca.x509)
    assert certificate.subject == subject


def test_a_signing_request_with_a_wrong_signature_is_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    request = (
        x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    )
    from cryptography.hazmat.primitives.serialization import Encoding

    raw = bytearray(request.public_bytes(Encoding.DER))
    raw[raw.index(b"jane")] = ord("d")
    with pytest.raises(InvalidSignature):
        Authority(open_pki(tmp_path, NAMES).ca, HandClock()).sign_request(
            x509.load_der_x509_csr(bytes(raw))
        )
