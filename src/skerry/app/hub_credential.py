"""A syncer's way to its hub, with the credential that its kubeconfig leads to.

A bootstrap credential or a ServiceAccount token is where an edge begins; its certificate is kept in
the data directory or in a Secret at the edge. Any other credential, such as a person's certificate,
is used as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from skerry.api.edge_identity import parse_bootstrap_token
from skerry.edge.syncer.identity.credential import HubCredential
from skerry.edge.syncer.identity.credential_gate import CredentialGate
from skerry.edge.syncer.identity.enrolment import EdgeTerms, Enrolment, HubWays
from skerry.edge.syncer.identity.identity_store import FileStore, IdentityStore, SecretStore
from skerry.edge.syncer.identity.keys import make_key
from skerry.edge.syncer.identity.token import HubToken, claims_of
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.runtime.client import Client
from skerry.runtime.http import Limits, Upgraded
from skerry.runtime.kubeconfig import ClientConfig, connect, identify
from skerry.runtime.transport import Transport

# An edge takes little of a hub that serves thousands, and says little on a thin line.
HUB_LIMITS = Limits(connections=4, believed_seconds=60)
IDENTITY_FILE = "hub-identity.json"
_TOKEN_FILE = "hub-token"  # noqa: S105 - the name of a file
_CLUSTERS = "/clusters/"


@dataclass(frozen=True, slots=True)
class HubLine:
    """A transport to the hub, and what keeps its credential good (None: nothing has to)."""

    transport: Transport
    credential: HubCredential | None
    upgraded: Callable[[str, str], AbstractAsyncContextManager[Upgraded]]
    """Offers a protocol on a path, once there is a credential that the hub accepts."""


@dataclass(frozen=True, slots=True)
class IdentitySecret:
    """The Secret at the edge that keeps the identity."""

    edge: Client
    namespace: str
    name: str


def hub_line(
    read: Callable[[], ClientConfig],
    data_dir: Path,
    sync_target: str,
    *,
    cluster: str = "",
    uid: str = "",
    secret: IdentitySecret | None = None,
    clock: Clock,
    ids: IdSource,
    metrics: SyncerMetrics,
    observe: Callable[[str], None] = lambda _: None,
) -> HubLine:
    """Return the way to the hub that the kubeconfig *read* returns leads to.

    *cluster* is the mailbox where the kubeconfig's server names none; *uid* the SyncTarget's where
    the kubeconfig does not say; *observe* as of ``HubCredential``.
    """
    config = read()
    account, begun = None, config
    if claims_of(config.token) is not None:
        account = HubToken(config.token, data_dir / _TOKEN_FILE)
        begun = replace(config, token="", token_file=account.path)
    elif parse_bootstrap_token(config.token) is not None:
        begun = replace(config, token="")  # only the certificate comes this way
    transport = connect(begun, clock=clock, limits=HUB_LIMITS, gzip=True)
    if begun is config:
        return HubLine(transport, None, transport.upgraded)
    gate = CredentialGate(transport)

    @asynccontextmanager
    async def upgraded(protocol: str, path: str) -> AsyncIterator[Upgraded]:
        await gate.opened()
        async with transport.upgraded(protocol, path) as line:
            yield line

    def dial(other: ClientConfig) -> Transport:
        return connect(other, clock=clock, limits=HUB_LIMITS)

    terms = EdgeTerms(sync_target, mailbox_of(config, cluster), uid, read)
    ways = HubWays(
        main=Client(transport, cluster=cluster, clock=clock, user_agent="skerry-syncer"),
        identify=lambda other: identify(transport, other, clock),
        dial=dial,
    )
    credential = HubCredential(
        Enrolment(terms, config, _store(data_dir, secret), ways, make_key),
        ways,
        gate,
        ids=ids,
        metrics=metrics,
        account=account,
        observe=observe,
    )
    return HubLine(gate, credential, upgraded)


def mailbox_of(config: ClientConfig, cluster: str = "") -> str:
    """Return the logical cluster a kubeconfig leads to; *cluster* if its server names none."""
    return cluster or config.server.partition(_CLUSTERS)[2].partition("/")[0]


def _store(data_dir: Path, secret: IdentitySecret | None) -> IdentityStore:
    if secret is None:
        return FileStore(data_dir / IDENTITY_FILE)
    return SecretStore(secret.edge, secret.namespace, secret.name)
