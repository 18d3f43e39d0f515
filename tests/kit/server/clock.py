from __future__ import annotations

from datetime import UTC, datetime, timedelta


class HandClock:
    """A clock that moves on demand."""

    def __init__(self, moment: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
