"""Signing in at an OpenID Connect issuer: from the button to the session.

A sign-in that has begun is kept by the browser, in a cookie that is sealed with a key of this
process: nobody fills the server's memory by beginning, and what comes back is of the browser that
asked. The browser comes back to the page, which is public as ever, and the page posts what the
address has; so the cookie can be as strict as that of a session, and the code leaves the address at
once. Each sign-in ends once, whatever comes of it.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import astuple
from typing import Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from skerry.api.errors import TooManyRequests, Unauthorized
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.rate import RateLimit
from skerry.logic.machinery.oidc_login import MAX_CODE_LENGTH, Begun
from skerry.server.user import User
from skerry.web.sessions import Credential

# As long as somebody looks for a second factor.
LIFETIME_SECONDS = 600
LOGIN = "/console/login"
_SECRET_BYTES = 32
_NONCE_BYTES = 12
_PURPOSE = b"skerry console sign-in"
_MAX_COOKIE_LENGTH = 2048
# Codes that the issuer is asked about; each is a request to somebody else's server.
_PER_SECOND, _BURST = 5, 50
_REFUSED = "this sign-in did not begin in this browser, or has ended: sign in again"

_Sealed = tuple[tuple[str, str, str, str], float]


class Issuer(Protocol):
    """Who vouches for people. What fails raises an ApiError that says so in a sentence."""

    @property
    def name(self) -> str:
        """What people know it by."""

    async def address(self, begun: Begun) -> str:
        """Return where a browser signs in."""

    async def redeemed(self, begun: Begun, code: str) -> tuple[User, Credential]:
        """Return whom *code* stands for; Unauthorized when it is not good, or of another."""


class OidcSignIn:
    """Everybody's sign-ins at one issuer."""

    def __init__(self, issuer: Issuer, clock: Clock, ids: IdSource) -> None:
        self._issuer = issuer
        self._clock = clock
        self._ids = ids
        self._key = AESGCM(ids.bytes(_SECRET_BYTES))
        # The states of sign-ins that ended, for as long as their cookies last. The limit on how
        # often the issuer is asked bounds them.
        self._spent: dict[str, float] = {}
        self._limit = RateLimit(per_second=_PER_SECOND, burst=_BURST)

    @property
    def name(self) -> str:
        """What people know the issuer by."""
        return self._issuer.name

    async def begin(self, authority: str) -> tuple[str, str]:
        """Return where to send a browser that calls us *authority*, and what it keeps meanwhile."""
        redirect = f"https://{authority}{LOGIN}"
        begun = Begun(self._secret(), self._secret(), self._secret(), redirect)
        address = await self._issuer.address(begun)
        packed = msgspec.msgpack.encode((astuple(begun), self._until()))
        nonce = self._ids.bytes(_NONCE_BYTES)
        sealed = nonce + self._key.encrypt(nonce, packed, _PURPOSE)
        return address, base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    async def finish(self, cookie: str, state: str, code: str) -> tuple[User, Credential]:
        """Return who signed in; Unauthorized unless this browser began, and only once."""
        begun, until = self._opened(cookie)
        now = self._clock.monotonic()
        if until <= now or not hmac.compare_digest(begun.state.encode(), state.encode()):
            raise Unauthorized(_REFUSED)
        if begun.state in self._spent or not 0 < len(code) <= MAX_CODE_LENGTH:
            raise Unauthorized(_REFUSED)
        if not self._limit.allows(now):
            raise TooManyRequests("too many people sign in at once; try again", 5)
        self._spent = {each: end for each, end in self._spent.items() if end > now}
        self._spent[begun.state] = until
        return await self._issuer.redeemed(begun, code)

    def _opened(self, cookie: str) -> tuple[Begun, float]:
        if not 0 < len(cookie) <= _MAX_COOKIE_LENGTH:
            raise Unauthorized(_REFUSED)
        try:
            sealed = base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
            packed = self._key.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _PURPOSE)
        except (InvalidTag, ValueError) as error:
            raise Unauthorized(_REFUSED) from error
        members, until = msgspec.msgpack.decode(packed, type=_Sealed)
        return Begun(*members), until

    def _until(self) -> float:
        return self._clock.monotonic() + LIFETIME_SECONDS

    def _secret(self) -> str:
        return base64.urlsafe_b64encode(self._ids.bytes(_SECRET_BYTES)).decode().rstrip("=")
