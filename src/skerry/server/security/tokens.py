"""ServiceAccount tokens: signed here, checked here, and published keys for others to check.

A token is a JWT bound to a ServiceAccount's UID and perhaps to a Pod, Secret or Node. Its
signature says that we issued it; whether it still counts depends on those objects being the same
ones as then, which an injected lookup tells. Deleting the object ends the token.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from skerry.api.keys import PLAIN
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.secret_files import secret_directory, write_secret
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.machinery.workspaces.principals import ACCOUNT_PREFIX
from skerry.server.security.pem import blocks, key_id
from skerry.server.user import User

DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"
# A hub's, as kcp calls it: clients ask for tokens with this audience.
HUB_ISSUER = "https://kcp.default.svc"
_CLAIM = "kubernetes.io"
# Clocks of issuers and checkers may differ by this much; go-jose's figure, which Kubernetes uses.
_LEEWAY_SECONDS = 60
_EXTRA = "authentication.kubernetes.io/"
# How long the tokens lasted that edges were given before they had certificates.
RESTRICTED_SECONDS = 7 * 24 * 3600

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey

# (cluster, resource, namespace, name) → the object, or None when there is none.
Lookup = Callable[[str, str, str, str], Awaitable[Mapping[str, Any] | None]]


class TokenError(Exception):
    """A token that does not hold; the text is for logs, never for the bearer."""


@dataclass(frozen=True, slots=True)
class BoundObject:
    """What a token ends with: a Pod, Secret or Node of this name and UID."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """What a token shall say."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...] = ()
    lifetime_seconds: int = 3600
    bound: BoundObject | None = None
    # The node of a bound pod, where it is known.
    node: BoundObject | None = None
    cluster: str = PLAIN


@dataclass(frozen=True, slots=True)
class Validated:
    """A token that holds: who it makes its bearer, for which audiences, until when."""

    user: User
    audiences: tuple[str, ...]
    expires: datetime


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key with the names by which tokens refer to it."""

    private: PrivateKey
    id: str = field(init=False)
    algorithm: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", key_id(self.private.public_key()))
        object.__setattr__(self, "algorithm", _algorithm(self.private.public_key()))


def open_signing_keys(directory: Path) -> list[SigningKey]:
    """Return the keys kept in *directory* as ``sa.key``; one is made on first use (EC P-256)."""
    secret_directory(directory)
    path = directory / "sa.key"
    if not path.exists():
        write_secret(path, new_signing_key())
    return read_signing_keys(path)


def read_signing_keys(path: Path) -> list[SigningKey]:
    """Return the private keys in a PEM file, which must have one at least."""
    found = []
    for pem in blocks(path.read_bytes(), "PRIVATE KEY"):
        key = serialization.load_pem_private_key(pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError(f"{path}: want an EC or RSA private key, found {type(key).__name__}")
        found.append(SigningKey(key))
    if not found:
        raise ValueError(f"{path}: want an EC or RSA private key, found none")
    return found


def new_signing_key() -> bytes:
    """Return a fresh key, PEM."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


