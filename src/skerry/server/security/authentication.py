"""Who is asking: client certificate, then bearer token, then nobody in particular.

The first credential that is present decides; one that does not hold is a 401, never a fall-back
to the next. Whoever authenticated may ask to act as somebody else (impersonation), each part of
which is authorized on its own.

What a credential was found to mean is remembered: a certificate while it is valid, a token for
some seconds (as kube-apiserver does, so a deleted ServiceAccount's token dies within that time).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import unquote

from msgspec.structs import replace

from skerry.api.errors import BadRequest, Unauthorized
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.rate import RateLimit
from skerry.logic.machinery.oidc import OidcError
from skerry.server.access import Attributes, Authorizer
from skerry.server.http.message import Request
from skerry.server.security.authorization import forbidden
from skerry.server.security.client_certificates import (
    AUTHENTICATED,
    ClientCertificates,
    is_reserved,
)
from skerry.server.security.front_proxy import FrontProxy
from skerry.server.security.oidc import OidcTokens
from skerry.server.security.remembered import Remembered
from skerry.server.security.static_tokens import StaticTokens
from skerry.server.security.tokens import (
    ServiceAccountTokens,
    TokenError,
    service_account_groups,
    service_account_of,
)
from skerry.server.user import User

log = Logger("authentication")

UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", "", (UNAUTHENTICATED,))

# kube-apiserver's lifetime for authenticated tokens.
_TOKEN_SECONDS = 10.0
# The same token may be sent with more or less space before it.
_MAX_STATIC_SPELLINGS = 1024
# Our own tokens take about a kilobyte; nothing longer is taken apart.
_MAX_TOKEN_LENGTH = 16 * 1024
# Names that headers ask to act as; those of Kubernetes have at most 253 characters.
_MAX_NAME_LENGTH = 1024
_GROUP = "authentication.k8s.io"
_IMPERSONATION = frozenset(("impersonate-user", "impersonate-group", "impersonate-uid"))
_EXTRA_HEADER = "impersonate-extra-"

# (who impersonates, whom, in which cluster) → the home of the impersonated identity.
ImpersonationHome = Callable[[User, User, str], str]


def everywhere(_: User, __: User, ___: str) -> str:
    """Return no home: the identity is the same everywhere, as where there is but one cluster."""
    return ""


class BearerTokens(Protocol):
    """Bearer tokens of a form of their own."""

    def concerns(self, token: str) -> bool:
        """Tell whether *token* has that form, whether or not it holds."""

    async def user(self, token: str, cluster: str) -> User:
        """Return whom *token* stands for in *cluster*; raises Unauthorized."""


class Authentication:
    """The chain of authenticators of a server."""

    def __init__(
        self,
        clock: Clock,
        authorizer: Authorizer,
        *,
        static: StaticTokens | None = None,
        service_accounts: ServiceAccountTokens | None = None,
        anonymous: bool = True,
        home: ImpersonationHome = everywhere,
        reserved: tuple[str, ...] = (),
        certificates: ClientCertificates | None = None,
        bootstrap: BearerTokens | None = None,
        account: Callable[[User], User] = lambda user: user,
        people: OidcTokens | None = None,
        proxy: FrontProxy | None = None,
    ) -> None:
        """Users whose names or groups begin with one of *reserved* are not to be had by
        certificate or static token: the server itself makes them. *account* says whom a
        ServiceAccount acts as, if not as itself."""
        self._clock = clock
        self._authorizer = authorizer
        self._static = static
        self._service_accounts = service_accounts
        self._anonymous = anonymous
        self._home = home
        self._reserved = reserved
        self._certificates = certificates or ClientCertificates(clock, reserved=reserved)
        self._bootstrap = bootstrap
        self._account = account
        self._people = people
        self._proxy = proxy
        # People are the same in every cluster, whichever path they come by. By digest: their
        # tokens may be long, and there may be many.
        self._known_people: Remembered[bytes] = Remembered(clock, _TOKEN_SECONDS)
        # Tokens of ServiceAccounts hold in their own cluster only, which bounds the names here.
        self._tokens: Remembered[tuple[str, str]] = Remembered(clock, _TOKEN_SECONDS)
        # Static tokens hold for ever and wherever a path leads: never kept by cluster.
        self._static_users: dict[str, User] = {}
        self._refused = RateLimit(per_second=1, burst=10)

    async def authenticate(self, request: Request, cluster: str) -> User:
        """Return the user a request acts as; Unauthorized for credentials that do not hold,
        Forbidden for impersonation that is not allowed."""
        headers = request.headers
        certificate = request.peer.certificate
        user: User | None = None
        if certificate is not None:
            if self._proxy is not None:
                user = self._proxied(self._proxy, request)
            user = user or self._certificates.user(certificate)
        if user is None:
            authorization = headers.get("authorization")
            if authorization is not None:
                user = self._static_users.get(authorization)
                if user is None:
                    user = self._tokens.get((cluster, authorization))
                if user is None:
                    user = await self._by_header(authorization, cluster)
        if user is None:
            if not self._anonymous:
                raise Unauthorized
            user = ANONYMOUS
        if not _IMPERSONATION.isdisjoint(headers):
            return self._impersonated(request, user, cluster)
        return user

    def knows(self, request: Request, cluster: str) -> bool:
        """Tell whether the credentials of *request* cost nothing to check, or were good lately."""
        authorization = request.headers.get("authorization")
        return (
            authorization is None
            or request.peer.certificate is not None
            or authorization in self._static_users
            or (cluster, authorization) in self._tokens
        )

    def forget_tokens(self) -> None:
        """Check every token anew when it is next shown; somebody's may no longer hold."""
        self._tokens.clear()

    def forget_certificates(self) -> None:
        """Check every client certificate anew when it is next shown."""
        self._certificates.forget()
        if self._proxy is not None:
            self._proxy.forget()

    async def review(self, token: str, cluster: str, audiences: tuple[str, ...]) -> Reviewed:
        """Say whom *token* stands for, for a TokenReview; never raises for a bad one."""
        if self._static is not None and not audiences:
            user = self._static.user(token)
            if user is not None and not is_reserved(self._reserved, user):
                return Reviewed(_authenticated(user), ())
        if self._people is not None and not audiences and self._people.concerns(token):
            return await self._reviewed_person(self._people, token)
        if self._service_accounts is None:
            return Reviewed(None, (), "invalid bearer token")
        try:
            validated = await self._service_accounts.validate(token, cluster, audiences)
        except TokenError as error:
            return Reviewed(None, (), f"[invalid bearer token, {error}]")
        user = self._account(_authenticated(validated.user))
        return Reviewed(user, validated.audiences)

    async def _reviewed_person(self, people: OidcTokens, token: str) -> Reviewed:
        try:
            user, _ = await people.person(token)
        except OidcError as error:
            return Reviewed(None, (), f"[invalid bearer token, {error}]")
        return Reviewed(_authenticated(user), ())

    async def _person(self, people: OidcTokens, token: str, digest: bytes) -> User:
        """Return the person an ID token stands for."""
        found, expires = await people.user(token)
        user = self._outsider(found)
        self._known_people.put(digest, user, datetime.fromtimestamp(expires, UTC))
        return user

    async def _by_header(self, authorization: str, cluster: str) -> User | None:
        """Return the user of an Authorization header; None when it carries no bearer token."""
        scheme, _, rest = authorization.strip().partition(" ")
        token = rest.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        if self._bootstrap is not None and self._bootstrap.concerns(token):
            # Not remembered: it is shown a few times in its life, and may be withdrawn.
            return await self._bootstrap.user(token, cluster)
        user = self._static.user(token) if self._static is not None else None
        if user is not None:
            user = self._outsider(user)
            if len(self._static_users) < _MAX_STATIC_SPELLINGS:
                self._static_users[authorization] = user
            return user
        if len(token) > _MAX_TOKEN_LENGTH:
            raise Unauthorized
        if self._people is not None:
            digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
            user = self._known_people.get(digest)
            if user is None and self._people.concerns(token):
                user = await self._person(self._people, token, digest)
            if user is not None:
                return user
        return await self._by_account(token, authorization, cluster)

    async def _by_account(self, token: str, authorization: str, cluster: str) -> User:
        """Return the ServiceAccount a token stands for."""
        if self._service_accounts is None:
            raise Unauthorized
        try:
            validated = await self._service_accounts.validate(token, cluster)
        except TokenError as error:
            if self._refused.allows(self._clock.monotonic()):
                suppressed = self._refused.taken()
                log.info(
                    "Unable to authenticate the request", v=2, error=error, suppressed=suppressed
                )
            raise Unauthorized from error
        user = self._account(_authenticated(validated.user))
        self._tokens.put((cluster, authorization), user, validated.expires)
        return user

    def _proxied(self, proxy: FrontProxy, request: Request) -> User | None:
        user = proxy.user(request)
        return None if user is None else self._outsider(user)

    def _outsider(self, user: User) -> User:
        """Return a user that a credential from outside names; refuses the server's own names."""
        if is_reserved(self._reserved, user):
            log.info("credential names a reserved user or group", user=user.name)
            raise Unauthorized
        return _authenticated(user)

    # Acting as somebody else.

    def _impersonated(self, request: Request, user: User, cluster: str) -> User:
        wanted = _wanted_user(request.headers)
        for attributes in impersonation_attributes(wanted, cluster):
            decision = self._authorizer.authorize(user, attributes)
            if not decision.allowed:
                raise forbidden(user, attributes, decision.reason)
        request.impersonator = user
        home = self._home(user, wanted, cluster)
        return replace(_with_default_groups(wanted), home=home)


