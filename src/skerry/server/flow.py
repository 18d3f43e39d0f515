"""How many requests run at once, and how much of the processor they take, fairly between users.

Reading and changing requests have a lane each, so that a flood of one leaves the other be; requests
without credentials have a small one of their own. In a lane a
principal may hold a share of the seats, and a workspace's principals together no more; where
requests fall to FlowSchemas, their priority level limits them as well. Everybody
is counted by the name that is unique on the hub: ServiceAccounts of equal name in two workspaces
are two.

Edges have a lane of their own with a long queue. All of them come back within a minute when a hub
was away, and each of them only asks for what it must have: whoever is refused asks again, which
costs more than to wait.

Requests that keep the loop busy are charged to their principal and its workspace (``accounts``):
who used too much waits for a moment, or is refused with 429 and a ``Retry-After``. Members of
``system:masters`` and probes are exempt from seats, hub administrators from charges: whoever must
repair an overloaded server can.

Heartbeats of edges come by bursts (``bursts``); they take their seats when one begins.

A watch takes a seat only while it starts. How many watches are open is limited apart; a stream of
several watches counts as many.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from skerry.api.edge_identity import EDGE_GROUPS
from skerry.api.errors import TooManyRequests
from skerry.api.kinds import GroupResource
from skerry.kit.clock import Clock, SystemClock
from skerry.logic.machinery.edges.rights import CHANGE, is_heartbeat
from skerry.logic.machinery.workspaces.names import ADMIN_GROUP
from skerry.server.accounts import Accounts, AccountSettings
from skerry.server.bursts import Bursts
from skerry.server.flow_classes import FlowClasses
from skerry.server.http.message import Sender
from skerry.server.lanes import Lane, LaneSettings, Seat, add
from skerry.server.priority_levels import SeatOfBoth
from skerry.server.request.info import RequestInfo
from skerry.server.user import User

_READING = frozenset(("get", "list", "watch", "head", "options"))
_PROBES = frozenset(("/healthz", "/livez", "/readyz"))
_MASTERS = "system:masters"
_STRANGERS = "system:unauthenticated"
_EXEMPT = frozenset((_MASTERS, ADMIN_GROUP))
# Requests of one principal that wait for its account.
_MAX_DELAYED = 20


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """Seats, queues and shares. The totals are kube-apiserver's."""

    reading: LaneSettings = field(default_factory=lambda: LaneSettings(400))
    """Reading requests at once (``--max-requests-inflight``)."""

    mutating: LaneSettings = field(default_factory=lambda: LaneSettings(200))
    """Changing requests at once (``--max-mutating-requests-inflight``)."""

    anonymous: LaneSettings = field(
        default_factory=lambda: LaneSettings(16, share=1.0, queue=64, queue_seconds=2.0)
    )
    """Requests without credentials at once; what they may ask for is answered at once."""

    edges: LaneSettings = field(
        default_factory=lambda: LaneSettings(
            200, share=0.04, queue=64, max_waiting=50_000, queue_seconds=60.0
        )
    )
    """Requests of edges at once. Each has two connections, so two for each of 25,000 may wait, as
    long as a syncer waits for an answer."""

    accounts: AccountSettings = field(default_factory=AccountSettings)
    """How much of the processor a principal, or a workspace's together, may use."""

    anonymous_accounts: AccountSettings = field(
        default_factory=lambda: AccountSettings(rate=0.1, burst=0.2, threshold=0.0)
    )
    """How much of the processor all requests without credentials may use together."""

    max_wait: float = 2.0
    """How many seconds a request waits for its principal's account; beyond it, 429."""

    watches: int = 5000
    """Watches one principal may have open; a controller has tens, a hub's syncers a few each."""

    workspace_watches: int = 10_000
    """Watches all principals of one workspace may have open together."""

    retry_after_seconds: int = 1
    """Seconds that a client with too many watches is asked to wait."""