class ServiceAccountTokens:
    """Issues tokens with one key, and accepts those of several."""

    def __init__(
        self,
        key: SigningKey,
        lookup: Lookup,
        clock: Clock,
        ids: IdSource,
        *,
        issuer: str = DEFAULT_ISSUER,
        former_issuers: Sequence[str] = (),
        api_audiences: Sequence[str] = (),
        restricted: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """In *restricted* clusters tokens of Secrets do not count, nor any older than a week.

        Tokens that were issued here under *former_issuers* are accepted, and issued no more.
        """
        self.use((key,), key.id)
        self._lookup = lookup
        self._clock = clock
        self._ids = ids
        self._restricted = restricted
        self.issuer = issuer
        self.api_audiences = tuple(api_audiences) or (issuer,)
        self._issuers = (issuer, *former_issuers)

    def use(self, accepted: Sequence[SigningKey], signer: str) -> None:
        """Sign with the key *signer* from now on, and accept tokens of *accepted*."""
        self._key = next(key for key in accepted if key.id == signer)
        self._public: dict[str, PublicKey] = {key.id: key.private.public_key() for key in accepted}

    @property
    def signer(self) -> str:
        """Name of the key that signs."""
        return self._key.id

    def issue(self, request: TokenRequest) -> tuple[str, datetime]:
        """Return a signed token and when it ends."""
        now = self._clock.now().replace(microsecond=0)
        expires = now + timedelta(seconds=request.lifetime_seconds)
        claims = {
            "aud": list(request.audiences or self.api_audiences),
            "exp": int(expires.timestamp()),
            "iat": int(now.timestamp()),
            "iss": self.issuer,
            "jti": self._ids.uid(),
            _CLAIM: _private_claims(request),
            "nbf": int(now.timestamp()),
            "sub": f"{ACCOUNT_PREFIX}{request.namespace}:{request.name}",
        }
        token = jwt.encode(
            claims, self._key.private, self._key.algorithm, headers={"kid": self._key.id}
        )
        return token, expires

    async def validate(self, token: str, cluster: str, audiences: Sequence[str] = ()) -> Validated:
        """Return whom *token* stands for; raises TokenError when it does not hold."""
        claims = self._verified(token)
        # A former issuer was its own audience.
        own = self.api_audiences if claims["iss"] == self.issuer else (claims["iss"],)
        wanted = tuple(audiences) or own
        named = claims.get("aud") or []
        named = named if isinstance(named, list) else [named]
        shared = tuple(audience for audience in wanted if audience in named)
        if not shared:
            raise TokenError(f"token audiences {named!r} is invalid for the target {wanted!r}")
        expires = self._check_times(claims)
        user = await self._bearer(claims, cluster)
        return Validated(user, shared, expires)

    def _verified(self, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            public = self._public.get(str(header.get("kid", "")))
            if public is None:
                raise TokenError("token is signed by an unknown key")
            claims: Mapping[str, Any] = jwt.decode(
                token,
                public,
                algorithms=[_algorithm(public)],
                issuer=self._issuers,
                # Times are checked against our own clock; audiences by the caller's wish.
                options={
                    "verify_exp": False, "verify_nbf": False, "verify_iat": False,
                    "verify_aud": False, "require": ["exp", "iss", "sub"],
                },
            )  # fmt: skip
        except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
            raise TokenError(str(error)) from error
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> datetime:
        now = self._clock.now()
        moments = {name: claims.get(name) for name in ("exp", "nbf", "iat")}
        if not all(isinstance(value, int | type(None)) for value in moments.values()):
            raise TokenError("token times must be whole numbers")
        seconds = now.timestamp()
        if moments["exp"] is None or moments["exp"] + _LEEWAY_SECONDS < seconds:
            raise TokenError("token has expired")
        for name in ("nbf", "iat"):
            value = moments[name]
            if value is not None and value - _LEEWAY_SECONDS > seconds:
                raise TokenError("token is not valid yet")
        try:
            return datetime.fromtimestamp(moments["exp"], tz=now.tzinfo)
        except (ValueError, OverflowError, OSError) as error:
            raise TokenError("token expiry is out of range") from error

    async def _bearer(self, claims: Mapping[str, Any], cluster: str) -> User:
        private = claims.get(_CLAIM)
        if not isinstance(private, Mapping):
            raise TokenError("token lacks its private claims")
        account = _reference(private, "serviceaccount")
        namespace = private.get("namespace")
        if account is None or not isinstance(namespace, str):
            raise TokenError("token names no service account")
        if private.get("clusterName", PLAIN) != cluster:
            raise TokenError("token is of another cluster")
        if self._restricted(cluster):
            self._check_short_lived(claims, private)
        name, uid = account
        if claims["sub"] != f"{ACCOUNT_PREFIX}{namespace}:{name}":
            raise TokenError("token subject does not match its service account")
        await self._check_alive(cluster, "serviceaccounts", namespace, name, uid)
        extra = await self._check_bound(private, cluster, namespace)
        if claims.get("jti"):
            extra[f"{_EXTRA}credential-id"] = (f"JTI={claims['jti']}",)
        return service_account_user(namespace, name, uid, extra, cluster)

    def _check_short_lived(self, claims: Mapping[str, Any], private: Mapping[str, Any]) -> None:
        """Refuse what was issued without an end, or with one too far away, by whichever version."""
        if private.get("secret") is not None:
            raise TokenError("tokens of Secrets do not count in a mailbox")
        issued = claims.get("iat")
        age = self._clock.now().timestamp() - (issued if isinstance(issued, int) else 0)
        if age > RESTRICTED_SECONDS:
            raise TokenError("token was issued too long ago for a mailbox")

    async def _check_bound(
        self, private: Mapping[str, Any], cluster: str, namespace: str
    ) -> dict[str, tuple[str, ...]]:
        """Check the objects a token is bound to; return what they tell of its bearer."""
        extra: dict[str, tuple[str, ...]] = {}
        pod, node = _reference(private, "pod"), _reference(private, "node")
        secret = _reference(private, "secret")
        if secret is not None:
            await self._check_alive(cluster, "secrets", namespace, *secret)
        if pod is not None:
            await self._check_alive(cluster, "pods", namespace, *pod)
            extra[f"{_EXTRA}pod-name"], extra[f"{_EXTRA}pod-uid"] = (pod[0],), (pod[1],)
        if node is not None:
            # Beside a pod the node is only reported; on its own the token is bound to it.
            if pod is None:
                await self._check_alive(cluster, "nodes", "", *node)
            extra[f"{_EXTRA}node-name"] = (node[0],)
            if node[1]:
                extra[f"{_EXTRA}node-uid"] = (node[1],)
        return extra

    async def _check_alive(
        self, cluster: str, resource: str, namespace: str, name: str, uid: str
    ) -> None:
        found = await self._lookup(cluster, resource, namespace, name)
        where = f"{resource} {namespace}/{name}"
        if found is None:
            raise TokenError(f"{where} has been deleted")
        metadata = found["metadata"]
        if metadata.get("uid") != uid:
            raise TokenError(f"{where} has another UID than the token says")
        deleted = metadata.get("deletionTimestamp")
        if deleted is not None:
            ends = parse_rfc3339(deleted) + timedelta(seconds=_LEEWAY_SECONDS)
            if ends < self._clock.now():
                raise TokenError(f"{where} is being deleted")

    # What others need to check our tokens.

    def openid_configuration(self, jwks_uri: str = "") -> dict[str, Any]:
        """Return the document of ``/.well-known/openid-configuration``."""
        algorithms = {_algorithm(public) for public in self._public.values()}
        return {
            "issuer": self.issuer,
            "jwks_uri": jwks_uri or f"{self.issuer}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted(algorithms),
        }

    def jwks(self) -> dict[str, Any]:
        """Return the document of ``/openid/v1/jwks``: our public keys."""
        return {"keys": [_jwk(name, public) for name, public in self._public.items()]}


def service_account_user(
    namespace: str,
    name: str,
    uid: str = "",
    extra: Mapping[str, tuple[str, ...]] | None = None,
    cluster: str = PLAIN,
) -> User:
    """Return the user a ServiceAccount of *cluster* acts as, without ``system:authenticated``."""
    groups = service_account_groups(namespace)
    home = "" if cluster == PLAIN else cluster
    return User(f"{ACCOUNT_PREFIX}{namespace}:{name}", uid, groups, extra or {}, home)


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups every ServiceAccount of *namespace* is in."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def service_account_of(username: str) -> tuple[str, str] | None:
    """Return namespace and name when *username* is a ServiceAccount's."""
    namespace, _, name = username.removeprefix(ACCOUNT_PREFIX).partition(":")
    if not username.startswith(ACCOUNT_PREFIX) or not namespace or not name or ":" in name:
        return None
    return namespace, name


def _private_claims(request: TokenRequest) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "namespace": request.namespace,
        "serviceaccount": {"name": request.name, "uid": request.uid},
    }
    for bound in (request.bound, request.node):
        if bound is not None:
            claims[bound.kind.lower()] = {"name": bound.name, "uid": bound.uid}
    if request.cluster != PLAIN:
        claims["clusterName"] = request.cluster
    return claims


def _reference(private: Mapping[str, Any], name: str) -> tuple[str, str] | None:
    """Return name and UID of an object a token refers to; refuses what is malformed."""
    found = private.get(name)
    if found is None:
        return None
    if not isinstance(found, Mapping):
        raise TokenError(f"token claim {name} is no reference")
    return str(found.get("name", "")), str(found.get("uid", ""))


def _algorithm(public: PublicKey) -> str:
    if isinstance(public, rsa.RSAPublicKey):
        return "RS256"
    return {256: "ES256", 384: "ES384", 521: "ES512"}[public.curve.key_size]


def _jwk(name: str, public: PublicKey) -> dict[str, Any]:
    common = {"use": "sig", "kid": name, "alg": _algorithm(public)}
    if isinstance(public, rsa.RSAPublicKey):
        numbers = public.public_numbers()
        return {"kty": "RSA", **common, "n": _integer(numbers.n), "e": _integer(numbers.e)}
    point = public.public_numbers()
    length = (public.curve.key_size + 7) // 8
    curve = {256: "P-256", 384: "P-384", 521: "P-521"}[public.curve.key_size]
    return {
        "kty": "EC",
        **common,
        "crv": curve,
        "x": _base64url(point.x.to_bytes(length, "big")),
        "y": _base64url(point.y.to_bytes(length, "big")),
    }


def _integer(value: int) -> str:
    return _base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
