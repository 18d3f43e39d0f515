"""The sign of life: one Lease in the mailbox, renewed while this syncer lives and its edge answers.

A syncer may run elsewhere than its edge. Of an edge that does not answer it knows nothing, and what
it reported before must not count for longer than if it had gone, too.

After a silence the hub first hears what has changed meanwhile, as far as that is said within
seconds: what was reported before counts again the moment that the edge is heard of.

A renewal is a small patch of a small object, because on a thin line it is most of what an idle
edge ever says. Our hub dates it. Another leaves the time as it was sent, by a clock that nobody
trusts, and notes when fields were written only when other fields are or when they are applied; so
there the Lease is applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from skerry.api.edge import EDGE_FIELD_MANAGER, HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE
from skerry.api.errors import ApiError, NotFound
from skerry.api.objects import Object
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.state import SyncerSettings
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.returning import MAX_NEXT_TURN_SECONDS
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.placement.heartbeat import LEASES
from skerry.logic.machinery.plan import Action, Apply, Create, Patch, Plan, Target
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client
from skerry.runtime.execute import Executor
from skerry.runtime.transport import ConnectTimeout, TransportError, Unreachable

# An edge that answers again is heard of within this time.
_RETRY_SECONDS = 1.0
# Nearly always all is said in less; an edge with very much to say is heard of nevertheless.
_CATCH_UP_SECONDS = 5.0
_LEASE = Target(LEASES, HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE)


class Heartbeat:
    """Renews the Lease once per interval."""

    def __init__(
        self,
        hub: Client,
        settings: SyncerSettings,
        ids: IdSource,
        metrics: SyncerMetrics,
        edge_answers: Callable[[], bool],
        reported: Callable[[], Awaitable[None]],
    ) -> None:
        """*reported* returns when the hub has heard how everything at the edge fares."""
        self._hub = hub
        self._settings = settings
        self._ids = ids
        self._edge_answers = edge_answers
        self._reported = reported
        self._executor = Executor(hub, EDGE_FIELD_MANAGER, metrics=metrics.runtime)
        self._counted = metrics.heartbeats
        # A hub that comes back hears of us within seconds, but not from everybody at once.
        self._backoff = Backoff(1.0, min(30.0, settings.heartbeat_seconds), jitter=0.5)
        # Said once per life, as another interval may have been set since the last.
        self._unsaid: Object = {"leaseDurationSeconds": self._lease_seconds}
        self._is_dated = True
        self._log = Logger("syncer-heartbeat")

    async def run(self) -> None:
        """Beat until cancelled."""
        failures, silent = 0, True
        while True:
            if not self._edge_answers():
                silent = True
                self._log.debug("no heartbeat: the edge does not answer")
                await self._hub.clock.sleep(min(_RETRY_SECONDS, self._settings.heartbeat_seconds))
                continue
            try:
                if silent:
                    await self._catch_up()
                await self._beat()
                failures, silent = 0, False
                self._counted.labels("sent").inc()
                # A little early, each syncer in its own way, so that a fleet spreads out.
                delay = self._settings.heartbeat_seconds * (1.0 - 0.1 * self._ids.fraction())
            except (ApiError, TransportError) as error:
                failures, silent = failures + 1, True
                self._counted.labels("failed").inc()
                self._log.debug("heartbeat failed", attempt=failures, error=error)
                delay = await self._away(failures, error)
            await self._hub.clock.sleep(delay)

    async def _away(self, failures: int, error: ApiError | TransportError) -> float:
        """Wait until the hub may be there, if that can be known; return for how long more."""
        facts = self._hub.facts
        delay = self._backoff.seconds(failures, self._ids)
        if isinstance(error, ConnectTimeout):
            # It is there, and others came too.
            limit = MAX_NEXT_TURN_SECONDS
            return max(min(delay, limit), facts.return_delay(self._ids, limit))
        if isinstance(error, Unreachable):
            # Where many return the watches come back first, in their turn; by coming before them
            # this would take the place of somebody else's.
            await facts.returned(self._hub.clock, self._ids, delay + facts.return_seconds)
            return 0.0
        return max(delay, facts.return_delay(self._ids))

    async def _catch_up(self) -> None:
        """Have the hub hear what it missed; where nobody was ever heard of, it missed nothing.

        Whoever was heard of before need not ask: of ten thousand that come back to a hub at once
        each would.
        """
        if self._unsaid:
            try:
                await self._hub.get(LEASES, HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE)
            except NotFound:
                return
        with suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                await self._reported()

    async def _beat(self) -> None:
        now = rfc3339_micro(self._hub.clock.now())
        try:
            [outcome] = await self._executor.execute(Plan([self._renewal(now)]))
        except NotFound:
            lease = Create(_LEASE, self._lease(now), "Missing", exclusive=True)
            [outcome] = await self._executor.execute(Plan([lease]))
        if self._unsaid and outcome.object is not None:
            # A hub that dates Leases has written a time of its own.
            self._is_dated = outcome.object["spec"].get("renewTime") != now
        self._unsaid = {}

    def _renewal(self, now: str) -> Action:
        if not self._is_dated:
            lease = self._lease(now)
            del lease["spec"]["acquireTime"]
            return Apply(_LEASE, lease, "Renewed", quiet=True)
        identity = self._settings.identity
        patch = {"spec": {"renewTime": now, "holderIdentity": identity, **self._unsaid}}
        return Patch(_LEASE, patch, "Renewed", quiet=not self._unsaid)

    @property
    def _lease_seconds(self) -> int:
        """Two intervals: one heartbeat may be lost."""
        return max(1, int(2 * self._settings.heartbeat_seconds))

    def _lease(self, now: str) -> Object:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": HEARTBEAT_LEASE, "namespace": HEARTBEAT_NAMESPACE},
            "spec": {
                "holderIdentity": self._settings.identity,
                "leaseDurationSeconds": self._lease_seconds,
                "acquireTime": now,
                "renewTime": now,
            },
        }
