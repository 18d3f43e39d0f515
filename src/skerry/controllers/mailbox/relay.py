"""Passing on heartbeats: the Lease of a mailbox becomes a time in its SyncTarget's status.

How long the Lease lasts goes along in an annotation, where it is not the usual time.

A large fleet has hundreds of heartbeats a second, and most of such a small write is the request
around it. The hub takes heartbeats in by bursts; what follows from one burst is sent together,
where the hub takes batches.

Renewals come more often than anybody needs them in the SyncTarget. With a spacing of ten seconds:

    the SyncTarget says   since          the Lease was renewed   comes to
    nothing                              12:00:00                12:00:00 is written
    12:00:00              three seconds  12:00:03                reconciled again in seven seconds
    12:00:00              ten seconds    12:00:03                12:00:03 is written
    12:00:03              any time       12:00:03                nothing

The key is reconciled again by the clock because the Lease may not be renewed once more: what was
held back is then the last that was heard of the edge, and has to arrive as well.

For how long a SyncTarget has said so is a matter of the clock here, which counts seconds and is
compared with no other: the hub's time may be a day off, and an edge's more. What it said when this
process began it has said for an unknown time before. The least that it can be is the time from
that heartbeat to the first that was held back; so a restart costs one write too soon at most.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from skerry.api.edge import (
    HEARTBEAT_LEASE,
    HEARTBEAT_LEASE_SECONDS,
    HEARTBEAT_NAMESPACE,
    mailbox_named,
)
from skerry.api.errors import ApiError
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.objects import Object
from skerry.controllers.mailbox.events import BY_CONTENT, BY_UID
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.heartbeat import (
    RENEWALS,
    USUAL_LEASE_SECONDS,
    last_renewal,
    lease_seconds_of,
    lease_seconds_reported,
    relay_spacing,
)
from skerry.logic.machinery.plan import NOTHING, Patch, Plan, Target
from skerry.runtime.client import cluster_of
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, Informer

# Copies under way at a time: those of two bursts.
WORKERS = 32
# A hub that takes no batches, or does not say, is asked again after so long.
_ASK_AGAIN_SECONDS = 60.0


class MailboxContent(NamedTuple):
    """The logical cluster of a mailbox's content."""

    cluster: str

    def __str__(self) -> str:
        return self.cluster


class Age(NamedTuple):
    """For how many seconds a SyncTarget has said what it says, at least.

    They are exact where this process has seen the change.
    """

    seconds: float
    is_exact: bool


UNKNOWN_AGE = Age(0.0, is_exact=False)


class RelayTimes:
    """Since when SyncTargets say that their edges were heard of when they say it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Key, tuple[float, bool]] = {}

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        """Take what a SyncTarget says."""
        if new is None:
            if old is not None:
                self._since.pop(key_of(old), None)
        elif old is None or _relayed(old) != _relayed(new):
            self._since[key_of(new)] = (self._clock.monotonic(), old is not None)

    def age(self, sync_target: Key) -> Age:
        """Return for how long a SyncTarget has said what it says."""
        found = self._since.get(sync_target)
        if found is None:
            return UNKNOWN_AGE
        since, is_exact = found
        return Age(self._clock.monotonic() - since, is_exact)


def _relayed(sync_target: Object) -> str:
    return str((sync_target.get("status") or {}).get("lastSyncerHeartbeatTime") or "")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A renewal, and what its SyncTarget says so far."""

    sync_target: Key
    # When it may have been renewed; which of these counts depends on the present time.
    renewals: tuple[str, ...]
    relayed: str
    # How long the Lease lasts, and how long the SyncTarget says it does.
    lasts: int = USUAL_LEASE_SECONDS
    reported: int = USUAL_LEASE_SECONDS
    age: Age = UNKNOWN_AGE


def enqueue_on_lease(add: Callable[[MailboxContent], None]) -> Handler:
    """Enqueue on each renewal of a heartbeat Lease."""

    def handle(_: Object | None, new: Object | None) -> None:
        if new is None:
            return
        key = key_of(new)
        if (key.namespace, key.name) == (HEARTBEAT_NAMESPACE, HEARTBEAT_LEASE):
            add(MailboxContent(key.cluster))

    return handle


