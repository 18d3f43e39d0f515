"""Certificates as a server's authority signs them for Kubernetes' signers."""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from skerry.kit.clock import SystemClock
from skerry.logic.machinery.certificate_signers import CLIENT, KUBELET_SERVING
from skerry.server.security.certificate_signing import CertificateSigning
from skerry.server.security.pki import Authority, new_ca
from tests.kit.server.certificates import csr, encoded_csr, subject

SIGNING = CertificateSigning(lambda: Authority(new_ca("ca", SystemClock()), SystemClock()))


def signed(**spec: Any) -> x509.Certificate:
    pem, why = SIGNING.signed(spec)
    assert not why
    return x509.load_pem_x509_certificate(pem)


def test_a_client_gets_a_certificate_for_its_name_and_groups() -> None:
    made = signed(request=encoded_csr("jane", "staff"), signerName=CLIENT, usages=["client auth"])
    assert made.subject == subject("jane", ["staff"])
    purposes = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_a_kubelet_serves_under_the_names_it_asked_for() -> None:
    names = [x509.DNSName("n"), x509.IPAddress(ipaddress.ip_address("10.0.0.1"))]
    key, of = ec.generate_private_key(ec.SECP256R1()), subject("system:node:n", ["system:nodes"])
    request = base64.b64encode(csr(key, of, x509.SubjectAlternativeName(names))).decode()
    usages = ["digital signature", "key encipherment", "server auth"]
    made = signed(request=request, signerName=KUBELET_SERVING, usages=usages)
    found = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(found) == names
    usage = made.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_encipherment, usage.key_cert_sign) == (True, False)
    assert SIGNING.subject({"request": request}).addresses == ("10.0.0.1",)


def test_what_cannot_be_read_or_is_not_wanted_is_said_in_a_sentence() -> None:
    assert SIGNING.signed({"request": "eA==", "signerName": CLIENT})[1]
    given = {"request": encoded_csr(), "signerName": CLIENT, "usages": ["signing"]}
    assert SIGNING.signed(given) == (b"", "invalid usage for client certificate: signing")
    assert SIGNING.subject({"request": "eA=="}).common_name == ""
