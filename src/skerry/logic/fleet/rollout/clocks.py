"""How long ago something was, by two clocks: no jump of the wall clock makes it longer.

A moment that was written down is known by wall time alone. From when a process first meets it, the
seconds that it has seen itself count as well, and the smaller of both is believed. So a clock that
jumps ahead shortens nothing, and a process that starts again takes what was proven before it for
proven.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

# Moments that are remembered; each costs some hundred bytes.
_MAX_ANCHORS: Final = 100_000


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

    def since(self, moment: str) -> float:
        """Return the seconds since *moment*, in RFC 3339; 0 for what is no time."""
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
            anchor = self._anchors[moment] = _Anchor(passed, here)
            if len(self._anchors) > _MAX_ANCHORS:
                self._anchors.popitem(last=False)
        return min(passed, anchor.passed + here - anchor.monotonic)
