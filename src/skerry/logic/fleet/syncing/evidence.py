"""When absence may be believed.

Four things must hold before something that is missing in the mailbox counts as removed: the
mailbox's type was read completely in this session, from the store that once named the object, at
a later revision, and the SyncerConfig is there to say what belongs. A hub that was wiped, restored
or mistaken for another fails the second; a partition fails the first.

Then there is the budget. Removing very much within a short time is sometimes meant and sometimes
the worst mistake there is; the syncer cannot tell which, so it asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from skerry.logic.fleet.syncing.records import Placed


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about the mailbox as a witness, for one type."""

    # Everything of the type was read, and is being followed.
    synced: bool = False
    # The SyncerConfig was read and exists.
    configured: bool = False
    # The store answering now is the one we know, or one a person accepted.
    trusted: bool = False
    store: str = ""
    revision: int = 0
    config_revision: int = 0
    # What the budget says about deletions now.
    within_budget: bool = True


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why an absence is not believed."""

    reason: str
    message: str


_AWAY = Doubt("HubAway", "the mailbox has not been read completely")
_UNCONFIGURED = Doubt("NoSyncerConfig", "the mailbox has no SyncerConfig")
_OTHER_STORE = Doubt(
    "HubIdentityChanged", "the hub's store is another one than the one this was placed from"
)
_NOT_LATER = Doubt("NotNewer", "the mailbox was read at no later revision than the object")


def doubt(record: Placed, evidence: Evidence, *, covered: bool) -> Doubt | None:
    """Return why the absence of a placed object is not believed; None when it is.

    *covered* tells whether the SyncerConfig still names the object's place: then the mailbox must
    have been read after it was last seen there, else the SyncerConfig must have changed since.
    """
    if not evidence.configured:
        return _UNCONFIGURED if evidence.synced else _AWAY
    if not evidence.trusted:
        return _OTHER_STORE
    if covered and not evidence.synced:
        return _AWAY
    if record.store != evidence.store:
        return None  # revisions of another store compare with nothing; a person accepted this one
    later = (
        evidence.revision > record.desired.revision
        if covered
        else evidence.config_revision > record.config_revision
    )
    return None if later else _NOT_LATER


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

    Each is told by whatever makes it this very object; the name to approve stands for all of them.
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
