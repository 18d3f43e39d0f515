"""How much may be deleted at an edge before a person is asked.

Removing very much within a short time is sometimes meant and sometimes the worst mistake there is.
Evidence cannot tell which: the mailbox may have been emptied in perfect order. So there is a
budget, counted over a window, and whoever means it approves exactly the objects that are shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether deletions may go on, and under which name a person can approve them."""

    allowed: bool
    name: str = ""
    message: str = ""


_ALLOWED = Verdict(True)


def verdict(
    budget: Budget, *, placed: int, recent: int, pending: Sequence[str], approved: str
) -> Verdict:
    """Judge *pending* deletions after *recent* ones, of what was *placed* at the window's start.

    Each is named by what makes it this very object; the name to approve stands for all of them.
    """
    waiting = sorted(pending)
    if recent + len(waiting) <= budget.limit(placed):
        return _ALLOWED
    name = hashlib.blake2b("\n".join(waiting).encode(), digest_size=5).hexdigest()
    if approved == name:
        return _ALLOWED
    message = (
        f"{len(waiting)} deletions are held, after {recent} of {placed} objects within "
        f"{budget.window_seconds:g} s; to let these go, annotate the SyncerConfig with "
        f"edge.kcp.io/approve-deletions={name}"
    )
    return Verdict(False, name, message)
