"""The budget that every deletion at the edge passes: counts them, and stops when it is too many.

Candidates are proposed as soon as something is found missing, before any of them is acted on, so
that a thousand objects missing from one list are judged together and not one by one.

An approval is good for exactly the objects that were shown, by identity: the same names placed
anew and missing again are another question. What was let go is not asked about again while a
watch still shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from skerry.api.refs import ObjectRef
from skerry.kit.clock import Clock
from skerry.kit.log import Logger
from skerry.kit.signal import Signal
from skerry.logic.fleet.syncing.deletion_budget import Budget, Verdict, verdict
from skerry.logic.fleet.syncing.difference import Budgeted

_log = Logger("syncer-deletions")


class DeletionBudget:
    """Open, or held with a question to a person; ``changed`` is sent when that changes."""

    def __init__(self, budget: Budget, clock: Clock, identity: Callable[[ObjectRef], str]) -> None:
        """*identity* tells one object from a later one of the same name."""
        self._budget = budget
        self._clock = clock
        self._identity = identity
        self._candidates: dict[ObjectRef, str] = {}
        # Deleted, though the edge may still show them.
        self._deleted: set[ObjectRef] = set()
        self._recent: deque[float] = deque()
        self._placed = 0
        self._approved_name = ""
        self._approved: set[ObjectRef] = set()
        self.verdict = Verdict(True)
        self.changed = Signal[[]]()

    @property
    def candidates(self) -> frozenset[ObjectRef]:
        """What may have to be deleted and was not yet."""
        return frozenset(self._candidates)

    def of(self, ref: ObjectRef) -> Budgeted:
        """Tell whether *ref* may be deleted now."""
        if ref in self._approved or ref in self._deleted:
            return "allowed"
        if ref not in self._candidates:
            return "unproposed"
        return "allowed" if self.verdict.allowed else "held"

    def propose(self, refs: Iterable[ObjectRef], placed: int) -> None:
        """Say that these may have to go, of *placed* objects there are."""
        before = len(self._candidates)
        for ref in refs:
            if ref not in self._candidates and ref not in self._deleted:
                self._candidates[ref] = f"{ref.text} {self._identity(ref)}"
        if not self._recent:
            self._placed = max(placed, len(self._candidates))
        if len(self._candidates) != before:
            self._judge()

    def withdraw(self, ref: ObjectRef) -> None:
        """Say that *ref* is wanted after all, or gone."""
        self._approved.discard(ref)
        self._deleted.discard(ref)
        if self._candidates.pop(ref, None) is not None:
            self._judge()

    def deleted(self, ref: ObjectRef) -> None:
        """Count a deletion that was carried out."""
        if self._candidates.pop(ref, None) is not None:
            self._deleted.add(ref)
            if ref not in self._approved:
                self._recent.append(self._clock.monotonic())
            self._approved.discard(ref)

    def approve(self, name: str) -> None:
        """Let go what a person approved by the name it was held under."""
        if name != self._approved_name:
            self._approved_name = name
            self._judge()

    def _judge(self) -> None:
        horizon = self._clock.monotonic() - self._budget.window_seconds
        while self._recent and self._recent[0] < horizon:
            self._recent.popleft()
        waiting = self._candidates.keys() - self._approved
        judged = verdict(
            self._budget,
            placed=self._placed,
            recent=len(self._recent),
            pending=[self._candidates[ref] for ref in waiting],
            approved=self._approved_name,
        )
        if judged.allowed and not self.verdict.allowed and self._approved_name == self.verdict.name:
            # Exactly what was shown is approved; whatever comes later is judged anew.
            self._approved |= waiting
            _log.info("deletions approved", v=0, deletions=len(waiting))
        if judged.allowed != self.verdict.allowed or judged.name != self.verdict.name:
            if not judged.allowed:
                _log.error("deletions held", deletions=len(waiting), approve=judged.name)
            self.verdict = judged
            self.changed.send()
