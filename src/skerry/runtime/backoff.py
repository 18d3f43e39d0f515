"""How long to wait before trying again: doubling, bounded, jittered."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.kit.ids import IdSource


@dataclass(frozen=True, slots=True)
class Backoff:
    """A schedule of delays; the first is *shortest*, none is longer than *longest*.

    ``jitter`` adds up to that fraction, so that many clients of a server that came back do not
    all arrive in the same millisecond.
    """

    min_seconds: float = 0.005
    # A dead edge comes back in minutes; slower than 30 s looks broken to a person.
    max_seconds: float = 30.0
    jitter: float = 0.0

    def seconds(self, attempt: int, ids: IdSource | None = None) -> float:
        """Return the delay after *attempt* failures (1 after the first)."""
        doubled = self.min_seconds * 2.0 ** min(max(attempt, 1) - 1, 60)
        bounded = min(doubled, self.max_seconds)
        if self.jitter and ids is not None:
            bounded *= 1.0 + self.jitter * ids.fraction()
        return bounded
