"""What an OpenID Connect ID token says of a person: the rules of kube-apiserver's ``--oidc-*``.

Signatures are checked elsewhere; here are the claims. An issuer is somebody else's: whatever it
says, nobody becomes a user or a member of a group that begins with ``system:``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

# Everything that is signed with a key only the issuer has; never "none", never a shared secret.
ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "ES256",
    "ES384",
    "ES512",
    "PS256",
    "PS384",
    "PS512",
)
# Names that the server itself gives out.
SYSTEM = "system:"
# How far the clocks of the issuer and of this machine may be apart.
SKEW_SECONDS = 30
_EMAIL = "email"
_NO_PREFIX = "-"
# The last second of the year 9999, beyond which nobody can compute.
_LAST_MOMENT = 253_402_300_799
# As long as a name in an impersonation header may be.
_MAX_NAME_LENGTH = 1024


class OidcError(Exception):
    """Why a token does not hold, or settings make no sense; never has the token in it."""


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """Who vouches for people, and what they are called here."""

    issuer_url: str
    """URL of the issuer, https only; tokens must name it exactly so."""

    client_ids: tuple[str, ...]
    """Audiences of which a token must be for one."""

    username_claim: str = "sub"
    """Claim that is the user's name. With ``email`` the address must not be unverified."""

    username_prefix: str = ""
    """What names begin with, so that they meet no others; default the issuer's URL and ``#``
    unless the claim is ``email``; ``-`` means none."""

    groups_claim: str = ""
    """Claim that lists the user's groups; without one nobody is in any."""

    groups_prefix: str = ""
    """What groups begin with."""

    required_claims: Mapping[str, str] = field(default_factory=dict)
    """Claims that a token must have, with these values."""

    signing_algs: tuple[str, ...] = ("RS256",)
    """Algorithms a token may be signed with; those with shared secrets are refused."""

    @property
    def name_prefix(self) -> str:
        """What names begin with in fact."""
        if self.username_prefix == _NO_PREFIX:
            return ""
        if self.username_prefix or self.username_claim == _EMAIL:
            return self.username_prefix
        return f"{self.issuer_url}#"


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a token stands for, and until when (seconds since 1970)."""

    name: str
    groups: tuple[str, ...]
    expires: float
    token_id: str


def check_settings(settings: OidcSettings) -> None:
    """Refuse settings that make no sense, by the name of the flag."""
    try:
        parts = urlsplit(settings.issuer_url)
        port = parts.port
    except ValueError as error:
        raise OidcError(f"--oidc-issuer-url {settings.issuer_url!r}: {error}") from error
    if parts.scheme != "https" or not parts.hostname or port == 0:
        raise OidcError(f"--oidc-issuer-url {settings.issuer_url!r}: want an https URL")
    if parts.query or parts.fragment or parts.username is not None or parts.password is not None:
        raise OidcError(
            f"--oidc-issuer-url {settings.issuer_url!r}: want no user, query or fragment in it"
        )
    if not settings.client_ids or not all(settings.client_ids):
        raise OidcError("--oidc-client-id: required with --oidc-issuer-url")
    if not settings.username_claim:
        raise OidcError("--oidc-username-claim: must not be empty")
    unknown = sorted(set(settings.signing_algs) - set(ALGORITHMS))
    if unknown or not settings.signing_algs:
        raise OidcError(
            f"--oidc-signing-algs {','.join(unknown)}: want some of {', '.join(ALGORITHMS)}"
        )
    for flag, prefix in (
        ("--oidc-username-prefix", settings.username_prefix),
        ("--oidc-groups-prefix", settings.groups_prefix),
    ):
        if prefix.startswith(SYSTEM):
            raise OidcError(f"{flag} {prefix!r}: names that begin with {SYSTEM!r} are the server's")


def person_of(settings: OidcSettings, claims: Mapping[str, Any], now: float) -> Person:
    """Return whom a token with *claims*, whose signature holds, stands for at *now*."""
    if claims.get("iss") != settings.issuer_url:
        raise OidcError("the token is of another issuer")
    _check_audience(settings, claims.get("aud"))
    expires = _check_times(claims, now)
    for name, wanted in settings.required_claims.items():
        if claims.get(name) != wanted:
            raise OidcError(f"claim {name!r} is not {wanted!r}")
    name = _username(settings, claims)
    groups = tuple(
        _named(settings.groups_prefix + each, "group") for each in _groups(settings, claims)
    )
    token_id = claims.get("jti")
    return Person(name, groups, expires, token_id if isinstance(token_id, str) else "")


def _check_audience(settings: OidcSettings, audience: Any) -> None:
    named = audience if isinstance(audience, list) else [audience]
    if not any(each in settings.client_ids for each in named if isinstance(each, str)):
        raise OidcError("the token is for another audience")


def _check_times(claims: Mapping[str, Any], now: float) -> float:
    expires = _moment(claims, "exp")
    if expires is None:
        raise OidcError("the token never expires")
    if expires + SKEW_SECONDS < now:
        raise OidcError("the token has expired")
    for name in ("nbf", "iat"):
        moment = _moment(claims, name)
        if moment is not None and moment - SKEW_SECONDS > now:
            raise OidcError("the token is not valid yet")
    return expires


def _moment(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # Also refuses what is not a number, which compares with nothing.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OidcError(f"claim {name!r} is no time")
    if not 0 <= value <= _LAST_MOMENT:
        raise OidcError(f"claim {name!r} is no time")
    return float(value)


def _username(settings: OidcSettings, claims: Mapping[str, Any]) -> str:
    claim = settings.username_claim
    value = claims.get(claim)
    if not isinstance(value, str) or not value:
        raise OidcError(f"claim {claim!r} names no user")
    if claim == _EMAIL and claims.get("email_verified", True) is not True:
        raise OidcError("the e-mail address is not verified")
    return _named(settings.name_prefix + value, "user")


def _groups(settings: OidcSettings, claims: Mapping[str, Any]) -> list[str]:
    if not settings.groups_claim:
        return []
    value = claims.get(settings.groups_claim)
    if value is None:
        return []
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise OidcError(f"claim {settings.groups_claim!r} is no list of groups")
    return found


def _named(name: str, what: str) -> str:
    """Return a name that an outsider may have."""
    if name.startswith(SYSTEM):
        raise OidcError(f"a {what} whose name begins with {SYSTEM!r} is the server's")
    if len(name) > _MAX_NAME_LENGTH or not name.isprintable():
        raise OidcError(f"a {what}'s name has at most {_MAX_NAME_LENGTH} printable characters")
    return name
