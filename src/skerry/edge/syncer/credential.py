"""The edge's credential at its hub: a certificate for a key that was made here and stays here.

The first certificate is had with the bootstrap credential of the kubeconfig, which may have to wait
for a person; each further one with the certificate before it, when two thirds of that one's life
are over, with a fresh key. A lapsed certificate still gets its successor, for as long as the hub
allows. An edge of the previous version has a ServiceAccount token: it goes on with that, and
exchanges it for a certificate once its hub can issue one.

What the hub refuses is shown to people once, loudly, and tried again at growing intervals, with
what the kubeconfig then holds: somebody may have put a new bootstrap credential there. Nothing is
deleted at an edge because its hub refuses it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus

from msgspec import structs

from skerry.api.edge_identity import EXTENSION, EdgeName, edge_of_user, parse_bootstrap_token
from skerry.api.errors import ApiError, Forbidden, Unauthorized
from skerry.api.kinds import GroupVersionResource
from skerry.api.mailboxes import mailbox_named
from skerry.edge.syncer.certificate_request import (
    NoLongerWanted,
    RequestRefused,
    certificate_for,
)
from skerry.edge.syncer.credential_gate import CredentialGate
from skerry.edge.syncer.identity_store import IdentityStore
from skerry.edge.syncer.keys import MakeKey, NoKey
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.token import HubToken
from skerry.kit.clock import rfc3339
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.logic.syncing.certificates import (
    EdgeIdentity,
    PendingRequest,
    Standing,
    Verdict,
    Way,
    age_seconds,
    key_fingerprint,
    lifetime_seconds,
    renewal_seconds,
    validity_of,
    ways_to_certificate,
)
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client, answer_failure
from skerry.runtime.kubeconfig import ClientConfig, KubeconfigError, tls_context
from skerry.runtime.transport import Transport, TransportError

_LOGICAL_CLUSTERS = GroupVersionResource("core.kcp.io", "v1alpha1", "logicalclusters")
_BACKOFF = Backoff(shortest_seconds=2.0, longest_seconds=600.0, jitter=0.5)
# How long a wait goes on without a look at the clock: it does not run while a machine sleeps.
_CLOCK_SECONDS = 3600.0
# Between two requests because the hub seems to refuse us: where it says 401 to every certificate,
# another one does not help.
_SUSPICION_SECONDS = 60.0
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_FAILURES = (ApiError, TransportError, OSError, ValueError, NoKey, RequestRefused)

# How the message begins while a person has to act at the hub.
WAITING = "waiting for approval"
_CA_BUNDLE = "ca-bundle"
# The message while a lapsed certificate is renewed.
LAPSED = "the certificate has lapsed; its successor is requested"

_log = Logger("syncer-credential")


@dataclass(frozen=True, slots=True)
class HubWays:
    """The ways to the hub."""

    main: Client
    """Comes with what ``identify`` was last given, past the gate."""

    identify: Callable[[ClientConfig], None]
    gate: CredentialGate
    dial: Callable[[ClientConfig], Transport]
    """Opens another way, with these credentials."""


@dataclass(frozen=True, slots=True)
class EdgeTerms:
    """Which edge it is, and what its kubeconfig says."""

    name: str
    """Name of the SyncTarget, for people."""

    mailbox: str
    uid: str
    """UID of the SyncTarget; empty when the kubeconfig does not say."""

    read: Callable[[], ClientConfig]
    """Reads the kubeconfig again; raises ``KubeconfigError``."""


class HubCredential:
    """Obtains and renews one edge's certificate; ``run`` it once.

    *account* is the token that an edge of the previous version comes with. *observe* is called
    with the message that says what keeps the edge from its hub, whenever it changes.
    """

    def __init__(
        self,
        terms: EdgeTerms,
        config: ClientConfig,
        store: IdentityStore,
        ways: HubWays,
        make_key: MakeKey,
        *,
        ids: IdSource,
        metrics: SyncerMetrics,
        account: HubToken | None = None,
        observe: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._terms, self._config = terms, config
        self._store, self._ways = store, ways
        self._make_key, self._ids, self._metrics = make_key, ids, metrics
        self._account, self._observe = account, observe
        self._clock = ways.main.clock
        self._identity = EdgeIdentity()
        # The certificate that the store had when we last read or wrote it.
        self._kept = ""
        # The part of a fleet's spread that is this edge's, drawn anew for each certificate.
        self._fraction = 0.0
        self._refused = False
        self._distrusted = False
        self._asked = ""
        self._suspected = asyncio.Event()
        # When a suspicion last led to a request.
        self._followed_up = float("-inf")
        self._not_after = _NEVER
        # What was logged since the last success.
        self._logged: set[str] = set()
        # What keeps the edge from its hub; empty when nothing does.
        self.message = ""
        # Set while there is a certificate that has not lapsed and the hub has not refused.
        self.certified = asyncio.Event()
        ways.gate.refused = self._suspected.set
        ways.gate.distrusted = self._distrust

    @property
    def expires(self) -> datetime | None:
        """When the certificate in use ends; None without one."""
        return self._not_after if self._in_use else None

    @property
    def fingerprint(self) -> str:
        """What people compare at both ends while a key waits; of the key last asked with."""
        return key_fingerprint(self._asked)

    async def run(self) -> None:
        """Keep the credential good until cancelled."""
        await self._load()
        async with asyncio.TaskGroup() as tasks:
            if self._account is not None:
                if not self._has_certificate:
                    self._ways.gate.open()
                renewing = tasks.create_task(self._account.run(self._ways.main, self._ids))
                tasks.create_task(self._retire(self._account, renewing))
            failures = 0
            while True:
                failures = 0 if await self._attempt() else failures + 1
                await self._pause(failures)

    async def _load(self) -> None:
        """Take up what is kept of earlier runs."""
        failures = 0
        while True:
            try:
                self._take_up(await self._store.load())
                return
            except (ApiError, TransportError, OSError) as error:
                failures += 1
                _log.warning("identity not read", attempt=failures, error=error)
                await self._clock.sleep(_BACKOFF.seconds(failures, self._ids))

    async def _retire(self, account: HubToken, renewing: asyncio.Task[None]) -> None:
        """End the renewal of the token that a certificate has replaced."""
        await self.certified.wait()
        renewing.cancel()
        account.forget()

    async def _pause(self, failures: int) -> None:
        if failures:
            await self._clock.sleep(_BACKOFF.seconds(failures, self._ids))
        elif not self._in_use:
            await self._clock.sleep(_CLOCK_SECONDS * (1 + 0.1 * self._ids.fraction()))
        elif await self._suspicion(min(self._seconds_left(), _CLOCK_SECONDS)):
            quiet = self._followed_up + _SUSPICION_SECONDS - self._clock.monotonic()
            await self._clock.sleep(max(0.0, quiet))
            self._followed_up = self._clock.monotonic()

    async def _suspicion(self, seconds: float) -> bool:
        """Tell whether the hub has refused a request before so many seconds are over."""
        try:
            async with asyncio.timeout(seconds):
                return await self._suspected.wait()
        except TimeoutError:
            return False

    # Obtaining a certificate.

    async def _attempt(self) -> bool:
        """Try every way there is now; return whether nothing more is to be done for a while."""
        if not self._in_use or self._distrusted:
            self._read_again()
        ways = ways_to_certificate(self._standing())
        for way in ways:
            try:
                await self._obtain(way)
            except NoLongerWanted:
                return False
            except _FAILURES as error:
                self._failed(way, error)
            else:
                return True
        return not ways

    def _standing(self) -> Standing:
        has = self._has_certificate
        return Standing(
            has_certificate=has,
            refused=self._refused,
            due=has and (self._suspected.is_set() or self._seconds_left() <= 0),
            bootstrap=self._has_new_bootstrap,
            distrusted=self._distrusted,
            account=self._account is not None,
        )

    @property
    def _has_new_bootstrap(self) -> bool:
        there = parse_bootstrap_token(self._config.token) is not None
        return there and self._credential(Way.REDEEM) != self._identity.redeemed

    async def _obtain(self, way: Way) -> None:
        if way is Way.EXCHANGE and EXTENSION not in await self._fresh().extensions():
            return
        kept = await self._store.load()
        if kept.certificate != self._kept:
            self._take_up(kept)  # another process of this edge was faster
            return
        edge = await self._edge()
        pending = await self._pending(edge, self._credential(way))
        self._asked = pending.name
        try:
            async with self._client(way) as client:
                verdict = await certificate_for(
                    client,
                    pending,
                    waiting=self._waiting,
                    wanted=lambda: self._is_wanted(way, pending),
                )
            await self._take(edge, pending, verdict, way)
        except (RequestRefused, ssl.SSLError):
            await self._save(self._identity.without_pending(pending))
            raise

    async def _edge(self) -> EdgeName:
        """Return who this edge is; one of the previous version has to ask its mailbox."""
        mailbox, uid = self._terms.mailbox, self._terms.uid
        if uid:
            return EdgeName(mailbox, uid)
        known = edge_of_user(self._identity.edge)
        if known is not None:
            return known
        cluster = await self._ways.main.get(_LOGICAL_CLUSTERS, "cluster")
        workspace = ((cluster.get("spec") or {}).get("owner") or {}).get("name", "")
        found = mailbox_named(str(workspace))
        if found is None:
            raise ValueError(f"workspace {workspace!r} of {mailbox} is no mailbox")
        return EdgeName(mailbox, found.uid)

    def _credential(self, way: Way) -> str:
        token = parse_bootstrap_token(self._config.token)
        return f"{way.value}:{token.id}" if way is Way.REDEEM and token else way.value

    async def _pending(self, edge: EdgeName, credential: str) -> PendingRequest:
        """Return the key to ask with: the one that was asked with before, by the same credential.

        A bootstrap credential accepts the first key it has seen and no other.
        """
        kept = self._identity.pending_by(credential)
        if kept is not None:
            return kept
        made = await self._make_key(edge, credential)
        await self._save(self._identity.with_pending(made))
        return made

    async def _save(self, identity: EdgeIdentity) -> None:
        await self._store.save(identity)
        self._identity, self._kept = identity, identity.certificate

    @asynccontextmanager
    async def _client(self, way: Way) -> AsyncIterator[Client]:
        """Come with what the way asks for, and nothing else."""
        if way is not Way.REDEEM:
            yield self._ways.main
            return
        main = self._ways.main
        transport = self._ways.dial(replace(self._config, certificate=b"", key=b""))
        try:
            yield Client(
                transport, cluster=main.cluster, clock=main.clock, user_agent=main.user_agent
            )
        finally:
            await transport.close()

    def _fresh(self) -> Client:
        """Return the main way without what was learnt of the hub: it may have been upgraded."""
        main = self._ways.main
        return Client(main.transport, cluster=main.cluster, clock=main.clock)

    def _waiting(self) -> None:
        hint = f"skerry edge approve {self._terms.name}"
        _log.warning("waiting for approval", command=hint, fingerprint=self.fingerprint)
        if not self._in_use:
            self._report(f"{WAITING}: {hint}")

    def _is_wanted(self, way: Way, pending: PendingRequest) -> bool:
        if way is Way.REDEEM:
            self._read_again()
        return self._credential(way) == pending.credential

    def _read_again(self) -> None:
        """Read the kubeconfig anew: somebody may have put a new credential there."""
        try:
            found = self._terms.read()
        except KubeconfigError as error:
            _log.warning("kubeconfig not read", error=error)
            return
        if found.server == self._config.server:
            self._config = found
        else:
            _log.error("the kubeconfig leads elsewhere now; restart the syncer", hub=found.server)

    # Using it.

    async def _take(
        self, edge: EdgeName, pending: PendingRequest, verdict: Verdict, way: Way
    ) -> None:
        """Keep the certificate, then use it."""
        redeemed = way is Way.REDEEM
        validity = validity_of(verdict.certificate)
        identity = EdgeIdentity(
            edge=edge.user,
            certificate=verdict.certificate.decode(),
            key=pending.key,
            received=self._clock.now(),
            lifetime_seconds=lifetime_seconds(validity, verdict.decided),
            redeemed=pending.credential if redeemed else self._identity.redeemed,
            # Who vouches for the hub is said by the kubeconfig that the credential came in.
            ca="" if redeemed else self._identity.ca,
        )
        tls_context(self._identified(identity))  # a certificate for another key is found here
        await self._save(identity)
        self._metrics.certificates.labels("issued").inc()
        _log.info("certificate issued", v=0, expires=rfc3339(validity.not_after))
        self._adopt()
        await self._learn_authorities()

    async def _learn_authorities(self) -> None:
        """Keep the authorities that the hub names now; it may be changing them."""
        client = self._fresh()
        try:
            path = (await client.extensions()).get(_CA_BUNDLE)
            if not path:
                return
            answer = await client.transport.request("GET", client.base + path)
            if answer.status != HTTPStatus.OK:
                raise answer_failure(answer)
            identity = structs.replace(self._identity, ca=answer.body.decode())
            tls_context(self._identified(identity))  # what cannot be read is found here
            await self._save(identity)
            self._ways.identify(self._identified(identity))
        except _FAILURES as error:
            _log.warning("authorities of the hub not read", error=error)

    def _take_up(self, kept: EdgeIdentity) -> None:
        """Go on with what is kept, as far as it is of use."""
        self._identity, self._kept = kept, kept.certificate
        if not self._has_certificate:
            return
        try:
            self._adopt()
        except (ValueError, OSError) as error:
            _log.error("the kept certificate cannot be used; a new one is needed", error=error)
            self._identity = structs.replace(self._identity, edge="", certificate="", key="")

    def _adopt(self) -> None:
        self._ways.identify(self._identified(self._identity))
        self._not_after = validity_of(self._identity.certificate.encode()).not_after
        self._metrics.certificate_expiration.set(self._not_after.timestamp())
        self._fraction = self._ids.fraction()
        self._refused = self._distrusted = False
        self._suspected.clear()
        self._logged.clear()
        if self._age_seconds() < self._identity.lifetime_seconds:
            self._ways.gate.open()
            self.certified.set()
            self._report("")
        else:
            self._ways.gate.shut()
            self._report(LAPSED)

    def _identified(self, identity: EdgeIdentity) -> ClientConfig:
        return replace(
            self._config,
            certificate=identity.certificate.encode(),
            key=identity.key.encode(),
            ca=identity.ca.encode() or self._config.ca,
            token="",
            token_file=None,
        )

    @property
    def _has_certificate(self) -> bool:
        return self._identity.is_for(self._terms.mailbox, self._terms.uid)

    @property
    def _in_use(self) -> bool:
        return self._has_certificate and not self._refused

    def _age_seconds(self) -> float:
        return age_seconds(self._identity, self._not_after, self._clock.now())

    def _seconds_left(self) -> float:
        return renewal_seconds(self._identity, self._age_seconds(), self._fraction)

    # What went wrong.

    def _failed(self, way: Way, error: Exception) -> None:
        self._metrics.certificates.labels("failed").inc()
        name = self._terms.name
        again = f"skerry edge bootstrap {name} makes a new bootstrap credential"
        if way is Way.RENEW and self._is_refusal(error):
            self._refused = True
            self.certified.clear()
            self._ways.gate.shut()
            self._report(
                f"the hub refuses this edge: {error}; what runs here stays; {again}", error
            )
        elif way is Way.REDEEM and isinstance(error, Unauthorized | Forbidden):
            self._report(f"the hub refuses the bootstrap credential: {error}; {again}", error)
        elif isinstance(error, RequestRefused):
            self._report(f"the request for a certificate was refused: {error}; {again}", error)
        else:
            _log.warning("certificate not obtained", credential=way.value, error=error)

    def _distrust(self) -> None:
        """Take note that what answers is not the hub we know: ask it, or another one, anew."""
        self._distrusted = True
        self._suspected.set()

    def _is_refusal(self, error: Exception) -> bool:
        lapsed = self._age_seconds() >= self._identity.lifetime_seconds
        return isinstance(error, Unauthorized) or (lapsed and isinstance(error, Forbidden))

    def _report(self, message: str, error: Exception | None = None) -> None:
        """Set the message; a refusal is logged when it is first met, not each time."""
        changed, self.message = message != self.message, message
        if changed:
            self._observe(message)
        if error is not None and message not in self._logged:
            self._logged.add(message)
            _log.error(message)
