"""How a supervisor notices that a process of its group is stuck.

A process that ended is seen by its end. One that is stopped, or whose event loop never returns from
something, holds its connections and answers nobody, and nothing else says so. So each adds one to a
word of memory shared with the supervisor, every second, from its event loop. The supervisor looks
at the words now and then, and ends who has added nothing for long.

Time counts only as the supervisor spent it looking. Everything may have been stopped at once (a
suspended machine, a frozen container, Ctrl-Z), and then no process is more to blame than the
supervisor is: of a pause that it slept through, one look's time counts.

A word that is 0 says that its process has not begun to answer: it beats when it says that it is
ready, at the latest. How long that takes depends on what there is to read, and is not limited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skerry.kit.clock import Clock
from skerry.kit.shared_words import shared_words

BEAT_SECONDS = 1.0
LOOK_SECONDS = 5.0
# No request keeps a loop busy for a hundredth of that, also on a machine with too much to do.
STUCK_SECONDS = 30.0


class SharedBeats:
    """The words of a group of processes; made before they are forked."""

    def __init__(self, processes: int) -> None:
        self._cells = shared_words(processes)

    def of(self, process: int) -> ProcessBeat:
        """Return the word as its process uses it."""
        return ProcessBeat(self._cells, process)

    def counts(self) -> Sequence[int]:
        """Return how often each process has beaten since it was started."""
        return self._cells.tolist()

    def reset(self, process: int) -> None:
        """Say that a process is started anew; nothing may run in its place."""
        self._cells[process] = 0


class ProcessBeat:
    """The word of one process, which is its only writer while it runs."""

    __slots__ = ("_cells", "_own")

    def __init__(self, cells: memoryview, own: int) -> None:
        self._cells = cells
        self._own = own

    async def run(self, clock: Clock) -> None:
        """Beat until cancelled."""
        while True:
            self.beat()
            await clock.sleep(BEAT_SECONDS)

    def beat(self) -> None:
        self._cells[self._own] += 1


class Silence:
    """For how long each process has not beaten while somebody looked; pure."""

    def __init__(
        self,
        processes: int,
        now: float,
        *,
        look_seconds: float = LOOK_SECONDS,
        stuck_seconds: float = STUCK_SECONDS,
    ) -> None:
        self._look_seconds = look_seconds
        self._stuck_seconds = stuck_seconds
        self._counts = [0] * processes
        self._seconds = [0.0] * processes
        self._looked = now

    @property
    def due(self) -> float:
        """When to look next."""
        return self._looked + self._look_seconds

    def look(self, counts: Sequence[int], now: float) -> list[int]:
        """Return who is stuck, given how often each has beaten; the time of these begins anew."""
        # Asleep for longer than it meant to be, the one who looks cannot blame others for that.
        passed = min(now - self._looked, self._look_seconds)
        self._looked = now
        stuck = []
        for process, count in enumerate(counts):
            if count == 0 or count != self._counts[process]:
                self._seconds[process] = 0.0
            else:
                self._seconds[process] += passed
            self._counts[process] = count
            if self._seconds[process] >= self._stuck_seconds:
                self._seconds[process] = 0.0
                stuck.append(process)
        return stuck


# Why a process was started again.
ENDED, STUCK = "ended", "stuck"
_REASONS = (ENDED, STUCK)


class RestartCounts:
    """How often processes were started again; the supervisor writes, every process reads."""

    def __init__(self) -> None:
        self._cells = shared_words(len(_REASONS))

    def add(self, reason: str) -> None:
        self._cells[_REASONS.index(reason)] += 1

    def by_reason(self) -> Mapping[tuple[str, ...], float]:
        """Return the counts by the label of a metric."""
        return {(reason,): self._cells[n] for n, reason in enumerate(_REASONS)}
