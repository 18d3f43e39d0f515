"""A key, a request for it, and a name that only this key has."""

from __future__ import annotations

import subprocess
import sys

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from skerry.api.edge_identity import request_name
from skerry.edge.syncer.identity.signing_request import SigningRequest, Subject, signing_request

FLORIN = Subject("system:edge:florin", "system:edges")
_DER = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo


def checked(made: SigningRequest) -> x509.CertificateSigningRequest:
    """Return the request, which must be of the key, signed by it and named after it."""
    request = x509.load_pem_x509_csr(made.request.encode())
    key = serialization.load_pem_private_key(made.key.encode(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.curve.name == "secp256r1"
    assert request.is_signature_valid
    public = request.public_key().public_bytes(*_DER)
    assert public == key.public_key().public_bytes(*_DER)
    assert made.name == request_name(public)
    return request


def test_a_request_is_for_the_subject_and_signed_by_its_own_key() -> None:
    subject = checked(signing_request(FLORIN)).subject
    [common] = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    [organization] = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert (common.value, organization.value) == (FLORIN.common_name, FLORIN.organization)


def test_no_two_requests_share_a_key_or_a_name() -> None:
    one, other = signing_request(FLORIN), signing_request(FLORIN)
    assert one.key != other.key
    assert one.name != other.name


def test_the_program_answers_one_request_on_its_standard_streams() -> None:
    asked = msgspec.json.encode({"commonName": "c", "organization": "o"})
    words = [sys.executable, "-P", "-m", "skerry.edge.syncer.identity.signing_request"]
    answer = subprocess.run(words, input=asked, capture_output=True, check=True, timeout=60)
    checked(msgspec.json.decode(answer.stdout, type=SigningRequest))
    assert answer.stderr == b""