def enqueue_on_mailbox(add: Callable[[MailboxContent], None]) -> Handler:
    """Enqueue when a mailbox turns up whose heartbeat may have been seen before it."""

    def handle(old: Object | None, new: Object | None) -> None:
        cluster = (new or {}).get("spec", {}).get("cluster")
        if cluster and (old is None or (old.get("spec") or {}).get("cluster") != cluster):
            add(MailboxContent(cluster))

    return handle


class HeartbeatObserver:
    """Finds the SyncTarget a heartbeat is of."""

    def __init__(
        self,
        leases: Informer,
        workspaces: Informer,
        sync_targets: Informer,
        age: Callable[[Key], Age],
    ) -> None:
        """*age* returns for how long a SyncTarget has said what it says."""
        self._age = age
        self._leases = leases
        self._workspaces = workspaces
        self._sync_targets = sync_targets

    async def observe(self, content: MailboxContent) -> Heartbeat | None:
        """Return None while one of the three is missing; each of them coming is an event.

        But for a SyncTarget that is seen last: the next renewal finds it, seconds later.
        """
        lease = self._leases.index.get(Key(content.cluster, HEARTBEAT_NAMESPACE, HEARTBEAT_LEASE))
        if lease is None:
            return None
        for workspace in self._workspaces.index.by(BY_CONTENT, content.cluster):
            mailbox = mailbox_named(workspace["metadata"]["name"])
            for target in self._sync_targets.index.by(BY_UID, mailbox):
                key = Key(cluster_of(target), "", target["metadata"]["name"])
                return Heartbeat(
                    key,
                    tuple(lease[RENEWALS]),
                    _relayed(target),
                    lease_seconds_of(lease),
                    lease_seconds_reported(target),
                    self._age(key),
                )
        return None


def decide(observed: Heartbeat, now: datetime) -> Plan:
    """Pass a newer heartbeat on, though not more often than anybody needs."""
    renewed = last_renewal(observed.renewals, now)
    # What was passed on of a forged time in the past is replaced as if it were not there.
    relayed = last_renewal((observed.relayed,), now)
    if renewed is None:
        return NOTHING
    duration = [] if observed.lasts == observed.reported else [_duration(observed)]
    if relayed is not None:
        newer_by = (renewed.replace(microsecond=0) - relayed).total_seconds()
        if newer_by <= 0:
            return Plan(duration)
        seconds, is_exact = observed.age
        due = relay_spacing(observed.lasts).total_seconds()
        due -= seconds if is_exact else seconds + newer_by
        if due > 0:
            return Plan(duration, requeue_after_seconds=max(due, 1.0))
    patch = {"status": {"lastSyncerHeartbeatTime": rfc3339(renewed)}}
    return Plan([*duration, _patch(observed.sync_target, patch, "Heartbeat", "status")])


def _duration(observed: Heartbeat) -> Patch:
    """Return the change that reports how long a Lease lasts; the usual time is left out."""
    reported = None if observed.lasts == USUAL_LEASE_SECONDS else str(observed.lasts)
    patch = {"metadata": {"annotations": {HEARTBEAT_LEASE_SECONDS: reported}}}
    return _patch(observed.sync_target, patch, "LeaseDuration")


def _patch(key: Key, patch: Object, reason: str, subresource: str = "") -> Patch:
    return Patch(
        Target(SYNC_TARGETS, key.name, cluster=key.cluster),
        patch,
        reason=reason,
        subresource=subresource,
        retry_on_conflict=True,
        absent_is_fine=True,
        quiet=True,
    )


class HeartbeatExecutor(Executor):
    """An executor that first asks whether the hub takes writes together.

    They are gathered beneath the client, which does not ask by itself (``runtime.batching``).
    """

    _ask_at = 0.0

    async def execute(self, plan: Plan) -> list[Outcome]:
        client = self._client
        now = client.clock.monotonic()
        if plan.actions and client.facts.extensions is None and now >= self._ask_at:
            self._ask_at = now + _ASK_AGAIN_SECONDS
            for cluster in {each.target.cluster for each in plan if isinstance(each, Patch)}:
                with suppress(ApiError):  # whatever an ordinary server says to that question
                    await client.for_cluster(cluster).extensions()
        return await super().execute(plan)
