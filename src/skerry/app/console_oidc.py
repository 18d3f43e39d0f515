"""The issuer of a hub's people, as its console meets it: endpoints, codes, and tokens that last.

ID tokens live for minutes at many issuers. Where the issuer gives a refresh token with one, the
session goes on with the next, for as long as the issuer gives it: who is signed out or locked there
is signed out here when the token at hand ends, at the latest. Without one the session ends with the
ID token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt

from skerry.api.errors import ServiceUnavailable, Unauthorized
from skerry.app.console_credential import HeldCredential, PackedCredential
from skerry.app.console_record import ConsoleError
from skerry.app.oidc import Exchange, exchanging, issuer_context
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.logic.machinery.oidc import OidcError
from skerry.logic.machinery.oidc_login import (
    Begun,
    Endpoints,
    Form,
    LoginClient,
    Tokens,
    authorization_url,
    check_nonce,
    code_form,
    endpoints_of,
    refresh_form,
    tokens_of,
)
from skerry.server.access import Authenticator
from skerry.server.security.oidc import DISCOVERY, issuer_document
from skerry.server.user import User
from skerry.web.sessions import Credential

log = Logger("console")

_MAX_SECRET_BYTES = 4096
# Endpoints hardly ever move; an issuer that is away is asked again soon.
_KNOWN_SECONDS, _FAILED_SECONDS = 3600.0, 5.0
# A token is renewed this long before its end, or after two thirds of what is left of it.
_EARLY_SECONDS = 120.0
# After an attempt that failed.
_PAUSE_SECONDS = 10.0


class Refused(OidcError):
    """The issuer answered, and said no."""


class OidcIssuer:
    """The issuer that people sign in at."""

    def __init__(
        self, client: LoginClient, exchange: Exchange, authenticator: Authenticator, clock: Clock
    ) -> None:
        self._client = client
        self._exchange = exchange
        self._authenticator = authenticator
        self._clock = clock
        self._endpoints: Endpoints | None = None
        self._again = float("-inf")
        self._problem = ""
        self._looking = asyncio.Lock()

    @property
    def name(self) -> str:
        return urlsplit(self._client.issuer_url).hostname or ""

    async def address(self, begun: Begun) -> str:
        try:
            return authorization_url(await self._found(), self._client, begun)
        except OidcError as error:
            raise self._away(error) from error

    async def redeemed(self, begun: Begun, code: str) -> tuple[User, Credential]:
        try:
            endpoints = await self._found()
            form = code_form(endpoints, self._client, begun, code)
            tokens = tokens_of(await self._asked(endpoints.token, form))
        except Refused as error:
            raise Unauthorized(f"{self.name} did not take the code: {error}") from error
        except OidcError as error:
            raise self._away(error) from error
        credential = self.credential(tokens)
        user = await credential.user()
        try:
            check_nonce(_claims(tokens.id_token), begun)
        except OidcError as error:
            raise Unauthorized(str(error)) from error
        return user, credential

    def credential(self, tokens: Tokens) -> Credential:
        """Return what a session is kept by."""
        if tokens.refresh_token:
            return RenewedCredential(self, self._authenticator, tokens, self._clock)
        return held_token(self._authenticator, tokens.id_token)

    async def refreshed(self, tokens: Tokens) -> Tokens:
        """Return tokens that last longer; ``Refused`` when the issuer gives none any more."""
        endpoints = await self._found()
        form = refresh_form(endpoints, self._client, tokens.refresh_token)
        return tokens_of(await self._asked(endpoints.token, form), tokens)

    async def _found(self) -> Endpoints:
        """Return the endpoints; one fetch at a time, and none too often."""
        async with self._looking:
            now = self._clock.monotonic()
            if now >= self._again:
                try:
                    self._endpoints = await self._discovered()
                    self._problem, self._again = "", now + _KNOWN_SECONDS
                except OidcError as error:
                    self._problem, self._again = str(error), now + _FAILED_SECONDS
            if self._endpoints is None:
                raise OidcError(self._problem)
            return self._endpoints

    async def _discovered(self) -> Endpoints:
        url = self._client.issuer_url
        status, body = await self._exchange("GET", url.rstrip("/") + DISCOVERY, Form({}, b""))
        if status != 200:
            raise OidcError(f"{DISCOVERY}: status {status}")
        return endpoints_of(issuer_document(body), url)

    async def _asked(self, url: str, form: Form) -> Mapping[str, Any]:
        status, body = await self._exchange("POST", url, form)
        if status in (400, 401, 403):
            raise Refused(_refusal(body))
        if status != 200:
            raise OidcError(f"the token endpoint answered {status}")
        return issuer_document(body)

    def _away(self, error: OidcError) -> ServiceUnavailable:
        log.warning("the OIDC issuer cannot be asked", error=error)
        return ServiceUnavailable(
            f"{self.name} cannot be asked at the moment: try again, or sign in by skerry console"
        )


class RenewedCredential:
    """An ID token, and the next before it ends."""

    def __init__(
        self, issuer: OidcIssuer, authenticator: Authenticator, tokens: Tokens, clock: Clock
    ) -> None:
        self._issuer = issuer
        self._authenticator = authenticator
        self._tokens = tokens
        self._clock = clock
        self._renewing = asyncio.Lock()
        self._renew_at = self._due()

    async def user(self) -> User:
        if self._clock.monotonic() >= self._renew_at:
            await self._renew()
        return await held_token(self._authenticator, self._tokens.id_token).user()

    def packed(self) -> bytes:
        held = held_token(self._authenticator, self._tokens.id_token)
        return held.with_refresh_token(self._tokens.refresh_token)

    async def _renew(self) -> None:
        """Have the next token; while the issuer is away, the one at hand is good until it ends."""
        async with self._renewing:
            if self._clock.monotonic() < self._renew_at:
                return
            try:
                self._tokens = await self._issuer.refreshed(self._tokens)
                self._renew_at = self._due()
            except Refused as error:
                raise Unauthorized(f"{self._issuer.name} ended the session: {error}") from error
            except OidcError as error:
                self._renew_at = self._clock.monotonic() + _PAUSE_SECONDS
                log.warning("an ID token is not renewed", error=error)

    def _due(self) -> float:
        """Return when the token at hand is to be renewed."""
        ends = _claims(self._tokens.id_token).get("exp")
        left = ends - self._clock.now().timestamp() if isinstance(ends, int | float) else 0.0
        return self._clock.monotonic() + max(left - _EARLY_SECONDS, left * 2 / 3, _PAUSE_SECONDS)


def held_token(authenticator: Authenticator, id_token: str) -> HeldCredential:
    """Return an ID token as what is shown to the hub; people are the same in every workspace."""
    return HeldCredential(authenticator, {"authorization": f"Bearer {id_token}"}, None, "")


def kept_credential(
    packed: bytes, authenticator: Authenticator, issuer: OidcIssuer | None
) -> Credential:
    """Return the credential of a session that was kept."""
    kept = PackedCredential.unpacked(packed)
    if kept.refresh_token and issuer is not None:
        id_token = kept.headers.get("authorization", "").removeprefix("Bearer ")
        return issuer.credential(Tokens(id_token, kept.refresh_token))
    return HeldCredential(authenticator, kept.headers, kept.certificate, kept.cluster)


def console_issuer(
    settings: ServerSettings, authenticator: Authenticator, clock: Clock
) -> OidcIssuer | None:
    """Return the issuer that people sign in at, where the hub knows one."""
    oidc = settings.oidc
    if oidc is None:
        return None
    client = LoginClient(
        oidc.issuer_url,
        oidc.client_ids[0],
        _secret(settings.console_oidc_secret_file),
        settings.console_oidc_scopes,
    )
    exchange = exchanging(issuer_context(settings.oidc_ca_file))
    return OidcIssuer(client, exchange, authenticator, clock)


def _secret(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        with file.open("rb") as opened:
            found = opened.read(_MAX_SECRET_BYTES + 1).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConsoleError(f"--console-oidc-secret-file {file}: {error}") from error
    if not 0 < len(found) <= _MAX_SECRET_BYTES:
        raise ConsoleError(f"--console-oidc-secret-file {file}: want one secret, and no more")
    return found


def _claims(id_token: str) -> Mapping[str, Any]:
    """Return what a token says; whether it is true is the authenticator's to know."""
    try:
        found: Mapping[str, Any] = jwt.decode(id_token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        return {}
    return found


def _refusal(body: bytes) -> str:
    """Return the word by which an issuer refuses; what else it says is for its own people."""
    try:
        found = issuer_document(body).get("error")
    except OidcError:
        found = None
    return found[:64] if isinstance(found, str) and found.isprintable() else "it was refused"
