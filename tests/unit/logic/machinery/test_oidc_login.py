"""What is asked of an issuer, and what of its answers is believed."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from skerry.logic.machinery.oidc import OidcError
from skerry.logic.machinery.oidc_login import (
    MAX_TOKEN_LENGTH,
    Begun,
    Endpoints,
    LoginClient,
    Tokens,
    authorization_url,
    challenge_of,
    check_nonce,
    code_form,
    endpoints_of,
    refresh_form,
    tokens_of,
)

ISSUER = "https://login.example"
HERE = Endpoints(f"{ISSUER}/authorize", f"{ISSUER}/token")
BEGUN = Begun("state", "nonce", "verifier", "https://hub:8443/console/login")
DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": HERE.authorization,
    "token_endpoint": HERE.token,
}


def words(body: bytes) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(body.decode()).items()}


def test_a_browser_is_sent_with_the_digest_of_the_secret_and_never_the_secret() -> None:
    client = LoginClient(ISSUER, "skerry", "s3cret", ("email", "openid"))
    url = authorization_url(HERE, client, BEGUN)
    asked = words(urlsplit(url).query.encode())
    assert asked == {
        "response_type": "code",
        "client_id": "skerry",
        "redirect_uri": BEGUN.redirect,
        "scope": "openid email",
        "state": "state",
        "nonce": "nonce",
        "code_challenge": challenge_of("verifier"),
        "code_challenge_method": "S256",
    }
    assert "verifier" not in url
    assert "s3cret" not in url
    further = Endpoints(f"{ISSUER}/authorize?tenant=a", HERE.token)
    assert "?tenant=a&response_type=code" in authorization_url(further, client, BEGUN)


def test_the_digest_is_that_of_the_specification() -> None:
    # RFC 7636, appendix B.
    found = challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    assert found == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"issuer": "https://elsewhere"}, "elsewhere"),
        ({"authorization_endpoint": "http://login.example/a"}, "authorization_endpoint"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
        ({"token_endpoint": None}, "token_endpoint"),
        ({"token_endpoint": "https://login.example/#f"}, "token_endpoint"),
    ],
)
def test_endpoints_that_are_no_https_addresses_of_the_issuer_are_refused(
    change: dict[str, Any], wanted: str
) -> None:
    assert endpoints_of(DOCUMENT, ISSUER) == HERE
    with pytest.raises(OidcError, match=wanted):
        endpoints_of({**DOCUMENT, **change}, ISSUER)


def test_a_secret_is_shown_as_the_issuer_wants_it() -> None:
    public = code_form(HERE, LoginClient(ISSUER, "skerry"), BEGUN, "c")
    assert "authorization" not in public.headers
    assert words(public.body) == {
        "grant_type": "authorization_code",
        "code": "c",
        "redirect_uri": BEGUN.redirect,
        "code_verifier": "verifier",
        "client_id": "skerry",
    }
    client = LoginClient(ISSUER, "a b", "p:w")
    basic = refresh_form(HERE, client, "r")
    shown = base64.b64decode(basic.headers["authorization"].removeprefix("Basic "))
    assert shown == b"a+b:p%3Aw"
    assert b"p%3Aw" not in basic.body
    methods = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    posting = endpoints_of({**DOCUMENT, **methods}, ISSUER)
    posted = refresh_form(posting, client, "r")
    assert words(posted.body)["client_secret"] == "p:w"
    assert "authorization" not in posted.headers


def test_an_answer_without_an_id_token_is_none() -> None:
    assert tokens_of({"id_token": "i"}) == Tokens("i")
    assert tokens_of({"id_token": "i"}, Tokens("old", "r")) == Tokens("i", "r")
    assert tokens_of({"id_token": "i", "refresh_token": "n"}, Tokens("o", "r")) == Tokens("i", "n")
    for bad in ({}, {"id_token": 5}, {"id_token": ""}, {"id_token": "i", "refresh_token": []}):
        with pytest.raises(OidcError, match="no ID token"):
            tokens_of(bad)
    with pytest.raises(OidcError, match="longer"):
        tokens_of({"id_token": "i" * (MAX_TOKEN_LENGTH + 1)})


@pytest.mark.parametrize("claims", [{}, {"nonce": "other"}, {"nonce": None}, {"nonce": ["nonce"]}])
def test_a_token_of_another_sign_in_is_refused(claims: dict[str, Any]) -> None:
    check_nonce({"nonce": "nonce"}, BEGUN)
    with pytest.raises(OidcError, match="nonce"):
        check_nonce(claims, BEGUN)