class Reviewed:
    """What a TokenReview finds."""

    __slots__ = ("audiences", "error", "user")

    def __init__(self, user: User | None, audiences: tuple[str, ...], error: str = "") -> None:
        self.user = user
        self.audiences = audiences
        self.error = error


def impersonation_attributes(wanted: User, cluster: str) -> Iterator[Attributes]:
    """Yield the actions that must all be allowed to act as *wanted*."""
    account = service_account_of(wanted.name)
    if account is not None:
        namespace, name = account
        yield Attributes(
            cluster,
            "impersonate",
            version="v1",
            resource="serviceaccounts",
            namespace=namespace,
            name=name,
        )
    else:
        yield Attributes(cluster, "impersonate", version="v1", resource="users", name=wanted.name)
    for group in wanted.groups:
        yield Attributes(cluster, "impersonate", version="v1", resource="groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes(cluster, "impersonate", _GROUP, "v1", "userextras", key, name=value)
    if wanted.uid:
        yield Attributes(cluster, "impersonate", _GROUP, "v1", "uids", name=wanted.uid)


def _wanted_user(headers: Mapping[str, str]) -> User:
    """Return the user the impersonation headers describe, exactly as asked for."""
    name = headers.get("impersonate-user", "")
    groups = (
        tuple(headers["impersonate-group"].split("\n")) if "impersonate-group" in headers else ()
    )
    uid = headers.get("impersonate-uid", "")
    extra = {
        unquote(header.removeprefix(_EXTRA_HEADER)): tuple(value.split("\n"))
        for header, value in headers.items()
        if header.startswith(_EXTRA_HEADER)
    }
    if not name:
        raise BadRequest("requested impersonation of groups, uid or extra without a user")
    named = (name, uid, *groups, *extra, *(value for values in extra.values() for value in values))
    if max(map(len, named)) > _MAX_NAME_LENGTH:
        raise BadRequest(f"impersonation headers: a name has at most {_MAX_NAME_LENGTH} characters")
    return User(name, uid, groups, extra)


def _with_default_groups(wanted: User) -> User:
    """Add the groups that follow from who is impersonated, as Kubernetes does."""
    groups = wanted.groups
    account = service_account_of(wanted.name)
    if account is not None and not groups:
        groups = service_account_groups(account[0])
    if wanted.name == ANONYMOUS.name:
        if UNAUTHENTICATED not in groups:
            groups = (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return replace(wanted, groups=groups)


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))
