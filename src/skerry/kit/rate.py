"""How often something may happen, for what strangers can bring about: token buckets."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

# More names than this are somebody's invention; whoever was seen longest ago starts afresh.
_MAX_NAMES: Final = 1024


class RateLimit:
    """Allows *burst* at once and *per_second* on average; counts what it did not allow."""

    __slots__ = ("_burst", "_left", "_per_second", "_seen", "suppressed")

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = self._left = burst
        self._seen = 0.0
        self.suppressed = 0

    def allows(self, now: float) -> bool:
        """Tell whether one more may happen at *now*, seconds of a monotonic clock."""
        self._left = min(self._burst, self._left + (now - self._seen) * self._per_second)
        self._seen = now
        if self._left < 1:
            self.suppressed += 1
            return False
        self._left -= 1
        return True

    def taken(self) -> int:
        """Return how many were not allowed since this was last asked."""
        suppressed, self.suppressed = self.suppressed, 0
        return suppressed


class RateLimits:
    """A limit for each name, of a bounded number of names."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._limits: dict[Hashable, RateLimit] = {}

    def of(self, name: Hashable) -> RateLimit:
        """Return the limit of *name*."""
        found = self._limits.pop(name, None)
        if found is None:
            if len(self._limits) >= _MAX_NAMES:
                del self._limits[next(iter(self._limits))]
            found = RateLimit(self._per_second, self._burst)
        self._limits[name] = found
        return found
