"""People by the ID tokens of an OpenID Connect issuer.

The issuer's keys are fetched in the background and kept: a request meets memory, not the network.
Only a token that names a key nobody has seen may wait for a fetch, for a moment, and fetches come
no closer together than ``_MIN_PAUSE_SECONDS`` however many such tokens there are; so an issuer
that is dead or slow costs its own users a refusal and everybody else nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from skerry.api.errors import Unauthorized
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.rate import RateLimit
from skerry.logic.machinery.oidc import OidcError, OidcSettings, Person, person_of
from skerry.server.user import User

log = Logger("oidc")

DISCOVERY = "/.well-known/openid-configuration"
# Issuers publish a key long before they sign with it; some of them for a day.
_REFRESH_SECONDS = 3600.0
# After a failure, and for keys that are not known: often enough for a person who has just signed
# in, seldom enough for the issuer.
_MIN_PAUSE_SECONDS = 10.0
# How long a request waits for a key; a person notices a longer silence.
_PATIENCE_SECONDS = 3.0
# Requests that may wait at once; the others are refused and come again.
_MAX_WAITING = 100
_MAX_KEYS = 100
_MIN_RSA_BITS = 2048
_CREDENTIAL = "authentication.kubernetes.io/credential-id"

PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey
# Fetches what is at a URL, within a bounded time and size; OidcError when it does not come.
Fetch = Callable[[str], Awaitable[bytes]]


class IssuerKeys:
    """The public keys of an issuer. ``run`` keeps them fresh."""

    def __init__(self, issuer_url: str, fetch: Fetch, clock: Clock) -> None:
        self._issuer = issuer_url
        self._fetch = fetch
        self._clock = clock
        self._keys: dict[str, tuple[PublicKey, str]] = {}
        self._wanted = asyncio.Event()
        self._fetched = asyncio.Event()
        self._next_fetch = 0.0
        self._waiting = 0
        self._failures = RateLimit(per_second=1 / 60, burst=3)

    async def run(self) -> None:
        """Fetch now and then, and when somebody needs a key that is not there, until cancelled."""
        while True:
            pause = _REFRESH_SECONDS if await self._refresh() else _MIN_PAUSE_SECONDS
            self._next_fetch = self._clock.monotonic() + _MIN_PAUSE_SECONDS
            waiting, self._fetched = self._fetched, asyncio.Event()
            waiting.set()
            try:
                async with asyncio.timeout(pause):
                    await self._wanted.wait()
            except TimeoutError:
                continue
            await self._clock.sleep(max(0.0, self._next_fetch - self._clock.monotonic()))

    async def find(self, name: str, algorithm: str) -> PublicKey:
        """Return the key *name*, for which a fetch may be waited for; OidcError without one."""
        found = self._known(name, algorithm)
        if found is None:
            self._wanted.set()
            if self._may_wait():
                await self._wait()
                found = self._known(name, algorithm)
        if found is None:
            raise OidcError("the token is signed by an unknown key")
        return found

    def _known(self, name: str, algorithm: str) -> PublicKey | None:
        if not name and len(self._keys) == 1:
            # Issuers with one key need not name it.
            name = next(iter(self._keys))
        key, only = self._keys.get(name, (None, ""))
        return key if only in ("", algorithm) else None

    def _may_wait(self) -> bool:
        """Tell whether a fetch is due, so that waiting for it may help."""
        soon = self._clock.monotonic() + _PATIENCE_SECONDS >= self._next_fetch
        return soon and self._waiting < _MAX_WAITING

    async def _wait(self) -> None:
        self._waiting += 1
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._fetched.wait()
        except TimeoutError:
            return
        finally:
            self._waiting -= 1

    async def _refresh(self) -> bool:
        """Fetch the keys; tell whether they came."""
        self._wanted.clear()
        try:
            self._keys = await self._read()
        except OidcError as error:
            # Keys that are known stay known: an issuer that is away locks nobody out.
            if self._failures.allows(self._clock.monotonic()):
                log.warning("keys of the OIDC issuer cannot be had", error=error)
            return False
        log.info("keys of the OIDC issuer were read", v=2, keys=len(self._keys))
        return True

    async def _read(self) -> dict[str, tuple[PublicKey, str]]:
        document = issuer_document(await self._fetch(self._issuer.rstrip("/") + DISCOVERY))
        if document.get("issuer") != self._issuer:
            raise OidcError(f"{DISCOVERY} is of issuer {str(document.get('issuer'))[:200]!r}")
        uri = document.get("jwks_uri")
        if not isinstance(uri, str) or not uri.startswith("https://"):
            raise OidcError(f"{DISCOVERY}: jwks_uri: want an https URL")
        listed = issuer_document(await self._fetch(uri)).get("keys")
        if not isinstance(listed, list):
            raise OidcError("jwks_uri: want an object with a list of keys")
        keys = {
            str(each.get("kid", "")): (key, str(each.get("alg", "")))
            for each in listed[:_MAX_KEYS]
            if isinstance(each, dict) and (key := _public_key(each)) is not None
        }
        if not keys:
            raise OidcError("jwks_uri: there is no key in it that can be used")
        return keys


class OidcTokens:
    """Recognises people by their ID tokens."""

    def __init__(self, settings: OidcSettings, keys: IssuerKeys, clock: Clock) -> None:
        self._settings = settings
        self._keys = keys
        self._clock = clock
        self._refused = RateLimit(per_second=1, burst=10)

    def concerns(self, token: str) -> bool:
        """Tell whether a token claims to be of the issuer; nothing is checked."""
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            return False
        return claims.get("iss") == self._settings.issuer_url

    async def person(self, token: str) -> tuple[User, float]:
        """Return the user and when the token ends; OidcError says why it does not hold."""
        claims = await self._verified(token)
        found = person_of(self._settings, claims, self._clock.now().timestamp())
        return _user(found), found.expires

    async def user(self, token: str) -> tuple[User, float]:
        """Return the user and when the token ends; Unauthorized when it does not hold."""
        try:
            return await self.person(token)
        except OidcError as error:
            if self._refused.allows(self._clock.monotonic()):
                suppressed = self._refused.taken()
                log.info("ID token refused", v=2, error=error, suppressed=suppressed)
            raise Unauthorized from error

    async def _verified(self, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            algorithm, name = header.get("alg"), header.get("kid", "")
            if algorithm not in self._settings.signing_algs or not isinstance(name, str):
                raise OidcError("the token is signed with an algorithm that is not accepted")
            key = await self._keys.find(name, algorithm)
            claims: Mapping[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                # Claims are judged by our own rules and clock.
                options={
                    "verify_exp": False, "verify_nbf": False, "verify_iat": False,
                    "verify_aud": False, "verify_iss": False, "verify_sub": False,
                    "verify_jti": False,
                },
            )  # fmt: skip
        except (jwt.InvalidTokenError, ValueError, TypeError, RecursionError) as error:
            raise OidcError("the token's signature does not hold") from error
        return claims


def _user(person: Person) -> User:
    extra = {_CREDENTIAL: (f"JTI={person.token_id}",)} if person.token_id else {}
    return User(person.name, "", person.groups, extra)


def _public_key(listed: Mapping[str, Any]) -> PublicKey | None:
    """Return the key of an entry that is for signatures and strong enough, else None."""
    if listed.get("kty") not in ("RSA", "EC") or listed.get("use", "sig") != "sig":
        return None
    try:
        # Only the public half is looked at, whatever else somebody may have published.
        members = ("kty", "n", "e", "crv", "x", "y", "alg", "kid")
        found = jwt.PyJWK({name: listed[name] for name in members if name in listed}).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if isinstance(found, rsa.RSAPublicKey):
        return found if found.key_size >= _MIN_RSA_BITS else None
    return found if isinstance(found, ec.EllipticCurvePublicKey) else None


def issuer_document(body: bytes) -> Mapping[str, Any]:
    """Return what an issuer answered, an object."""
    try:
        found = orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise OidcError("the issuer's answer is no JSON") from error
    if not isinstance(found, dict):
        raise OidcError("the issuer's answer is no object")
    return found
