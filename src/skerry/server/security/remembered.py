"""Users by credential, for a while: what a credential was found to mean."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from skerry.kit.clock import Clock
from skerry.server.user import User

MAX_REMEMBERED = 20_000

K = TypeVar("K")


class Remembered(Generic[K]):
    """Users by credential. Bounded: when full it starts over."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._users: dict[K, tuple[User, float]] = {}

    def get(self, credential: K) -> User | None:
        found = self._users.get(credential)
        if found is None or found[1] < self._clock.monotonic():
            return None
        return found[0]

    def __contains__(self, credential: K) -> bool:
        """Tell whether a credential was good a while ago, though perhaps no longer."""
        return credential in self._users

    def clear(self) -> None:
        self._users.clear()

    def put(self, credential: K, user: User, expires: datetime) -> None:
        left = (expires - self._clock.now()).total_seconds()
        if len(self._users) >= MAX_REMEMBERED:
            self._users.clear()
        self._users[credential] = (user, self._clock.monotonic() + min(self._seconds, left))
