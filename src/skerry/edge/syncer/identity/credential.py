"""The edge's credential at its hub: a certificate for a key that was made here and stays here.

The first certificate is had with the bootstrap credential of the kubeconfig, which may have to wait
for a person; each further one with the certificate before it, when two thirds of that one's life
are over, with a fresh key. A lapsed certificate still gets its successor, for as long as the hub
allows. An edge of the previous version has a ServiceAccount token: it goes on with that, and
exchanges it for a certificate once its hub can issue one.

What the hub refuses is shown to people once, loudly, and tried again at growing intervals, with
what the kubeconfig then holds: somebody may have put a new bootstrap credential there. Nothing is
deleted at an edge because its hub refuses it.

    what there is                         gate   what is tried
    a bootstrap credential                shut   to redeem it
    a token of the previous version       open   to exchange it, where the hub issues certificates
    a certificate                         open   nothing, until two thirds of its life are over
    a certificate that is due             open   to renew it
    one that had lapsed when we began     shut   to renew it
    one that the hub refuses              shut   to redeem a new credential, then to renew it

Requests of this module do not pass the gate, or nobody could ever open it. A certificate that
lapses while it is in use shuts nothing by itself, as the edge's clock may be wrong: the hub says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from skerry.api.errors import ApiError, Forbidden, Unauthorized
from skerry.edge.syncer.identity.certificate_request import NoLongerWanted, RequestRefused
from skerry.edge.syncer.identity.credential_gate import CredentialGate
from skerry.edge.syncer.identity.enrolment import Enrolment, HubWays
from skerry.edge.syncer.identity.keys import NoKey
from skerry.edge.syncer.identity.token import HubToken
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.syncing.certificates import (
    Standing,
    Way,
    age_seconds,
    key_fingerprint,
    renewal_seconds,
    validity_of,
    ways_to_certificate,
)
from skerry.runtime.backoff import Backoff
from skerry.runtime.transport import TransportError

# For lines that fail and hubs that refuse. Who waits for approval watches the request instead.
_BACKOFF = Backoff(min_seconds=2.0, max_seconds=600.0, jitter=0.5)
# How long a wait goes on without reading the clock: it does not run while a machine sleeps.
_CLOCK_SECONDS = 3600.0
# Between two questions whether the hub still accepts us: a bad line loses connections all the time.
_SUSPICIONS = Backoff(min_seconds=1.0, max_seconds=60.0)
# A suspicion so long after the last one is examined at once, like a first one.
_FORGIVEN_SECONDS = 600.0
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_FAILURES = (ApiError, TransportError, OSError, ValueError, NoKey, RequestRefused)
# How the message begins while a person has to act at the hub.
WAITING = "waiting for approval"
# How the message begins while nobody has to act, but there is no certificate.
NOT_YET = "no certificate yet"
# The message while a lapsed certificate is renewed.
LAPSED = "the certificate has lapsed; its successor is requested"

_STAYS = "what runs here stays"

_log = Logger("syncer-credential")


class HubCredential:
    """Obtains and renews one edge's certificate; ``run`` it once.

    *account* is the token that an edge of the previous version comes with. *observe* is called
    with the message that says what keeps the edge from its hub, whenever it changes.
    """

    def __init__(
        self,
        enrolment: Enrolment,
        ways: HubWays,
        gate: CredentialGate,
        *,
        ids: IdSource,
        metrics: SyncerMetrics,
        account: HubToken | None = None,
        observe: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._enrolment, self._ways, self._gate = enrolment, ways, gate
        self._ids, self._metrics = ids, metrics
        self._account, self._observe = account, observe
        self._clock = ways.main.clock
        # The part of a fleet's spread that is this edge's, drawn anew for each certificate.
        self._fraction = 0.0
        self._not_after = _NEVER
        self._refused = False
        self._suspicion = gate.suspicion
        # How many suspicions there were in a row, and when the last one was checked.
        self._suspicions = 0
        self._examined = float("-inf")
        # What was logged since the last success.
        self._logged: set[str] = set()
        # What keeps the edge from its hub; empty when nothing does.
        self.message = ""
        # Set while there is a certificate that has not lapsed and the hub has not refused.
        self.certified = asyncio.Event()

    @property
    def expires(self) -> datetime | None:
        """When the certificate in use ends; None without one."""
        return self._not_after if self._in_use else None

    @property
    def fingerprint(self) -> str:
        """What people compare at both ends while a key waits; of the key last asked with."""
        return key_fingerprint(self._enrolment.asked)

    async def run(self) -> None:
        """Keep the credential good until cancelled."""
        await self._load()
        async with asyncio.TaskGroup() as tasks:
            if self._account is not None:
                if not self._enrolment.has_certificate:
                    self._gate.open()
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
                await self._enrolment.load()
                break
            except (ApiError, TransportError, OSError) as error:
                failures += 1
                _log.warning("identity not read", attempt=failures, error=error)
                self._report(f"{NOT_YET}: the kept identity cannot be read: {error}")
                await self._clock.sleep(_BACKOFF.seconds(failures, self._ids))
        self._take_up()

    async def _retire(self, account: HubToken, renewing: asyncio.Task[None]) -> None:
        """End the renewal of the token that a certificate has replaced."""
        await self.certified.wait()
        renewing.cancel()
        account.forget()

    async def _pause(self, failures: int) -> None:
        """Wait until there may be something to do.

        With a certificate that is until it is due, or until something speaks against it. Such
        suspicions are examined at growing intervals: a line that drops connections all day is no
        reason to ask the hub all day.
        """
        if failures:
            await self._clock.sleep(_BACKOFF.seconds(failures, self._ids))
        elif not self._in_use:
            await self._clock.sleep(_CLOCK_SECONDS * (1 + 0.1 * self._ids.fraction()))
        elif await self._is_suspected(min(self._seconds_left(), _CLOCK_SECONDS)):
            since = self._clock.monotonic() - self._examined
            self._suspicions = 0 if since > _FORGIVEN_SECONDS else self._suspicions + 1
            if self._suspicions:
                await self._clock.sleep(max(0.0, _SUSPICIONS.seconds(self._suspicions) - since))

    async def _is_suspected(self, seconds: float) -> bool:
        """Tell whether something speaks against the certificate before the seconds are over."""
        try:
            async with asyncio.timeout(seconds):
                return await self._suspicion.suspected.wait()
        except TimeoutError:
            return False

    # Obtaining a certificate.

    async def _attempt(self) -> bool:
        """Try every way there is now; return whether nothing more is to be done for a while."""
        if self._in_use and self._suspicion.suspected.is_set():
            await self._examine()
        if not self._in_use or self._suspicion.distrusted:
            self._enrolment.read_again()
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

    async def _examine(self) -> None:
        """Find out whether the hub still accepts the certificate; what it shows may be chance.

        A hub that dropped the authority of our certificate ends the connection without a word, as
        a bad line does: but then it hears those who show none.
        """
        self._examined = self._clock.monotonic()
        try:
            await self._ways.fresh().version()
        except (Unauthorized, Forbidden):
            return  # so it is: a successor is due
        except ApiError as error:
            _log.debug("hub does not say whether it accepts us", error=error)
        except TransportError as error:
            if await self._enrolment.hears_strangers():
                self._refuse(error)
                return
        else:
            self._suspicion.distrusted = False
        self._suspicion.suspected.clear()

    def _standing(self) -> Standing:
        has = self._enrolment.has_certificate
        return Standing(
            has_certificate=has,
            refused=self._refused,
            due=has and (self._suspicion.suspected.is_set() or self._seconds_left() <= 0),
            bootstrap=self._enrolment.has_new_bootstrap,
            distrusted=self._suspicion.distrusted,
            account=self._account is not None,
        )

    async def _obtain(self, way: Way) -> None:
        if way is Way.EXCHANGE and not await self._enrolment.is_offered():
            return
        if await self._enrolment.load():
            self._take_up()  # another process of this edge was faster
            return
        await self._enrolment.obtain(way, self._waiting)
        self._metrics.certificates.labels("issued").inc()
        self._adopt()
        _log.info("certificate issued", v=0, expires=rfc3339(self._not_after))
        try:
            await self._enrolment.learn_authorities()
        except _FAILURES as error:
            _log.warning("authorities of the hub not read", error=error)

    def _waiting(self) -> None:
        command = f"skerry edge approve {self._enrolment.terms.name}"
        _log.warning(WAITING, command=command, fingerprint=self.fingerprint)
        if not self._in_use:
            self._report(f"{WAITING}: {command}")

    # Using it.

    def _take_up(self) -> None:
        """Go on with what is kept, as far as it is of use."""
        if not self._enrolment.has_certificate:
            return
        try:
            self._adopt()
        except (ValueError, OSError) as error:
            _log.error("the kept certificate cannot be used; a new one is needed", error=error)
            self._enrolment.drop_certificate()

    def _adopt(self) -> None:
        """Come with the certificate that is kept now; what spoke against the last is forgotten."""
        identity = self._enrolment.identity
        self._enrolment.use()
        self._not_after = validity_of(identity.certificate.encode()).not_after
        self._metrics.certificate_expiration.set(self._not_after.timestamp())
        self._fraction = self._ids.fraction()
        self._refused = self._suspicion.distrusted = False
        self._suspicion.suspected.clear()
        self._logged.clear()
        if self._has_lapsed:
            self._gate.shut()
            self._report(LAPSED)
        else:
            self._gate.open()
            self.certified.set()
            self._report("")

    @property
    def _in_use(self) -> bool:
        return self._enrolment.has_certificate and not self._refused

    @property
    def _has_lapsed(self) -> bool:
        return self._age_seconds() >= self._enrolment.identity.lifetime_seconds

    def _age_seconds(self) -> float:
        return age_seconds(self._enrolment.identity, self._not_after, self._clock.now())

    def _seconds_left(self) -> float:
        return renewal_seconds(self._enrolment.identity, self._age_seconds(), self._fraction)

    # What went wrong.

    def _failed(self, way: Way, error: Exception) -> None:
        self._metrics.certificates.labels("failed").inc()
        refusal = isinstance(error, Unauthorized | Forbidden)
        if way is Way.RENEW and (isinstance(error, Unauthorized) or (refusal and self._has_lapsed)):
            self._refuse(error)
        elif way is Way.EXCHANGE and isinstance(error, Unauthorized):
            self._report_refusal(f"the hub refuses this edge: {error}; {_STAYS}")
        elif way is Way.REDEEM and refusal:
            self._report_refusal(f"the hub refuses the bootstrap credential: {error}")
        elif isinstance(error, RequestRefused):
            self._report_refusal(f"the request for a certificate was refused: {error}")
        else:
            _log.warning("certificate not obtained", credential=way.value, error=error)
            if not self._gate.is_open and not self._refused:
                self._report(f"{NOT_YET}: {error}")

    def _refuse(self, error: Exception) -> None:
        """Ask nothing more with this certificate, but for another."""
        self._refused = True
        self.certified.clear()
        self._gate.shut()
        self._report_refusal(f"the hub refuses this edge: {error}; {_STAYS}")

    def _report_refusal(self, text: str) -> None:
        """Report what only a person can change; logged when it is first met, not each time."""
        name = self._enrolment.terms.name
        message = f"{text}; skerry edge bootstrap {name} makes a new bootstrap credential"
        self._report(message)
        if message not in self._logged:
            self._logged.add(message)
            _log.error(message)

    def _report(self, message: str) -> None:
        if message != self.message:
            self.message = message
            self._observe(message)
