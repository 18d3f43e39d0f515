"""Whom a TLS connection believes: exactly what it was given."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from skerry.kit.clock import SystemClock
from skerry.kit.trust import trusting
from skerry.server.security.pki import Authority, Credential, new_ca

CLOCK = SystemClock()  # OpenSSL goes by the time it is
HOST = "webhook.example"


def issued(ca: Credential) -> Credential:
    return Authority(ca, CLOCK).server(HOST, [HOST])


def shaken(trust: bytes, server: Credential, folder: Path) -> None:
    """Shake hands in memory; raises what the client finds wrong."""
    file = folder / "server.pem"
    file.write_bytes(server.certificate + server.key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(trust).wrap_bio(down, up, server_hostname=HOST)
    peer = serving.wrap_bio(up, down, server_side=True)
    for _ in range(4):
        for side in (client, peer):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_a_server_is_believed_by_its_authority_and_by_its_own_certificate(tmp_path: Path) -> None:
    ca = new_ca("ca", CLOCK)
    server = issued(ca)
    shaken(ca.certificate, server, tmp_path)
    shaken(server.certificate, server, tmp_path)


def test_another_certificate_of_the_same_authority_is_not_believed(tmp_path: Path) -> None:
    ca = new_ca("ca", CLOCK)
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(issued(ca).certificate, issued(ca), tmp_path)


@pytest.mark.parametrize("text", [b"none", "é".encode()])
def test_what_is_no_certificate_is_an_error(text: bytes) -> None:
    with pytest.raises((ssl.SSLError, ValueError)):
        trusting(text)
