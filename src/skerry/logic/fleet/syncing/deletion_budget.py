"""How much may be deleted at an edge before a person is asked.

Removing very much within a short time is sometimes meant and sometimes the worst mistake there is.
Evidence cannot tell which: the mailbox may have been emptied in perfect order. So there is a
budget, and whoever means it approves exactly the objects that are shown.

What counts is net shrinkage: the most that was at the edge and wanted there within the window, less
what would remain. Objects that come and go, by the same names or by others, leave as much as there
was, so churn is never held however long it lasts; and a mass deletion is one, whether it comes at
once or in small portions, and however much is placed and deleted again meanwhile.

Two things follow. What waits to be deleted is compared with what there was just before it was
unwanted, however long ago that is: a hold does not end because nobody looked for ten minutes, but
what was deleted before it no longer counts then. And one set of objects may be exchanged for
another as large; but the old ones are let go only when the edge has confirmed the new ones.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from skerry.api.edge import APPROVE_DELETIONS

# A window is remembered in so many steps; it is longer by at most one of them, never shorter.
STEPS = 60
_SPACE = 1 << 128


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be deleted within a window without asking: whichever is more."""

    # A whole small placement is removed in one go every day; ask above that.
    count: int = 50
    percent: int = 50
    # Long enough that a slow mass deletion is one, short enough to be forgotten by the next day.
    window_seconds: float = 600.0

    def limit(self, placed: int) -> int:
        """Return how many of *placed* objects may go within one window."""
        return max(self.count, placed * self.percent // 100)

    @property
    def step_seconds(self) -> float:
        """How much later than the window's end it may be noticed that it has passed."""
        return self.window_seconds / STEPS


class Sample(NamedTuple):
    """So many objects were at the edge, and wanted there, until then."""

    until: float
    placed: int


@dataclass(frozen=True, slots=True)
class PlacedWindow:
    """The most that was at the edge within a window.

    Of all that was ever noted only what can still become the most is kept: later samples are
    smaller ones, and of one step there is one. So there are never more than ``STEPS`` + 1 of them.
    Numbers must be noted before they fall; a number that rises is the present one's business.
    """

    seconds: float
    samples: tuple[Sample, ...] = ()

    def noted(self, now: float, placed: int) -> PlacedWindow:
        """Return the window after *placed* objects were there until *now*; itself if no news."""
        step = self.seconds / STEPS
        until = math.ceil(now / step) * step
        first = self._first(now)
        last = len(self.samples)
        while last > first and self.samples[last - 1].placed <= placed:
            last -= 1
        kept = self.samples[first:last]
        if not kept or kept[-1].until < until:
            kept = (*kept, Sample(until, placed))
        return self if kept == self.samples else replace(self, samples=kept)

    def peak(self, now: float, placed: int) -> int:
        """Return the most that was there within the window; *placed* are there now."""
        first = self._first(now)
        return max(placed, self.samples[first].placed if first < len(self.samples) else 0)

    def excused(self, count: int) -> PlacedWindow:
        """Return the window as if *count* objects had never been there: their going was meant."""
        fewer = (Sample(until, placed - count) for until, placed in self.samples)
        return replace(self, samples=tuple(sample for sample in fewer if sample.placed > 0))

    def encode(self, shift: float) -> list[list[float]]:
        """Return the samples as JSON can hold them, on a clock that is ahead by *shift*."""
        return [[until + shift, placed] for until, placed in self.samples]

    @classmethod
    def decode(
        cls, seconds: float, raw: Iterable[Sequence[float]], shift: float, now: float
    ) -> PlacedWindow:
        """Return what ``encode`` made *raw* of; what seems to be later than *now* is of now.

        A clock that was put back makes the window longer that way, and one put forward shorter.
        """
        window = cls(seconds)
        for until, placed in raw:
            window = window.noted(min(until - shift, now), int(placed))
        return window

    def _first(self, now: float) -> int:
        """Return the position of the first sample that is not too old."""
        oldest = now - self.seconds
        return next(
            (place for place, sample in enumerate(self.samples) if sample.until >= oldest),
            len(self.samples),
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether deletions may go on, and under which name a person can approve those that wait."""

    allowed: bool
    name: str = ""
    # How many wait, of how many that were there within the window, and how many would remain.
    held: int = 0
    peak: int = 0
    remaining: int = 0
    limit: int = 0


ALLOWED = Verdict(True)


def question(budget: Budget, verdict: Verdict, edge: str) -> str:
    """Return what a person is to be asked about the *edge*; empty when nothing is held."""
    if verdict.allowed:
        return ""
    return (
        f"{verdict.held} deletions are held: {verdict.remaining} of {verdict.peak} objects that "
        f"were here within {budget.window_seconds:g} s would remain, and {verdict.limit} may go "
        f"without asking; to see them and let them go: skerry edge approve-deletions {edge}, "
        f"which annotates the SyncerConfig with {APPROVE_DELETIONS}={verdict.name}"
    )


def verdict(budget: Budget, waiting: Waiting, *, peak: int, remaining: int) -> Verdict:
    """Judge the deletions that wait: with them *remaining* objects are left, and there were *peak*.

    Where nothing waits nothing is held.
    """
    limit = budget.limit(peak)
    if not waiting.count or peak - remaining <= limit:
        return ALLOWED
    return Verdict(False, waiting.name, waiting.count, peak, remaining, limit)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Deletions that wait, as far as a name for all of them needs it; order does not matter.

    The sum of the members' digests stands for them, so that one more or less costs the same
    however many there are.
    """

    count: int = 0
    total: int = 0

    def plus(self, digest: int) -> Waiting:
        """Return this with one more."""
        return Waiting(self.count + 1, (self.total + digest) % _SPACE)

    def minus(self, digest: int) -> Waiting:
        """Return this with one less."""
        return Waiting(self.count - 1, (self.total - digest) % _SPACE)

    @property
    def name(self) -> str:
        """What a person approves: it stands for exactly these."""
        text = f"{self.count} {self.total:032x}".encode()
        return hashlib.blake2b(text, digest_size=5).hexdigest()


def identity_digest(text: str, uid: str) -> int:
    """Return what stands for one object at the edge and no later one of the same name."""
    made = hashlib.blake2b(f"{text} {uid}".encode(), digest_size=16)
    return int.from_bytes(made.digest())
