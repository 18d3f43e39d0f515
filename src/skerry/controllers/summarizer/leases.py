"""When edges were heard of: a timer that turns Leases into rows.

The Lease of a mailbox lives for as long as it says, from its last renewal by the hub's own time.
While it lives a renewal costs nothing but an entry here: the expiry moves, and a heap that holds
one entry for each Lease looks at it again when the old expiry comes. What lapses within a second is
one batch, so that a thousand edges lost at once are one change of every summary they are in.

Unknown is not absent. Whoever does not follow the Leases cannot tell that one was not renewed:
while the watch is interrupted nothing lapses, and when it goes on, what was missed is read first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from skerry.api.edge import HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE
from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.kit.clock import Clock
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.heartbeat import (
    RENEWALS,
    heartbeat_health,
    last_renewal,
    lease_seconds_of,
)
from skerry.logic.fleet.summary.freshness import LIVE, Lease, lapsed
from skerry.runtime.client import cluster_of
from skerry.runtime.index import key_of

# What lapses within this time is one batch: writes follow batches, not edges.
_BATCH_SECONDS = 1.0
# What a watch missed comes right after it goes on.
_CATCH_UP_SECONDS = 2.0


class _Heard(NamedTuple):
    """The last renewal of a Lease, and until when it lives, in monotonic seconds."""

    renewed: datetime
    expires: float


class Timer(Protocol):
    """What can be called off before its time."""

    def cancel(self) -> None: ...


class Leases:
    """Follows Leases, and tells *put* of mailboxes that are live, have lapsed, or have none."""

    def __init__(
        self,
        clock: Clock,
        put: Callable[[Mapping[ClusterName, Lease | None]], None],
        following_since: Callable[[], float | None],
        call_later: Callable[[float, Callable[[], None]], Timer],
    ) -> None:
        """*following_since* is since when the Leases are followed, None while they are not."""
        self._clock = clock
        self._put = put
        self._following_since = following_since
        self._call_later = call_later
        self._heard: dict[ClusterName, _Heard] = {}
        self._live: set[ClusterName] = set()
        # When a Lease is to be looked at again: no later than it expires, and one entry for each.
        self._heap: list[tuple[float, ClusterName]] = []
        self._queued: dict[ClusterName, float] = {}
        self._timer: Timer | None = None
        self._due = 0.0
        self._not_before = 0.0

    def lease_changed(self, old: Object | None, new: Object | None) -> None:
        """Take in a heartbeat Lease."""
        obj = new or old
        if obj is None or key_of(obj)[1:] != (HEARTBEAT_NAMESPACE, HEARTBEAT_LEASE):
            return
        cluster = cluster_of(obj)
        if new is not None:
            self._renewed(cluster, new[RENEWALS], lease_seconds_of(new))
        elif self._heard.pop(cluster, None) is not None:
            self._live.discard(cluster)
            self._put({cluster: None})

    def _renewed(self, cluster: ClusterName, times: tuple[str, ...], seconds: int) -> None:
        now = self._clock.now()
        renewed = last_renewal(times, now)
        if renewed is None:
            return
        known = self._heard.get(cluster)
        # A time that lies ahead is the hub's, whose clock is not this one: it was just now.
        health = heartbeat_health(min(renewed, now), now, seconds)
        if health.expires is None and known is not None and renewed > known.renewed:
            # It was renewed while it was followed, and yet too long ago: this clock is wrong.
            health = heartbeat_health(now, now, seconds)
        if health.expires is None:
            self._heard[cluster] = _Heard(renewed, 0.0)
            self._live.discard(cluster)
            self._put({cluster: lapsed(rfc3339(renewed))})
            return
        expires = self._clock.monotonic() + (health.expires - now).total_seconds()
        self._heard[cluster] = _Heard(renewed, expires)
        self._enqueue(cluster, expires)
        if cluster not in self._live:
            self._live.add(cluster)
            self._put({cluster: LIVE})

    def _enqueue(self, cluster: ClusterName, expires: float) -> None:
        """Have a Lease looked at when it expires; one that will be looked at before is left."""
        if expires < self._queued.get(cluster, float("inf")):
            self._queued[cluster] = expires
            heappush(self._heap, (expires, cluster))
            self._schedule()

    def _schedule(self) -> None:
        """Have one timer, for the first entry, and no sooner than the last batch allows."""
        if not self._heap:
            return
        due = max(self._heap[0][0], self._not_before)
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        wait = max(due - self._clock.monotonic(), 0.0)
        self._timer = self._call_later(wait, self._expire)

    def _expire(self) -> None:
        """Make one batch of everything that has lapsed."""
        self._timer = None
        since, now = self._following_since(), self._clock.monotonic()
        self._not_before = now + _BATCH_SECONDS
        if since is not None and now >= since + _CATCH_UP_SECONDS:
            gone = {cluster: lapsed(rfc3339(heard.renewed)) for cluster, heard in self._due_by(now)}
            self._live.difference_update(gone)
            if gone:
                self._put(gone)
        self._schedule()

    def _due_by(self, now: float) -> Iterator[tuple[ClusterName, _Heard]]:
        """Take what is due from the heap, and yield what has lapsed by then."""
        while self._heap and self._heap[0][0] <= now:
            due, cluster = heappop(self._heap)
            if self._queued.get(cluster) != due:
                continue  # it was looked at sooner
            del self._queued[cluster]
            heard = self._heard.get(cluster)
            if heard is not None and cluster in self._live:
                if heard.expires <= now:
                    yield cluster, heard
                else:
                    self._enqueue(cluster, heard.expires)
