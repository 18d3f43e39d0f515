"""Signing in at an OpenID Connect issuer: what is asked of it, and what its answers must say.

The authorization code flow with PKCE (RFC 7636). A browser is sent to the issuer with a state, a
nonce and the digest of a secret; it comes back with a code and that state; the code is exchanged
for an ID token by whoever knows the secret, and the token must have the nonce in it. So a code that
somebody else intercepts, guesses or smuggles into another browser is worth nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from skerry.logic.machinery.oidc import OidcError

# No issuer's code or token is longer; whatever is longer is not looked at.
MAX_CODE_LENGTH = 4096
MAX_TOKEN_LENGTH = 64 * 1024
_BASIC, _POST = "client_secret_basic", "client_secret_post"


@dataclass(frozen=True, slots=True)
class LoginClient:
    """Who we are to the issuer."""

    issuer_url: str
    client_id: str
    # Empty for a client without one: PKCE is enough for many issuers.
    secret: str = ""
    scopes: tuple[str, ...] = ()

    @property
    def scope(self) -> str:
        """What is asked for; without ``openid`` there is no ID token."""
        return " ".join(dict.fromkeys(("openid", *self.scopes)))


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the issuer takes browsers and codes."""

    authorization: str
    token: str
    secret_in_body: bool = False


@dataclass(frozen=True, slots=True)
class Begun:
    """One sign-in that has begun: what binds the answer to the browser that asked."""

    state: str
    nonce: str
    verifier: str
    redirect: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a code or a refresh token was exchanged for."""

    id_token: str
    refresh_token: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A request to the issuer's token endpoint."""

    headers: Mapping[str, str]
    body: bytes


def endpoints_of(document: Mapping[str, Any], issuer_url: str) -> Endpoints:
    """Return the endpoints that a discovery document names; each must be https."""
    if document.get("issuer") != issuer_url:
        raise OidcError(f"the discovery document is of {str(document.get('issuer'))[:200]!r}")
    found = []
    for name in ("authorization_endpoint", "token_endpoint"):
        url = document.get(name)
        if not isinstance(url, str) or urlsplit(url).scheme != "https" or urlsplit(url).fragment:
            raise OidcError(f"the discovery document's {name}: want an https URL")
        found.append(url)
    methods = document.get("token_endpoint_auth_methods_supported")
    known = methods if isinstance(methods, list) else [_BASIC]
    return Endpoints(found[0], found[1], _BASIC not in known and _POST in known)


def authorization_url(endpoints: Endpoints, client: LoginClient, begun: Begun) -> str:
    """Return where a browser is sent to sign in."""
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": begun.redirect,
        "scope": client.scope,
        "state": begun.state,
        "nonce": begun.nonce,
        "code_challenge": challenge_of(begun.verifier),
        "code_challenge_method": "S256",
    }
    separator = "&" if urlsplit(endpoints.authorization).query else "?"
    return f"{endpoints.authorization}{separator}{urlencode(asked)}"


def challenge_of(verifier: str) -> str:
    """Return the digest by which the issuer will know *verifier*."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def code_form(endpoints: Endpoints, client: LoginClient, begun: Begun, code: str) -> Form:
    """Return the request that exchanges *code*."""
    given = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": begun.redirect,
        "code_verifier": begun.verifier,
    }
    return _form(endpoints, client, given)


def refresh_form(endpoints: Endpoints, client: LoginClient, refresh_token: str) -> Form:
    """Return the request for an ID token that lasts longer."""
    given = {"grant_type": "refresh_token", "refresh_token": refresh_token, "scope": client.scope}
    return _form(endpoints, client, given)


def _form(endpoints: Endpoints, client: LoginClient, given: Mapping[str, str]) -> Form:
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "accept": "application/json",
    }
    if client.secret and not endpoints.secret_in_body:
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return Form(headers, urlencode(given).encode())
    named = {**given, "client_id": client.client_id}
    if client.secret:
        named["client_secret"] = client.secret
    return Form(headers, urlencode(named).encode())


def tokens_of(document: Mapping[str, Any], before: Tokens | None = None) -> Tokens:
    """Return the tokens of an answer; an issuer that does not rotate says nothing of the old one.

    *before* are those that were refreshed.
    """
    found = document.get("id_token")
    refresh = document.get("refresh_token", before.refresh_token if before is not None else "")
    if not isinstance(found, str) or not isinstance(refresh, str) or not found:
        raise OidcError("the issuer's answer has no ID token in it")
    if len(found) + len(refresh) > MAX_TOKEN_LENGTH:
        raise OidcError(f"the issuer's tokens are longer than {MAX_TOKEN_LENGTH} characters")
    return Tokens(found, refresh)


def check_nonce(claims: Mapping[str, Any], begun: Begun) -> None:
    """Raise OidcError unless a token that says *claims* was made for this sign-in."""
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), begun.nonce.encode()):
        raise OidcError("the ID token is of another sign-in: its nonce is not ours")
