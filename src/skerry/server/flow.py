"""How many requests run at once, fairly between users.

Reading and changing requests have a lane each, so that a flood of one leaves the other be. In a
lane a user may hold at most a share of the seats, so that others always find some; beyond it, or
when all seats are taken, requests wait in a short queue of their user's own, and freed seats go
round the waiting users in turn. A queue that is full, or a wait that is too long, is a 429 with
Retry-After. Members of ``system:masters`` and probes are exempt: whoever must repair an
overloaded server can.

A watch takes a seat only while it starts. How many watches a user has open is limited apart.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType

from skerry.api.errors import TooManyRequests
from skerry.server.http.message import Sender, User
from skerry.server.request_info import RequestInfo

_READING = frozenset(("get", "list", "watch", "head", "options"))
_PROBES = frozenset(("/healthz", "/livez", "/readyz"))
_MASTERS = "system:masters"
_MESSAGE = "Too many requests, please try again later."


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """Seats and queues. The totals are kube-apiserver's."""

    reading: int = 400
    """Most reading requests at once (``--max-requests-inflight``)."""

    mutating: int = 200
    """Most changing requests at once (``--max-mutating-requests-inflight``)."""

    user_share: float = 0.5
    """Largest part of a lane one user may hold; the rest stays for others."""

    queue: int = 200
    """Most requests of one user that wait. A client library bursts far less."""

    queue_seconds: float = 15.0
    """Longest wait for a seat; after it a retry is more use than patience."""

    watches: int = 5000
    """Most watches one user may have open; a controller has tens, a hub's syncers one each."""

    retry_after_seconds: int = 1
    """What a refused client is told to wait."""


class _Ready:
    """Something to await that is there already; costs no coroutine."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return _nothing()


def _nothing() -> Generator[None, None, None]:
    return
    yield


_READY = _Ready()


class Lane:
    """Seats of one kind of request, and who waits for them."""

    def __init__(self, seats: int, share: float, settings: FlowSettings) -> None:
        self._seats = seats
        self._per_user = max(1, int(seats * share))
        self._settings = settings
        self.in_flight = 0
        self.waiting = 0
        self.rejected = 0
        self._held: dict[str, int] = {}
        # Users in the order in which their turn comes.
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    def take(self, user: str) -> Awaitable[None]:
        """Take a seat for *user*, waiting if need be; raises TooManyRequests."""
        held = self._held.get(user, 0)
        if self.in_flight < self._seats and held < self._per_user and user not in self._queues:
            self.in_flight += 1
            self._held[user] = held + 1
            return _READY
        return self._wait(user)

    def release(self, user: str) -> None:
        """Give a seat back and pass it on."""
        self.in_flight -= 1
        left = self._held[user] - 1
        if left:
            self._held[user] = left
        else:
            del self._held[user]
        if self._queues:
            self._pass_on()

    async def _wait(self, user: str) -> None:
        queue = self._queues.setdefault(user, deque())
        if len(queue) >= self._settings.queue:
            raise self._refusal()
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._settings.queue_seconds):
                await turn
        except TimeoutError:
            self._give_up(user, turn)
            raise self._refusal() from None
        except asyncio.CancelledError:
            self._give_up(user, turn)
            raise
        finally:
            self.waiting -= 1

    def _give_up(self, user: str, turn: asyncio.Future[None]) -> None:
        """Leave the queue; a seat that was given in the same moment goes back."""
        if turn.done() and not turn.cancelled():
            self.release(user)
            return
        queue = self._queues.get(user)
        if queue is not None:
            with contextlib.suppress(ValueError):
                queue.remove(turn)
            if not queue:
                del self._queues[user]

    def _pass_on(self) -> None:
        """Hand free seats to waiting users, one each in turn."""
        for user in self._next_users():
            queue = self._queues.pop(user)
            turn = queue.popleft()
            if queue:
                self._queues[user] = queue  # At the end: the others come first now.
            if not turn.done():
                self.in_flight += 1
                self._held[user] = self._held.get(user, 0) + 1
                turn.set_result(None)

    def _next_users(self) -> Iterator[str]:
        while self.in_flight < self._seats:
            user = next(
                (name for name in self._queues if self._held.get(name, 0) < self._per_user), None
            )
            if user is None:
                return
            yield user

    def _refusal(self) -> TooManyRequests:
        self.rejected += 1
        return TooManyRequests(_MESSAGE, self._settings.retry_after_seconds)


class _Seat:
    """A seat in a lane for as long as the context lasts."""

    __slots__ = ("_lane", "_user")

    def __init__(self, lane: Lane, user: str) -> None:
        self._lane = lane
        self._user = user

    def __aenter__(self) -> Awaitable[None]:
        return self._lane.take(self._user)

    def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> Awaitable[None]:
        self._lane.release(self._user)
        return _READY


class _Free:
    """A context that limits nothing."""

    __slots__ = ()

    def __aenter__(self) -> Awaitable[None]:
        return _READY

    def __aexit__(self, *_: object) -> Awaitable[None]:
        return _READY


_FREE = _Free()


class FairFlow:
    """The flow control of a server."""

    def __init__(self, settings: FlowSettings | None = None) -> None:
        self.settings = settings or FlowSettings()
        share = self.settings.user_share
        self.reading = Lane(self.settings.reading, share, self.settings)
        self.mutating = Lane(self.settings.mutating, share, self.settings)
        self._watches: dict[str, int] = {}

    def admitted(self, info: RequestInfo, user: User) -> AbstractAsyncContextManager[None]:
        """Return a context to run the request in."""
        if _MASTERS in user.groups or (not info.is_resource and info.path in _PROBES):
            return _FREE  # type: ignore[return-value]  # awaitables, where coroutines are usual
        verb = info.verb
        if verb == "watch" and self._watches.get(user.name, 0) >= self.settings.watches:
            self.reading.rejected += 1
            raise TooManyRequests(
                f"too many watches are open for user {user.name}", self.settings.retry_after_seconds
            )
        lane = self.reading if verb in _READING else self.mutating
        return _Seat(lane, user.name)  # type: ignore[return-value]

    @property
    def watches(self) -> int:
        """How many watches are open, of all users."""
        return sum(self._watches.values())

    def counted_watch(
        self, user: str, run: Callable[[Sender], Awaitable[None]]
    ) -> Callable[[Sender], Awaitable[None]]:
        """Return *run* counting as one of the user's watches while it lasts."""

        async def counted(sender: Sender) -> None:
            async with self._watching(user):
                await run(sender)

        return counted

    @asynccontextmanager
    async def _watching(self, user: str) -> AsyncIterator[None]:
        self._watches[user] = self._watches.get(user, 0) + 1
        try:
            yield
        finally:
            self._watches[user] -= 1
            if not self._watches[user]:
                del self._watches[user]
