"""Seats of priority levels: how many requests of one PriorityLevelConfiguration run at once.

Each level has the part of the server's seats that its shares stand for. Beyond it a level borrows
what others leave idle of the part they lend, up to its own limit; what was lent comes back when it
is free. Requests that find no seat are refused, or wait in the queue of their flow, and flows take
turns. What is exempt is not limited, and takes no seat.

A level limits besides the lanes of ``flow``, which share out the seats between users.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from types import TracebackType

from skerry.api.objects import Raw
from skerry.logic.machinery.flow_schemas import LevelLimits, level_limits, nominal_seats
from skerry.server.lanes import READY, Lane, LaneSettings, Seat


class LevelLane(Lane):
    """The seats of one level; how many it may have depends on what others have."""

    def __init__(self, levels: PriorityLevels, settings: LaneSettings) -> None:
        super().__init__(settings)
        self._levels = levels
        self.nominal = settings.seats
        # Seats that others cannot borrow of this level.
        self.kept = settings.seats

    def limit(self, settings: LaneSettings, nominal: int, kept: int) -> None:
        """Set how many seats there are: *settings* has the most, with everything borrowed."""
        self.resize(settings)
        self.nominal, self.kept = nominal, kept

    def has_room(self) -> bool:
        return self.in_flight < self.nominal or (
            super().has_room() and self._levels.idle_beside(self) > 0
        )

    def release(self, principal: str, workspace: str = "") -> None:
        super().release(principal, workspace)
        self._levels.released(self)


class PriorityLevels:
    """The seats of all levels that limit anything."""

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self._lanes: dict[str, LevelLane] = {}

    def settle(self, levels: Mapping[str, Raw]) -> None:
        """Take over what PriorityLevelConfigurations say now; who holds a seat keeps it."""
        nominal_of = nominal_seats(levels, self._seats)
        before, self._lanes = self._lanes, {}
        for name, level in levels.items():
            limits = level_limits(level)
            if limits is None:
                continue
            nominal = nominal_of[name]
            settings = _settings(limits, nominal, self._seats)
            lane = self._lanes[name] = before.get(name) or LevelLane(self, settings)
            lane.limit(settings, nominal, nominal - limits.lendable(nominal))
        # Who waits may have a seat now, also of a level that there is no more.
        for lane in {**before, **self._lanes}.values():
            lane.pass_on()

    def lane(self, level: str) -> LevelLane | None:
        """Return the seats of *level*; None where it limits nothing."""
        return self._lanes.get(level)

    def idle_beside(self, lane: LevelLane) -> int:
        """Return how many seats *lane* could have more if others kept to what they do not lend."""
        others = sum(
            max(each.in_flight, each.kept) for each in self._lanes.values() if each is not lane
        )
        return self._seats - others - lane.in_flight

    def released(self, by: LevelLane) -> None:
        """Let levels that wait for something to borrow have what became free."""
        for lane in self._lanes.values():
            if lane is not by and lane.waiting:
                lane.pass_on()

    @property
    def rejected(self) -> int:
        """How many requests were refused, of all levels that there are."""
        return sum(lane.rejected for lane in self._lanes.values())


def _settings(limits: LevelLimits, nominal: int, seats: int) -> LaneSettings:
    """Return the size of a level that borrows as much as it may."""
    return LaneSettings(
        min(seats, nominal + limits.borrowed(nominal, seats)),
        share=1.0,
        workspace_share=1.0,
        queue=limits.queue,
        max_waiting=limits.max_waiting,
    )


class SeatOfBoth:
    """A seat of a level for its flow, and then one in a lane, for as long as the context lasts."""

    __slots__ = ("_flow", "_level", "_seat")

    def __init__(self, level: LevelLane, flow: str, seat: Seat) -> None:
        self._level = level
        self._flow = flow
        self._seat = seat

    def __aenter__(self) -> Awaitable[None]:
        taken = self._level.take(self._flow)
        if taken is READY:
            seated = self._seat.__aenter__()
            return seated if seated is READY else self._second(seated)
        return self._both(taken)

    async def _both(self, taken: Awaitable[None]) -> None:
        await taken
        await self._second(self._seat.__aenter__())

    async def _second(self, seated: Awaitable[None]) -> None:
        try:
            await seated
        except BaseException:
            self._level.release(self._flow)
            raise

    def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> Awaitable[None]:
        self._level.release(self._flow)
        return self._seat.__aexit__(exc_type, exc, traceback)