class FairFlow:
    """The flow control of a server."""

    def __init__(self, settings: FlowSettings | None = None, clock: Clock | None = None) -> None:
        self.settings = settings or FlowSettings()
        self._now = (clock or SystemClock()).monotonic
        self.reading = Lane(self.settings.reading)
        self.mutating = Lane(self.settings.mutating)
        self.anonymous = Lane(self.settings.anonymous)
        self.edges = Lane(self.settings.edges)
        self._accounts = Accounts(self.settings.accounts)
        self._strangers = Accounts(self.settings.anonymous_accounts)
        # Which FlowSchema requests fall to; of none, unless they are followed.
        self.classes = FlowClasses(self.settings.reading.seats + self.settings.mutating.seats)
        # The headers that name the FlowSchema a request falls to; asked with every request.
        self.headers = self.classes.headers
        # Addresses that sent much that does not hold, and "system:unauthenticated".
        self.suspects: Collection[str] = self._strangers.over
        self._watches: dict[str, int] = {}
        self._watches_by_workspace: dict[str, int] = {}
        self._delayed: dict[str, int] = {}
        self._heartbeats = Bursts()

    def admitted(self, info: RequestInfo, user: User) -> AbstractAsyncContextManager[None] | None:
        """Return a context to run the request in; None where nothing is limited."""
        if _MASTERS in user.groups or (not info.is_resource and info.path in _PROBES):
            return None
        if _STRANGERS in user.groups:
            lane, principal, accounts = self.anonymous, _STRANGERS, self._strangers
        else:
            if user.groups == EDGE_GROUPS:
                lane = self.edges
            else:
                lane = self.reading if info.verb in _READING else self.mutating
            accounts = self._accounts
            principal = user.principal if user.home else user.name
        own = Seat(lane, principal, user.home)
        seat: Seat | SeatOfBoth = own
        found = self.classes.of(info, user)
        if found is not None and found.lane is not None:
            seat = SeatOfBoth(found.lane, found.flow(info, user), own)
        if accounts.over:
            delay = self._delay(accounts, principal, user)
            if delay:
                return self._later(seat, lane, principal, delay)
        if user.groups == EDGE_GROUPS and _renews(info):
            return self._in_burst(seat)
        return seat  # type: ignore[return-value]  # awaitables, where coroutines are usual

    # Processor time.

    def charge(self, user: User | None, seconds: float, address: str = "") -> None:
        """Note that a request of *user* took *seconds* of the processor.

        With None nobody was recognized: the credentials that came from *address* do not hold.
        """
        if user is None or _STRANGERS in user.groups:
            name = _STRANGERS if user is not None else address
            self._strangers.charge(name, seconds, self._now())
            return
        if seconds < self.settings.accounts.threshold or not _EXEMPT.isdisjoint(user.groups):
            return
        now = self._now()
        self._accounts.charge(user.principal, seconds, now)
        if user.home:
            self._accounts.charge(_of_workspace(user.home), seconds, now)

    def refusal_of(self, address: str) -> TooManyRequests | None:
        """Return why no new credentials from *address* are looked into now: too many from there
        did not hold."""
        delay = self._strangers.delay(address, self._now())
        return self.anonymous.refusal(math.ceil(delay)) if delay else None

    def _delay(self, accounts: Accounts, principal: str, user: User) -> float:
        if not _EXEMPT.isdisjoint(user.groups):
            return 0.0
        now = self._now()
        delay = accounts.delay(principal, now)
        if user.home:
            delay = max(delay, accounts.delay(_of_workspace(user.home), now))
        return delay

    @asynccontextmanager
    async def _later(
        self, seat: Seat | SeatOfBoth, lane: Lane, principal: str, delay: float
    ) -> AsyncIterator[None]:
        """Wait for the account of *principal*, then for a seat."""
        if delay > self.settings.max_wait or self._delayed.get(principal, 0) >= _MAX_DELAYED:
            raise lane.refusal(math.ceil(delay))
        add(self._delayed, principal, 1)
        try:
            await asyncio.sleep(delay)
        finally:
            add(self._delayed, principal, -1)
        async with seat:
            yield

    @asynccontextmanager
    async def _in_burst(self, seat: Seat | SeatOfBoth) -> AsyncIterator[None]:
        await self._heartbeats.join()
        async with seat:
            yield

    # Watches.

    @property
    def watches(self) -> int:
        """How many watches are open, of all users."""
        return sum(self._watches.values())

    def check_watches(self, user: User, count: int) -> None:
        """Raise TooManyRequests when *user* may not open *count* more watches."""
        if _MASTERS in user.groups:
            return
        settings, principal = self.settings, user.principal
        if self._watches.get(principal, 0) + count > settings.watches:
            whose = f"user {user.name}"
        elif user.home and (
            self._watches_by_workspace.get(user.home, 0) + count > settings.workspace_watches
        ):
            whose = f"principals of workspace {user.home}"
        else:
            return
        self.reading.rejected += 1
        raise TooManyRequests(
            f"too many watches are open for {whose}", settings.retry_after_seconds
        )

    def counted_watches(
        self, user: User | None, count: int, run: Callable[[Sender], Awaitable[None]]
    ) -> Callable[[Sender], Awaitable[None]]:
        """Return *run* counting as *count* of the user's watches while it lasts."""
        if not count:
            return run
        principal = user.principal if user is not None else ""
        workspace = user.home if user is not None else ""

        async def counted(sender: Sender) -> None:
            self._count(principal, workspace, count)
            try:
                await run(sender)
            finally:
                self._count(principal, workspace, -count)

        return counted

    def _count(self, principal: str, workspace: str, change: int) -> None:
        add(self._watches, principal, change)
        if workspace:
            add(self._watches_by_workspace, workspace, change)


def _of_workspace(home: str) -> str:
    """Return the name of a workspace's account, which no principal has."""
    return f"\0{home}"


def _renews(info: RequestInfo) -> bool:
    """Tell whether a request renews an edge's Lease."""
    kind = GroupResource(info.group, info.resource)
    return info.verb in CHANGE and is_heartbeat(kind, info.namespace, info.name)
