"""How long ago something was, by two clocks: no jump of the wall clock makes it longer.

A moment that was written down is known by wall time alone. From when a process first meets it, the
seconds that it has seen itself count as well, and the smaller of both is believed. So a clock that
jumps ahead shortens nothing, and a process that starts again takes what was proven before it for
proven.

A soak is stricter, because a jump that is followed by a restart would end it: of the time before a
process met it only what others wrote down of it counts. So it is written down in steps
(``soak_step``), and a restart loses a step and the time that nobody ran.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

# Moments that are remembered; each costs some hundred bytes.
_MAX_ANCHORS: Final = 100_000


# A soak is written down so many times, but neither more often nor less often than this.
_STEPS: Final = 10
_MIN_STEP_SECONDS: Final = 1.0
_MAX_STEP_SECONDS: Final = 60.0


def soak_step(soak: float) -> float:
    """Return after how many seconds more of a soak is written down."""
    return min(max(soak / _STEPS, _MIN_STEP_SECONDS), _MAX_STEP_SECONDS)


def provable(soak: float, passed: float, proven: int) -> int:
    """Return how many seconds of a soak to write down; *proven* as long as no step is over."""
    return int(passed) if passed - proven >= soak_step(soak) else proven


def seconds_until_due(soak: float, passed: float, proven: float) -> float:
    """Return when a soak has to be looked at again: it is over then, or more of it is proven."""
    return max(min(soak, proven + soak_step(soak)) - passed, 0.01)


class _Anchor(NamedTuple):
    """What a moment was when it was first met: seconds that had passed, and the other clock."""

    passed: float
    monotonic: float


class Elapsed:
    """Remembers when this process first met moments."""

    def __init__(self, now: Callable[[], datetime], monotonic: Callable[[], float]) -> None:
        self._now = now
        self._monotonic = monotonic
        self._anchors: OrderedDict[str, _Anchor] = OrderedDict()

    def since(self, moment: str, proven: float | None = None) -> float:
        """Return the seconds since *moment*, in RFC 3339; 0 for what is no time.

        *proven*: how many of them count that this process has not seen; without, all that the wall
        clock says.
        """
        try:
            then = datetime.fromisoformat(moment)
        except ValueError:
            return 0.0
        if then.tzinfo is None:
            return 0.0
        passed = max((self._now() - then).total_seconds(), 0.0)
        here = self._monotonic()
        anchor = self._anchors.get(moment)
        if anchor is None:
            anchor = self._anchors[moment] = _Anchor(passed if proven is None else proven, here)
            if len(self._anchors) > _MAX_ANCHORS:
                self._anchors.popitem(last=False)
        return min(passed, anchor.passed + here - anchor.monotonic)
