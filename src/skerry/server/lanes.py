"""Seats for requests of one kind, and who waits for them.

A principal may hold at most a share of the seats, and so may all principals of one workspace
together, so that others always find some. Beyond it, or when all seats are taken, requests wait in
a short queue of their principal's own, and freed seats go round the waiting principals in turn.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Generator, Iterator
from dataclasses import dataclass
from types import TracebackType

from skerry.api.errors import TooManyRequests

MESSAGE = "Too many requests, please try again later."


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """The size of a lane."""

    seats: int
    """How many requests run at once."""

    share: float = 0.5
    """Which part of the seats one principal may hold; the rest stays for others."""

    workspace_share: float = 0.5
    """Which part of the seats all principals of one workspace may hold together."""

    queue: int = 200
    """How many requests of one principal wait, and of one workspace."""

    max_waiting: int = 1000
    """How many requests of everybody wait."""

    queue_seconds: float = 15.0
    """How long a request waits for a seat; after it a retry is more use than patience."""

    retry_after_seconds: int = 1
    """Seconds that a refused client is asked to wait."""


class _Ready:
    """Something to await that is there already; costs no coroutine."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return _nothing()


def _nothing() -> Generator[None, None, None]:
    return
    yield


READY = _Ready()


class Lane:
    """Seats of one kind of request, and who waits for them."""

    def __init__(self, settings: LaneSettings) -> None:
        self.resize(settings)
        self.in_flight = 0
        self.waiting = 0
        self.rejected = 0
        self._held: dict[str, int] = {}
        self._held_by_workspace: dict[str, int] = {}
        # Principals in the order in which their turn comes, with their workspace.
        self._queues: dict[str, tuple[str, deque[asyncio.Future[None]]]] = {}
        self._waiting_by_workspace: dict[str, int] = {}

    def resize(self, settings: LaneSettings) -> None:
        """Set how large it is from now on; who has a seat keeps it."""
        self._settings = settings
        self._seats = settings.seats
        self._per_principal = max(1, int(settings.seats * settings.share))
        self._per_workspace = max(1, int(settings.seats * settings.workspace_share))

    def has_room(self) -> bool:
        """Tell whether there is a seat for somebody."""
        return self.in_flight < self._seats

    def take(self, principal: str, workspace: str = "") -> Awaitable[None]:
        """Take a seat, waiting if need be; raises TooManyRequests.

        *workspace* is where the principal is at home, if it is in one workspace only.
        """
        held = self._held.get(principal, 0)
        if (
            self.has_room()
            and held < self._per_principal
            and principal not in self._queues
            and not (workspace and self._is_full(workspace))
        ):
            self.in_flight += 1
            self._held[principal] = held + 1
            if workspace:
                add(self._held_by_workspace, workspace, 1)
            return READY
        return self._wait(principal, workspace)

    def _is_full(self, workspace: str) -> bool:
        return self._held_by_workspace.get(workspace, 0) >= self._per_workspace

    def release(self, principal: str, workspace: str = "") -> None:
        """Give a seat back and pass it on."""
        self.in_flight -= 1
        add(self._held, principal, -1)
        if workspace:
            add(self._held_by_workspace, workspace, -1)
        if self._queues:
            self.pass_on()

    async def _wait(self, principal: str, workspace: str) -> None:
        _, queue = self._queues.setdefault(principal, (workspace, deque()))
        if (
            len(queue) >= self._settings.queue
            or self.waiting >= self._settings.max_waiting
            or self._waiting_by_workspace.get(workspace, 0) >= self._settings.queue
        ):
            if not queue:
                del self._queues[principal]
            raise self.refusal()
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self.waiting += 1
        if workspace:
            add(self._waiting_by_workspace, workspace, 1)
        try:
            async with asyncio.timeout(self._settings.queue_seconds):
                await turn
        except TimeoutError:
            self._give_up(principal, workspace, turn)
            raise self.refusal() from None
        except asyncio.CancelledError:
            self._give_up(principal, workspace, turn)
            raise
        finally:
            self.waiting -= 1
            if workspace:
                add(self._waiting_by_workspace, workspace, -1)

    def _give_up(self, principal: str, workspace: str, turn: asyncio.Future[None]) -> None:
        """Leave the queue; a seat that was given in the same moment goes back."""
        if turn.done() and not turn.cancelled():
            self.release(principal, workspace)
            return
        entry = self._queues.get(principal)
        if entry is not None:
            with contextlib.suppress(ValueError):
                entry[1].remove(turn)
            if not entry[1]:
                del self._queues[principal]

    def pass_on(self) -> None:
        """Hand free seats to waiting principals, one each in turn."""
        for principal in self._next_principals():
            workspace, queue = self._queues.pop(principal)
            turn = queue.popleft()
            if queue:
                self._queues[principal] = (workspace, queue)  # At the end: others come first now.
            if not turn.done():
                self.in_flight += 1
                add(self._held, principal, 1)
                if workspace:
                    add(self._held_by_workspace, workspace, 1)
                turn.set_result(None)

    def _next_principals(self) -> Iterator[str]:
        while self.has_room():
            principal = next(
                (
                    name
                    for name, (workspace, _) in self._queues.items()
                    if self._held.get(name, 0) < self._per_principal
                    and not (workspace and self._is_full(workspace))
                ),
                None,
            )
            if principal is None:
                return
            yield principal

    def refusal(self, retry_after_seconds: int = 0) -> TooManyRequests:
        """Count and return the refusal of a request."""
        self.rejected += 1
        return TooManyRequests(MESSAGE, retry_after_seconds or self._settings.retry_after_seconds)


def add(counts: dict[str, int], name: str, change: int) -> None:
    """Change the number of *name*; one that comes to nothing is not kept."""
    count = counts.get(name, 0) + change
    if count:
        counts[name] = count
    else:
        del counts[name]


class Seat:
    """A seat in a lane for as long as the context lasts."""

    __slots__ = ("_lane", "_principal", "_workspace")

    def __init__(self, lane: Lane, principal: str, workspace: str) -> None:
        self._lane = lane
        self._principal = principal
        self._workspace = workspace

    def __aenter__(self) -> Awaitable[None]:
        return self._lane.take(self._principal, self._workspace)

    def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> Awaitable[None]:
        self._lane.release(self._principal, self._workspace)
        return READY
