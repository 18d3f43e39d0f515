"""What a request for a certificate must be before anybody signs it, and which field is wrong."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge_identity import EDGES, USAGES, EdgeName, request_name
from skerry.server.security.certificate_requests import (
    RequestError,
    check_edge_request,
    organizations_of,
    parse_request,
)
from tests.kit.server.certificates import Key, csr, subject

EDGE = EdgeName("box", "uid-1")
KEY = ec.generate_private_key(ec.SECP256R1())


def request(
    key: Key = KEY,
    of: x509.Name | None = None,
    names: x509.SubjectAlternativeName | None = None,
    **more: Any,
) -> dict[str, Any]:
    pem = csr(key, of or subject(EDGE.common_name, (EDGES,)), names)
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    spec = {"request": base64.b64encode(pem).decode(), "usages": list(USAGES), **more}
    return {"metadata": {"name": request_name(public)}, "spec": spec}


def fields(obj: dict[str, Any]) -> set[str]:
    with pytest.raises(RequestError) as caught:
        check_edge_request(obj, EDGE)
    return {error.field for error in caught.value.errors}


@lru_cache
def small_rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 1024)


@pytest.mark.parametrize(
    "key", [KEY, ec.generate_private_key(ec.SECP384R1()), ed25519.Ed25519PrivateKey.generate()]
)
def test_an_edges_request_is_accepted_with_any_of_the_usual_keys(key: Key) -> None:
    found = check_edge_request(request(key), EDGE)
    assert organizations_of(found) == [EDGES]


def test_a_key_that_is_too_weak_or_unusual_is_refused() -> None:
    assert fields(request(small_rsa())) == {"spec.request"}
    assert fields(request(ec.generate_private_key(ec.SECP521R1()))) == {"spec.request"}
    assert fields(request(dsa.generate_private_key(1024))) == {"spec.request"}


@pytest.mark.parametrize(
    "of",
    [
        subject("system:edge:other:uid-2", (EDGES,)),
        subject(EDGE.common_name),
        subject(EDGE.common_name, (EDGES, "system:masters")),
        subject(EDGE.common_name, ("system:masters",)),
        subject("root", (EDGES,)),
    ],
)
def test_an_edge_asks_for_its_own_name_and_group_and_no_others(of: x509.Name) -> None:
    assert fields(request(of=of)) == {"spec.request"}


def test_an_edges_certificate_has_no_alternative_names() -> None:
    names = x509.SubjectAlternativeName([x509.DNSName("hub.example")])
    assert fields(request(names=names)) == {"spec.request"}


@pytest.mark.parametrize("usages", [[], ["client auth"], [*USAGES, "server auth"], None])
def test_an_edges_certificate_is_for_clients_only(usages: Any) -> None:
    assert fields(request(usages=usages)) == {"spec.usages"}


def test_the_name_of_a_request_follows_from_its_key() -> None:
    other = request()
    other["metadata"]["name"] = "mine"
    assert fields(other) == {"metadata.name"}


def test_a_signature_of_another_key_is_refused() -> None:
    raw = bytearray(base64.b64decode(request()["spec"]["request"]))
    lines = bytes(raw).split(b"\n")
    der = bytearray(base64.b64decode(b"".join(lines[1:-2])))
    der[-1] ^= 1
    pem = b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(bytes(der))
    pem += b"-----END CERTIFICATE REQUEST-----\n"
    forged = request()
    forged["spec"]["request"] = base64.b64encode(pem).decode()
    assert fields(forged) == {"spec.request"}


def test_everything_that_is_wrong_is_said_at_once() -> None:
    assert fields(request(of=subject("root"), usages=[])) == {"spec.request", "spec.usages"}


_texts = st.one_of(
    st.none(), st.integers(), st.text(max_size=20), st.binary(max_size=60).map(
        lambda raw: base64.b64encode(raw).decode()
    ), st.just("A" * 17_000), st.binary(max_size=40).map(
        lambda raw: base64.b64encode(
            b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(raw)
            + b"-----END CERTIFICATE REQUEST-----\n"
        ).decode()
    ),
)  # fmt: skip


@given(_texts)
def test_whatever_else_is_sent_is_refused_by_its_field_and_not_repeated(text: Any) -> None:
    with pytest.raises(RequestError) as caught:
        parse_request({"request": text})
    [error] = caught.value.errors
    assert error.field == "spec.request"
    assert len(str(error)) < 200
