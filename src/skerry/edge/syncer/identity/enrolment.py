"""How an edge gets its certificates: by what it has to show, with a key that it keeps first.

``Enrolment`` holds the identity of one edge as the store keeps it, and the kubeconfig as it was
last read. It knows nothing of time: ``credential`` decides when a certificate is due.

A process may die after each step of ``obtain``, and what it leaves to the next is this:

    the key is made             nothing; another one is made
    it is kept as pending       that key, which is asked with again
    the request is created      the same: the request is named after its key, and met there
    the certificate is issued   the same: the request has it, for as long as the hub keeps it
    certificate and key kept    an identity, and no request pending

The third line is why there is a second. A bootstrap credential is spent on the first key that the
hub has seen with it, so a key that only the dead process knew would cost a person a new one.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus

from msgspec import structs

from skerry.api.edge import mailbox_named
from skerry.api.edge_identity import EXTENSION, EdgeName, edge_of_user, parse_bootstrap_token
from skerry.api.kcp.resources import LOGICAL_CLUSTERS
from skerry.edge.syncer.identity.certificate_request import RequestRefused, certificate_for
from skerry.edge.syncer.identity.identity_store import IdentityStore
from skerry.edge.syncer.identity.keys import MakeKey
from skerry.kit.log import Logger
from skerry.logic.fleet.syncing.certificates import (
    EdgeIdentity,
    PendingRequest,
    Verdict,
    Way,
    lifetime_seconds,
    validity_of,
)
from skerry.logic.fleet.syncing.manifest import sync_target_uid
from skerry.runtime.answers import answer_failure
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig, tls_context
from skerry.runtime.transport import Transport, TransportError
from skerry.wire.kubeconfig import KubeconfigError

_CA_BUNDLE = "ca-bundle"

_log = Logger("syncer-enrolment")


@dataclass(frozen=True, slots=True)
class EdgeTerms:
    """Which edge it is, and what its kubeconfig says."""

    name: str
    """Name of the SyncTarget, for people."""

    mailbox: str
    uid: str
    """UID of the SyncTarget, where the kubeconfig does not say; else empty."""

    read: Callable[[], ClientConfig]
    """Reads the kubeconfig again; raises ``KubeconfigError``."""


@dataclass(frozen=True, slots=True)
class HubWays:
    """The ways to the hub."""

    main: Client
    """Comes with what ``identify`` was last given."""

    identify: Callable[[ClientConfig], None]
    dial: Callable[[ClientConfig], Transport]
    """Opens another way, with these credentials."""

    def fresh(self) -> Client:
        """Return the main way without what was learnt of the hub: it may have been upgraded."""
        return Client(self.main.transport, cluster=self.main.cluster, clock=self.main.clock)

    @asynccontextmanager
    async def other(self, config: ClientConfig) -> AsyncIterator[Client]:
        """Have another way, with the credentials of *config*."""
        main, transport = self.main, self.dial(config)
        try:
            yield Client(
                transport, cluster=main.cluster, clock=main.clock, user_agent=main.user_agent
            )
        finally:
            await transport.close()


class Enrolment:
    """The identity of one edge, and how it gets the next.

    Several processes may stand by for one edge and share the store. Whoever saves second is refused
    (``Conflict``), tries again later, and finds the other's certificate by ``load``.
    """

    def __init__(
        self,
        terms: EdgeTerms,
        config: ClientConfig,
        store: IdentityStore,
        ways: HubWays,
        make_key: MakeKey,
    ) -> None:
        self.terms = terms
        self.identity = EdgeIdentity()
        # Name of the request last made.
        self.asked = ""
        self._config = config
        self._store, self._ways, self._make_key = store, ways, make_key
        # What the store had when we last read or wrote it.
        self._kept = self.identity

    @property
    def has_certificate(self) -> bool:
        return self.identity.is_for(self.terms.mailbox, self._uid)

    @property
    def _uid(self) -> str:
        return self.terms.uid or sync_target_uid(self._config.user_extensions)

    @property
    def has_new_bootstrap(self) -> bool:
        """Whether the kubeconfig has a bootstrap credential that was not redeemed yet."""
        there = parse_bootstrap_token(self._config.token) is not None
        return there and self._credential(Way.REDEEM) != self.identity.redeemed

    def use(self) -> None:
        """Come with the certificate from now on; raises for one that cannot be used."""
        self._ways.identify(self._identified(self.identity))

    def drop_certificate(self) -> None:
        """Go on without the certificate that is kept; it is no longer of use.

        The store keeps it until the next one is saved.
        """
        self.identity = structs.replace(self.identity, edge="", certificate="", key="")

    async def load(self) -> bool:
        """Read the store; return whether it has another certificate than we knew."""
        kept = await self._store.load()
        if kept == self._kept:
            return False  # a certificate that was dropped is not taken up again
        changed = kept.certificate != self._kept.certificate
        self.identity = self._kept = kept
        return changed

    def read_again(self) -> None:
        """Read the kubeconfig anew: somebody may have put a new credential there."""
        try:
            found = self.terms.read()
        except KubeconfigError as error:
            _log.warning("kubeconfig not read", error=error)
            return
        if found.server == self._config.server:
            self._config = found
        else:
            _log.error("the kubeconfig leads elsewhere now; restart the syncer", hub=found.server)

    async def is_offered(self) -> bool:
        """Tell whether the hub issues certificates to edges."""
        return EXTENSION in await self._ways.fresh().extensions()

    async def obtain(self, way: Way, waiting: Callable[[], None]) -> None:
        """Have a certificate by *way*, and keep it; *waiting* as of ``certificate_for``.

        This may take days. A key is given up only where the hub has decided against it, or has
        signed another: whoever asks next makes a new one. After any other failure it is kept.
        """
        edge = await self._edge()
        pending = await self._pending(edge, self._credential(way))
        self.asked = pending.name

        def wanted() -> bool:
            if way is Way.REDEEM:
                self.read_again()
            return self._credential(way) == pending.credential

        try:
            async with self._client(way) as client:
                verdict = await certificate_for(client, pending, waiting=waiting, wanted=wanted)
            await self._keep(edge, pending, verdict, way)
        except (RequestRefused, ssl.SSLError):
            await self._save(self.identity.without_pending(pending))
            raise

    async def learn_authorities(self) -> None:
        """Keep the authorities that the hub names now, and believe no others; it may change them.

        A hub that names none is known by what the kubeconfig says.
        """
        client = self._ways.fresh()
        path = (await client.extensions()).get(_CA_BUNDLE)
        if not path:
            return
        answer = await client.transport.request("GET", client.base + path)
        if answer.status != HTTPStatus.OK:
            raise answer_failure(answer)
        identity = structs.replace(self.identity, ca=answer.body.decode())
        tls_context(self._identified(identity))  # what cannot be read is found here
        await self._save(identity)
        self.use()

    async def hears_strangers(self) -> bool:
        """Tell whether the hub answers somebody without a credential."""
        bare = replace(self._identified(self.identity), certificate=b"", key=b"")
        try:
            async with self._ways.other(bare) as client:
                await client.transport.request("GET", f"{client.base}/version")
        except TransportError:
            return False
        return True

    async def _edge(self) -> EdgeName:
        """Return who this edge is; one of the previous version has to ask its mailbox."""
        mailbox, uid = self.terms.mailbox, self._uid
        if uid:
            return EdgeName(mailbox, uid)
        known = edge_of_user(self.identity.edge)
        if known is not None:
            return known
        cluster = await self._ways.main.get(LOGICAL_CLUSTERS, "cluster")
        workspace = ((cluster.get("spec") or {}).get("owner") or {}).get("name", "")
        found = mailbox_named(str(workspace))
        if found is None:
            raise ValueError(f"workspace {workspace!r} of {mailbox} is no mailbox")
        return EdgeName(mailbox, found.uid)

    def _credential(self, way: Way) -> str:
        """Return what a key is kept under: another bootstrap token needs another key."""
        token = parse_bootstrap_token(self._config.token)
        return f"{way.value}:{token.id}" if way is Way.REDEEM and token else way.value

    async def _pending(self, edge: EdgeName, credential: str) -> PendingRequest:
        """Return the key to ask with: the one that was asked with before, by the same credential.

        A bootstrap credential accepts the first key it has seen and no other.
        """
        kept = self.identity.pending_by(credential)
        if kept is not None:
            return kept
        made = await self._make_key(edge, credential)
        await self._save(self.identity.with_pending(made))
        return made

    @asynccontextmanager
    async def _client(self, way: Way) -> AsyncIterator[Client]:
        """Come with what the way asks for, and nothing else."""
        if way is not Way.REDEEM:
            yield self._ways.main
            return
        async with self._ways.other(replace(self._config, certificate=b"", key=b"")) as client:
            yield client

    async def _keep(
        self, edge: EdgeName, pending: PendingRequest, verdict: Verdict, way: Way
    ) -> None:
        """Keep a certificate with its key, in place of all that was pending, by whatever way."""
        redeemed = way is Way.REDEEM
        validity = validity_of(verdict.certificate)
        identity = EdgeIdentity(
            edge=edge.user,
            certificate=verdict.certificate.decode(),
            key=pending.key,
            received=self._ways.main.clock.now(),
            lifetime_seconds=lifetime_seconds(validity, verdict.decided),
            redeemed=pending.credential if redeemed else self.identity.redeemed,
            # Who vouches for the hub is said by the kubeconfig that the credential came in.
            ca="" if redeemed else self.identity.ca,
        )
        tls_context(self._identified(identity))  # a certificate for another key is found here
        await self._save(identity)

    async def _save(self, identity: EdgeIdentity) -> None:
        await self._store.save(identity)
        self.identity = self._kept = identity

    def _identified(self, identity: EdgeIdentity) -> ClientConfig:
        return replace(
            self._config,
            certificate=identity.certificate.encode(),
            key=identity.key.encode(),
            ca=identity.ca.encode() or self._config.ca,
            token="",
            token_file=None,
        )
