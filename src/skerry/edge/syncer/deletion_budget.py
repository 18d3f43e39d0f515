"""The budget that every deletion at the edge passes: asks a person when too much would be gone.

Candidates are proposed as soon as something is found missing, before any of them is acted on, so
that a thousand objects missing from one list are judged together and not one by one. They are
judged when there are more or fewer of them, when something is placed meanwhile, and, while they
are held, by the clock: the window passes without an event.

What was at the edge within the window is remembered in the journal, and is on disk before the
deletion that it is about: a syncer that is restarted, again and again even, deletes no more than
one that is not. A journal that says nothing of it is taken to have been full up to now.

An approval is good for exactly the objects that were shown, by identity: the same names placed
anew and missing again are another question. It is remembered until the last of them is gone. What
was let go is not asked about again while a watch still shows it.

Two hundred objects are at the edge, and by the default budget half of them may go:

    90 are missing from a list        110 of 200 would remain: allowed, and deleted
    20 more within ten minutes        90 of 200 would remain: held, all 20
    the window has passed             90 of 110 would remain: allowed, 20 being less than 55
    or a person approves them         these 20 go, and count no longer against what comes
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from skerry.api.refs import ClusterName, ObjectRef
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.signal import Signal
from skerry.logic.fleet.syncing.deletion_budget import (
    ALLOWED,
    Budget,
    PlacedWindow,
    Verdict,
    Waiting,
    identity_digest,
    verdict,
)
from skerry.logic.fleet.syncing.difference import Budgeted
from skerry.logic.machinery.edges.scope import NAMESPACES

_WINDOW_FACT = "placed-window"
_APPROVED_FACT = "approved/"
# So many candidates that are none any more are kept in order before the order is made anew.
_MIN_STALE = 64

_log = Logger("syncer-deletions")


class _Candidate(NamedTuple):
    """One deletion that waits."""

    # What stands for the object; how many were there, and wanted, just before it was not.
    digest: int
    before: int
    number: int
    # The cluster whose object it is; None for what is shared.
    owner: ClusterName | None


class DeletionBudget:
    """Open, or held with a question to a person."""

    def __init__(self, budget: Budget, clock: Clock, records: SyncRecords) -> None:
        """The numbers are those of *records*, which tells one object from a later one, too."""
        self._budget = budget
        self._clock = clock
        self._records = records
        # What may have to go and was not approved; those there were most objects before first.
        self._candidates: dict[ObjectRef, _Candidate] = {}
        self._by_before: list[tuple[int, int, ObjectRef]] = []
        self._numbers = 0
        self._waiting = Waiting()
        self._owners: Counter[ClusterName] = Counter()
        self._approved = self._approved_before()
        # Deleted, though the edge may still show them.
        self._deleted: set[ObjectRef] = set()
        # At the edge and not to stay: what waits or was approved, and what was deleted.
        self._removing = {ref for ref in self._approved if records.is_present(ref)}
        self._dying: set[ObjectRef] = set()
        # About to be left at the edge on purpose.
        self._released: set[ObjectRef] = set()
        self._approved_name = ""
        self._window = self._remembered()
        self._holding = asyncio.Event()
        self.verdict: Verdict = ALLOWED
        # Sent when the verdict is another one, and when what was held may go.
        self.changed = Signal[[]]()
        self.opened = Signal[[]]()
        records.report_to(self._presence_changed)

    @property
    def candidates(self) -> frozenset[ObjectRef]:
        """What may have to be deleted and was not yet."""
        return frozenset(self._candidates.keys() | self._approved.keys())

    def held(self, limit: int) -> list[ObjectRef]:
        """Return the first of what is held, by name."""
        return [] if self.verdict.allowed else heapq.nsmallest(limit, self._candidates)

    def owners(self, limit: int) -> tuple[ClusterName, ...]:
        """Return whose objects are held; nobody where that is not known, or they are too many."""
        if self.verdict.allowed or "" in self._owners or len(self._owners) > limit:
            return ()
        return tuple(sorted(self._owners))

    def of(self, ref: ObjectRef) -> Budgeted:
        """Tell whether *ref* may be deleted now."""
        if ref in self._approved or ref in self._deleted:
            return "allowed"
        if ref not in self._candidates:
            return "unproposed"
        return "allowed" if self.verdict.allowed else "held"

    def propose(self, refs: Iterable[ObjectRef]) -> None:
        """Say that these may have to go."""
        self._note()
        before, there = self._waiting, self._wanted
        for ref in refs:
            if not (ref in self._candidates or ref in self._deleted):
                self._add(ref, there)
        if self._waiting != before:
            self.judge()

    def withdraw(self, ref: ObjectRef) -> None:
        """Say that *ref* is wanted after all, or gone."""
        self._deleted.discard(ref)
        self._removing.discard(ref)
        self._spend(ref)
        if self._drop(ref):
            self.judge()

    def release(self, ref: ObjectRef) -> None:
        """Say that *ref* will be forgotten and left at the edge: its owner asked for that."""
        self.withdraw(ref)
        if self._records.is_present(ref):
            self._released.add(ref)

    def deleted(self, ref: ObjectRef) -> None:
        """Take note of a deletion that was carried out."""
        if ref not in self._approved and ref not in self._candidates:
            return
        self._drop(ref)
        self._spend(ref)
        self._deleted.add(ref)
        if ref in self._removing:
            self._removing.discard(ref)
            self._dying.add(ref)
        if not self.verdict.allowed:
            self.judge()

    def approve(self, name: str) -> None:
        """Let go what a person approved by the name it was held under."""
        if name != self._approved_name:
            self._approved_name = name
            self.judge()

    def judge(self) -> None:
        """Judge what waits by how things stand now."""
        remaining = self._wanted
        peak = self._window.peak(self._clock.monotonic(), remaining)
        judged = verdict(
            self._budget, self._waiting, peak=max(peak, self._before()), remaining=remaining
        )
        if not judged.allowed and judged.name == self._approved_name:
            self._let_go()
            judged = ALLOWED
        before, self.verdict = self.verdict, judged
        if judged == before:
            return
        if judged.allowed:
            self._holding.clear()
        elif before.allowed:
            self._holding.set()
            _log.error("deletions held", deletions=judged.held, approve=judged.name)
        self.changed.send()
        if judged.allowed:
            self.opened.send()

    async def run(self) -> None:
        """Judge by the clock what is held, until cancelled."""
        while True:
            await self._holding.wait()
            await self._clock.sleep(self._budget.step_seconds)
            self.judge()

    # Candidates.

    def _add(self, ref: ObjectRef, before: int) -> None:
        if self._records.is_present(ref):
            self._removing.add(ref)
        if ref in self._approved:
            return
        record = self._records.placed(ref)
        digest = identity_digest(ref.text, "" if record is None else record.edge_uid)
        owner = None
        if ref.group_resource != NAMESPACES:
            owner = "" if record is None else record.desired.owner
            self._owners[owner] += 1
        self._numbers += 1
        self._candidates[ref] = _Candidate(digest, before, self._numbers, owner)
        self._waiting = self._waiting.plus(digest)
        heapq.heappush(self._by_before, (-before, self._numbers, ref))

    def _drop(self, ref: ObjectRef) -> bool:
        candidate = self._candidates.pop(ref, None)
        if candidate is None:
            return False
        self._waiting = self._waiting.minus(candidate.digest)
        if candidate.owner is not None:
            self._owners[candidate.owner] -= 1
            if not self._owners[candidate.owner]:
                del self._owners[candidate.owner]
        if len(self._by_before) > 2 * len(self._candidates) + _MIN_STALE:
            self._by_before = [(-c.before, c.number, at) for at, c in self._candidates.items()]
            heapq.heapify(self._by_before)
        return True

    def _before(self) -> int:
        """Return the most there was just before any of what waits was unwanted."""
        order = self._by_before
        while order:
            before, number, ref = order[0]
            candidate = self._candidates.get(ref)
            if candidate is not None and candidate.number == number:
                return -before
            heapq.heappop(order)
        return 0

    def _digest(self, ref: ObjectRef) -> int:
        return identity_digest(ref.text, self._records.edge_uid(ref))

    # What is at the edge.

    @property
    def _wanted(self) -> int:
        """How many objects are at the edge and stay there."""
        return self._records.present_count - len(self._removing) - len(self._dying)

    def _presence_changed(self, ref: ObjectRef, present: bool) -> None:
        """Take it that the edge has shown an object, or that a record of one has ended."""
        if present:
            if ref in self._candidates or ref in self._approved:
                self._removing.add(ref)
            if not self.verdict.allowed:
                self.judge()
        elif ref in self._removing or ref in self._dying:
            self._removing.discard(ref)
            self._dying.discard(ref)
        else:
            self._note(gone=1)
            if ref in self._released:
                self._released.discard(ref)
                self._keep(self._window.excused(1))

    def _note(self, gone: int = 0) -> None:
        """Remember how many are there before it is fewer; *gone* have just ceased to be."""
        noted = self._window.noted(self._clock.monotonic(), self._wanted + gone)
        if noted is not self._window:
            self._keep(noted)

    def _keep(self, window: PlacedWindow) -> None:
        self._window = window
        self._records.set_fact(_WINDOW_FACT, window.encode(self._shift()))

    def _remembered(self) -> PlacedWindow:
        now = self._clock.monotonic()
        raw = self._records.fact(_WINDOW_FACT) or ()
        window = PlacedWindow.decode(self._budget.window_seconds, raw, self._shift(), now)
        return window.noted(now, self._wanted)

    def _shift(self) -> float:
        """Return by how much the time of day, which survives us, is ahead of elapsed time."""
        return self._clock.now().timestamp() - self._clock.monotonic()

    # Approvals.

    def _let_go(self) -> None:
        """Approve exactly what waits; whatever comes later is judged anew."""
        _log.info("deletions approved", v=0, deletions=len(self._candidates))
        for ref, candidate in self._candidates.items():
            self._records.set_fact(_approval(candidate.digest), True)
            self._approved[ref] = candidate.digest
        present = len(self._candidates.keys() & self._removing)
        self._candidates.clear()
        self._owners.clear()
        self._by_before.clear()
        self._waiting = Waiting()
        self._keep(self._window.excused(present))

    def _spend(self, ref: ObjectRef) -> bool:
        """Take it that an approval was used, or is not needed any more; tell if there was one."""
        digest = self._approved.pop(ref, None)
        if digest is not None:
            self._records.set_fact(_approval(digest), None)
        return digest is not None

    def _approved_before(self) -> dict[ObjectRef, int]:
        """Return what was approved in an earlier session and is still at the edge."""
        facts = set(self._records.facts(_APPROVED_FACT))
        if not facts:
            return {}
        placed = ((ref, self._digest(ref)) for ref in self._records.all_placed())
        found = {ref: digest for ref, digest in placed if _approval(digest) in facts}
        for spent in facts - set(map(_approval, found.values())):
            self._records.set_fact(spent, None)
        return found


def _approval(digest: int) -> str:
    return f"{_APPROVED_FACT}{digest:032x}"
