"""Security put together: who may come in, and what RBAC objects say."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from skerry.api.keys import ObjectKey, type_prefix
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.steps import Steps
from skerry.server.access import Authorizer
from skerry.server.admission.token_secrets import ACCOUNT, TOKEN_TYPE
from skerry.server.change import Change
from skerry.server.codec import decode
from skerry.server.http.server import HttpServer
from skerry.server.open_streams import OpenStreams
from skerry.server.security.authentication import (
    Authentication,
    BearerTokens,
    ImpersonationHome,
    everywhere,
)
from skerry.server.security.authorization import RbacAuthorizer
from skerry.server.security.client_certificates import (
    ClientCertificates,
    SpecialCertificates,
    has_serial,
)
from skerry.server.security.front_proxy import FrontProxy
from skerry.server.security.nodes import NodeAuthorizer, NodeGraph
from skerry.server.security.oidc import OidcTokens
from skerry.server.security.revoked_certificates import RevokedCertificates
from skerry.server.security.signing_rotation import Authorities
from skerry.server.security.static_tokens import StaticTokens
from skerry.server.security.tokens import (
    DEFAULT_ISSUER,
    ServiceAccountTokens,
    open_signing_keys,
)
from skerry.server.user import User
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.store.base import Store

_GROUP = "rbac.authorization.k8s.io"
_TOKEN = TOKEN_TYPE.encode()
_KINDS = {
    "roles": "Role",
    "rolebindings": "RoleBinding",
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
}


Chore = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class Security:
    """The parts that decide who may do what: RBAC, and what decides by it."""

    authentication: Authentication
    authorizer: Authorizer
    rbac: RbacAuthorizer
    tokens: ServiceAccountTokens
    revoked: RevokedCertificates
    # What runs beside the server.
    chores: Sequence[Chore] = ()
    # What kubelets may read, where kubelets come.
    nodes: NodeGraph | None = None


def build_security(
    settings: ServerSettings,
    authorities: Authorities,
    store: Store,
    clock: Clock,
    ids: IdSource,
) -> Security:
    """Put the security of a plain server together; keys are kept where its authorities are."""
    rbac, graph = RbacAuthorizer(), NodeGraph()
    nodes = NodeAuthorizer(graph, rbac)
    security = security_with(settings, authorities, store, clock, ids, rbac, nodes)
    security.nodes = graph
    return security


def security_with(
    settings: ServerSettings,
    authorities: Authorities,
    store: Store,
    clock: Clock,
    ids: IdSource,
    rbac: RbacAuthorizer,
    authorizer: Authorizer,
    *,
    tokens_csv: str = "",
    impersonation_home: ImpersonationHome = everywhere,
    reserved: tuple[str, ...] = (),
    edge_certificates: SpecialCertificates | None = None,
    bootstrap_tokens: BearerTokens | None = None,
    account: Callable[[User], User] = lambda user: user,
    restricted: Callable[[str], bool] = lambda _: False,
    issuers: Sequence[str] = (DEFAULT_ISSUER,),
) -> Security:
    """Put security together around an authorizer; *tokens_csv* adds static tokens.

    *impersonation_home* says where impersonated identities are at home, if anywhere; names that
    begin with one of *reserved* are no outside credential's. A hub brings the credentials of
    edges, says whom ServiceAccounts act as, and in which clusters their tokens are *restricted*.
    The first of *issuers* issues them; tokens that the others issued here are accepted.
    """
    tokens = ServiceAccountTokens(
        open_signing_keys(authorities.pki.directory)[0],
        lambda *of: _lookup(store, *of),
        clock,
        ids,
        issuer=issuers[0],
        former_issuers=issuers[1:],
        restricted=restricted,
    )
    if settings.token_auth_file is not None:
        tokens_csv = f"{tokens_csv}\n{settings.token_auth_file.read_text()}"
    people, chores = _people(settings, clock)
    revoked = RevokedCertificates(store, clock)
    certificates = _certificates(authorities, clock, revoked, reserved, edge_certificates)
    authentication = Authentication(
        clock,
        authorizer,
        static=StaticTokens(tokens_csv) if tokens_csv else None,
        service_accounts=tokens,
        anonymous=settings.anonymous,
        home=impersonation_home,
        reserved=reserved,
        certificates=certificates,
        bootstrap=bootstrap_tokens,
        account=account,
        people=people,
        proxy=_front_proxy(settings, authorities, revoked, clock),
    )
    return Security(authentication, authorizer, rbac, tokens, revoked, chores)


def _certificates(
    authorities: Authorities,
    clock: Clock,
    revoked: RevokedCertificates,
    reserved: tuple[str, ...],
    special: SpecialCertificates | None,
) -> ClientCertificates:
    return ClientCertificates(
        clock,
        authorities=lambda: authorities.of_clients,
        own=lambda: authorities.pki.authorities,
        revoked=revoked,
        reserved=reserved,
        special=special,
    )


def _front_proxy(
    settings: ServerSettings, authorities: Authorities, revoked: RevokedCertificates, clock: Clock
) -> FrontProxy | None:
    """Return what believes proxies, if any is to be believed."""
    if settings.front_proxy is None:
        return None
    certificates = ClientCertificates(
        clock, revoked=revoked, authorities=lambda: authorities.of_proxies
    )
    return FrontProxy(settings.front_proxy, certificates)


def _people(settings: ServerSettings, clock: Clock) -> tuple[OidcTokens | None, list[Chore]]:
    """Return what authenticates ID tokens, if configured, and what must run for it."""
    if settings.oidc is None:
        return None, []
    # Imported only here: it needs an HTTP client.
    from skerry.app.oidc import build_oidc

    people, keys = build_oidc(settings.oidc, settings.oidc_ca_file, clock)
    return people, [keys.run]


async def _lookup(
    store: Store, cluster: str, resource: str, namespace: str, name: str
) -> Mapping[str, Any] | None:
    """Return an object a token speaks of, as it is now."""
    entry = await store.get(ObjectKey("", resource, cluster, namespace, name).path())
    return None if entry is None else decode(entry.value, entry.revision)


def _never(_: Mapping[str, Any]) -> bool:
    return False


def _nothing() -> None:
    """Nobody needs to know."""


async def follow_rbac(
    authorizer: RbacAuthorizer,
    store: Store,
    dispatcher: Dispatcher,
    inert: Callable[[Mapping[str, Any]], bool] = _never,
    changed: Callable[[], None] = _nothing,
) -> None:
    """Feed the authorizer what is stored and what changes; before the dispatcher runs.

    *changed* is called after every change.

    Objects that are *inert* grant nothing here; they are on their way to somewhere else.
    """
    for resource, kind in _KINDS.items():
        prefix = type_prefix(_GROUP, resource)
        for entry in (await store.range(prefix)).entries:
            obj = decode(entry.value, entry.revision)
            if not inert(obj):
                authorizer.put(ObjectKey.parse(entry.key).cluster, kind, obj)
        reset = authorizer.reset if kind == "Role" else None
        dispatcher.observe(prefix, partial(_observed, authorizer, kind, inert, changed), reset)


def _observed(
    authorizer: RbacAuthorizer,
    kind: str,
    inert: Callable[[Mapping[str, Any]], bool],
    changed: Callable[[], None],
    change: Change,
) -> Steps[None]:
    key, event = ObjectKey.parse(change.event.key), change.event
    obj = None if event.value is None else decode(event.value, event.revision)
    if obj is None or inert(obj):
        yield from authorizer.removing(key.cluster, kind, key.namespace, key.name)
    else:
        yield from authorizer.putting(key.cluster, kind, obj)
    changed()


def follow_accounts(
    authentication: Authentication, streams: OpenStreams, dispatcher: Dispatcher
) -> None:
    """See to it that tokens and streams end with their ServiceAccount, and with their Secret."""

    def ended(cluster: str, namespace: str, name: str) -> None:
        authentication.forget_tokens()
        streams.end_user(cluster, f"system:serviceaccount:{namespace}:{name}")

    def observed(change: Change) -> None:
        if change.event.value is None:
            key = ObjectKey.parse(change.event.key)
            ended(key.cluster, key.namespace, key.name)

    def secret_observed(change: Change) -> None:
        event = change.event
        if event.value is None and event.previous is not None and _TOKEN in event.previous:
            key = ObjectKey.parse(event.key)
            metadata = decode(event.previous, event.previous_revision)["metadata"]
            ended(key.cluster, key.namespace, (metadata.get("annotations") or {}).get(ACCOUNT, ""))

    dispatcher.observe(type_prefix("", "serviceaccounts"), observed)
    dispatcher.observe(type_prefix("", "secrets"), secret_observed)


async def follow_revocations(
    security: Security, dispatcher: Dispatcher, connections: HttpServer
) -> None:
    """See to it that a revoked certificate and its connections end at once, on every server."""
    await security.revoked.follow(dispatcher)

    def changed(serial: int) -> None:
        security.authentication.forget_certificates()
        connections.cut(lambda peer: has_serial(peer.certificate, serial))

    security.revoked.changed = changed


def follow_mailboxes(
    authentication: Authentication, streams: OpenStreams, mailboxes: Mailboxes
) -> None:
    """See to it that whatever is open in a mailbox ends when the mailbox is closed."""

    def closed(cluster: str) -> None:
        authentication.forget_certificates()
        authentication.forget_tokens()
        streams.end_cluster(cluster)

    mailboxes.closed = closed
