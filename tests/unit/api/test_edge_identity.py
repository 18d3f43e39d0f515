from __future__ import annotations

import base64
import hashlib
import uuid

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge_identity import (
    APPROVED,
    KEY_DIGEST,
    SIGNER,
    TOKEN_HASH,
    BootstrapToken,
    EdgeName,
    bootstrap_secret,
    certificate_request,
    edge_of_common_name,
    edge_of_user,
    parse_bootstrap_token,
    request_name,
    secret_value,
)

clusters = st.from_regex(r"[a-z0-9]{16}", fullmatch=True)
uids = st.uuids().map(str)
tokens = st.builds(
    BootstrapToken,
    st.from_regex(r"[a-z0-9]{6,32}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9_-]{32,128}", fullmatch=True),
)
TOKEN = BootstrapToken("abc123", "s" * 43)


@given(clusters, uids)
def test_an_edge_is_read_back_from_its_user_and_from_its_common_name(
    mailbox: str, uid: str
) -> None:
    edge = EdgeName(mailbox, uid)
    assert edge_of_user(edge.user) == edge
    assert edge_of_common_name(edge.common_name) == edge


def test_the_common_name_of_a_mailbox_fits_into_a_certificate() -> None:
    edge = EdgeName("a" * 16, str(uuid.UUID(int=7)))
    attribute = x509.NameAttribute(NameOID.COMMON_NAME, edge.common_name)
    assert len(str(attribute.value)) <= 64


@pytest.mark.parametrize(
    "name",
    [
        "",
        "system:edge:",
        "system:edge:m:",
        "system:edge:m:7",
        "system:edge:a:b:00000000-0000-0000-0000-000000000007",
        "system:edge:M:00000000-0000-0000-0000-000000000007",
        "system:edge:m:00000000-0000-0000-0000-00000000000A",
        "system:edge:m:00000000-0000-0000-0000-000000000007\n",
        "xsystem:edge:m:00000000-0000-0000-0000-000000000007",
        "system:edge-bootstrap:m:abc123",
    ],
)
def test_no_other_name_is_an_edge(name: str) -> None:
    assert edge_of_user(name) is None
    assert edge_of_common_name(name) is None


@given(tokens)
def test_a_bootstrap_credential_is_read_back_from_its_bearer_text(token: BootstrapToken) -> None:
    assert parse_bootstrap_token(token.bearer) == token


@given(st.text())
def test_nothing_else_is_a_bootstrap_credential(text: str) -> None:
    token = parse_bootstrap_token(text)
    assert token is None or token.bearer == text


def test_the_secret_of_a_bootstrap_credential_does_not_contain_it() -> None:
    secret = bootstrap_secret(
        TOKEN, sync_target="florin", expiration="2030-01-01T00:00:00Z", approved=True
    )
    assert all(TOKEN.secret not in base64.b64decode(v).decode() for v in secret["data"].values())
    assert secret_value(secret, TOKEN_HASH) == hashlib.sha256(TOKEN.secret.encode()).hexdigest()
    assert secret_value(secret, APPROVED) == "true"
    assert secret["metadata"] == {"name": "bootstrap-token-abc123", "namespace": "default"}


@pytest.mark.parametrize("raw", [None, 7, "%%%", "/w=="])
def test_a_value_of_a_secret_that_is_no_text_counts_as_absent(raw: object) -> None:
    assert secret_value({"data": {KEY_DIGEST: raw}}, KEY_DIGEST) == ""


def test_a_request_is_named_after_its_key_and_says_how_long_the_certificate_shall_live() -> None:
    name = request_name(b"key")
    assert name == request_name(b"key") != request_name(b"other")
    assert len(name) == len("edge-") + 32
    request = certificate_request(name, b"pem", 600)
    assert request["spec"]["signerName"] == SIGNER
    assert request["spec"]["expirationSeconds"] == 600
    assert base64.b64decode(request["spec"]["request"]) == b"pem"
    assert "expirationSeconds" not in certificate_request(name, b"pem")["spec"]
