"""Verdicts on all destinations of one rollout, kept up at the cost of what changes.

Whoever reads reports puts evidence about slots; a step judges those that have new evidence and
those whose time has come. What is published are sets of slots. A process that starts begins with
the sets that were published last, so no verdict is forgotten; only how long an edge has been well
already is counted anew.

A slot is asked again for one of four reasons: other evidence, another attempt or other terms, that
it was assigned or joined, or that time alone changes the answer (well for long enough, silent for
too long, past its deadline). The last is the heap ``_due``; an entry that was overtaken stays in it
until it comes up, and ``_due_of`` says which one counts.

A verdict belongs to a slot at a revision within an attempt. With either changed it is void: what
was Good at revision 3 says nothing about 4, and a second attempt at 4 must not fail by what the
first one saw. Newcomers are judged too, but into sets of their own (``joined``, ``unfit``): they
may be bad by themselves, and would otherwise speak against a revision that all others run well.

A restart loses times and no verdicts. The sets come back from the status with the reasons of those
that were Bad; how long an edge had been well already was in memory alone and is counted again, so a
slot may become Good later than it would have, and never sooner. That is the side to err on: the
other one would let a wave pass on evidence that nobody has.

Bad stays Bad within an attempt, except for a newcomer. The rollout as a whole must be able to rely
on a failure that it has seen; a newcomer holds up nobody but itself, and may get well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

from pyroaring import BitMap

from skerry.logic.fleet.rollout.spec import RolloutSpec
from skerry.logic.fleet.rollout.state import ROLLING_BACK, SETTLING, State, Verdicts
from skerry.logic.fleet.rollout.verdict import (
    BAD,
    EXCUSED,
    GOOD,
    WAITING,
    Evidence,
    Terms,
    Verdict,
    VerdictRecord,
    judge,
)
from skerry.logic.fleet.rollout.view import AT_REST

# Of those that are Bad, as many as the status names.
_MAX_FAILURES: Final = 5
_MAX_MESSAGE: Final = 256
_NEVER: Final = float("inf")


class Seen(NamedTuple):
    """A slot as slices and reports show it."""

    revision: int
    location: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Result:
    """What is to be published, and after how many seconds there may be more."""

    verdicts: Verdicts
    errors: int
    again: float | None


class Judging:
    """Keeps the verdicts of one rollout."""

    def __init__(self, elapsed: Callable[[str], float]) -> None:
        """*elapsed* returns the seconds since a moment in RFC 3339, by both clocks."""
        self._elapsed = elapsed
        self._spec = RolloutSpec()
        self._state = State(attempt=-1)
        self._since: dict[int, str] = {}
        self._seen: dict[int, Seen] = {}
        self._records: dict[int, VerdictRecord] = {}
        self._dirty: set[int] = set()
        self._due: list[tuple[float, int]] = []
        self._due_of: dict[int, float] = {}
        self._sets: dict[str, BitMap] = {name: BitMap() for name in _SETS}

    def turn(self, spec: RolloutSpec, state: State, published: Verdicts) -> None:
        """Take what a Rollout asks for and where it stands.

        At another attempt everything is judged anew, beginning with what was *published* of it.
        """
        other = spec.judge != self._spec.judge or spec.offline_after != self._spec.offline_after
        if state.attempt != self._state.attempt:
            self._records.clear()
            self._recall(published.good, "Good")
            self._recall(published.bad, "Bad")
            self._recall(published.excused, "Excused")
            self._recall(published.unfit & state.joining, "Bad")
            for failure in published.failures:
                self._name(failure)
            other = True
        since = {slot: each.since for each in state.in_flight for slot in each.slots}
        changed = {slot for slot in since.keys() | self._since.keys()
                   if since.get(slot) != self._since.get(slot)}  # fmt: skip
        changed |= set(state.joining ^ self._state.joining)
        other = other or state.phase != self._state.phase
        self._spec, self._state, self._since = spec, state, since
        self._dirty |= set(self._seen) if other else changed & self._seen.keys()

    def _recall(self, slots: BitMap, verdict: Verdict) -> None:
        for slot in slots:
            self._records[slot] = VerdictRecord(verdict)

    def _name(self, failure: Any) -> None:
        """Remember why a slot was bad, as it was published; a restart must not lose the reason."""
        slot = failure.get("slot")
        known = self._records.get(slot)
        if known is not None:
            reason, message = failure.get("reason") or "", failure.get("message") or ""
            self._records[slot] = VerdictRecord(known.verdict, None, None, reason, message)

    def slots(self) -> set[int]:
        """Return the slots that are known."""
        return set(self._seen)

    def put(self, slot: int, seen: Seen) -> None:
        """Take evidence about a slot; what was thought of it at another revision is void."""
        known = self._seen.get(slot)
        if known != seen:
            if known is not None and known.revision != seen.revision:
                self._records.pop(slot, None)
            self._seen[slot] = seen
            self._dirty.add(slot)

    def drop(self, slot: int) -> None:
        """Take that a slot is no more."""
        if self._seen.pop(slot, None) is not None:
            self._records.pop(slot, None)
            self._dirty.discard(slot)
            self._due_of.pop(slot, None)
            for each in self._sets.values():
                each.discard(slot)

    def step(self, now: float) -> Result:
        """Judge what has changed and what is due at *now*, in seconds that never go back."""
        while self._due and self._due[0][0] <= now:
            due, slot = heappop(self._due)
            if self._due_of.get(slot) == due:
                del self._due_of[slot]
                self._dirty.add(slot)
        for slot in sorted(self._dirty & self._seen.keys()):
            again = self._judge(slot, now)
            if again is not None:
                due = now + max(again, 0.001)
                if due < self._due_of.get(slot, _NEVER):
                    self._due_of[slot] = due
                    heappush(self._due, (due, slot))
        self._dirty.clear()
        while self._due and self._due_of.get(self._due[0][1]) != self._due[0][0]:
            heappop(self._due)
        following = self._due[0][0] - now if self._due else None
        return Result(self._verdicts(), len(self._sets["errors"]), following)

    def _judge(self, slot: int, now: float) -> float | None:
        """Judge one slot; returns after how many seconds it is to be looked at again."""
        seen, evidence = self._seen[slot], self._seen[slot].evidence
        times = [self._edge(slot, evidence)]
        self._mark("settled", slot, evidence.translated)
        self._mark("errors", slot, evidence.fails is None)
        found = self._records.get(slot, VerdictRecord())
        since = self._since.get(slot)
        if self._is_judged(slot, seen, found):
            terms = Terms(self._spec.judge.min_ready, self._spec.judge.deadline)
            flown = self._elapsed(since) if since is not None else 0.0
            before = slot in self._state.unwell_before
            unfit = slot in self._state.joining and found.verdict == BAD
            if unfit:
                found = replace(found, verdict="Excused")
            judged = judge(evidence, found, terms, now, flown, unwell_before=before)
            found = judged.record
            if unfit and found.verdict == EXCUSED:
                found = replace(found, verdict="Bad")
            self._records[slot] = found
            times.append(judged.again)
        elif seen.revision not in (self._state.target, self._state.stable):
            self._records.pop(slot, None)
            found = VerdictRecord()
        # A newcomer that is bad speaks against itself, not against what all others run; and it
        # may get well yet.
        joins = slot in self._state.joining
        target = seen.revision == self._state.target
        self._mark("delivered", slot, target and evidence.delivered)
        for name, verdict in ((_GOOD, GOOD), (_BAD, BAD), (_EXCUSED, EXCUSED)):
            is_so = target and found.verdict == verdict
            self._mark(name, slot, is_so and not (joins and verdict == BAD))
        self._mark("joined", slot, joins and found.verdict in (GOOD, EXCUSED))
        self._mark("unfit", slot, joins and found.verdict == BAD)
        return min((each for each in times if each is not None), default=None)

    def _is_judged(self, slot: int, seen: Seen, found: VerdictRecord) -> bool:
        """Tell whether a verdict on a slot can change now."""
        state = self._state
        if slot in state.joining and seen.revision in (state.stable, state.target):
            return True
        if state.phase in (*AT_REST, ROLLING_BACK, SETTLING) or seen.revision != state.target:
            return False
        # It was not assigned by this attempt unless the status says so.
        return slot in self._since or found.verdict != WAITING

    def _edge(self, slot: int, evidence: Evidence) -> float | None:
        """Note whether an edge is heard of and well; returns when that may change by itself."""
        if evidence.silent_since is None:
            self._mark("absent", slot, False)
            self._mark("unavailable", slot, not evidence.well)
            return None
        silent = self._elapsed(evidence.silent_since) if evidence.silent_since else _NEVER
        left = self._spec.offline_after - silent
        self._mark("absent", slot, left <= 0)
        self._mark("unavailable", slot, False)
        return left if left > 0 else None

    def _mark(self, name: str, slot: int, is_so: bool) -> None:
        found = self._sets[name]
        if is_so:
            found.add(slot)
        else:
            found.discard(slot)

    def _verdicts(self) -> Verdicts:
        named = [*self._sets[_BAD], *self._sets["unfit"]][:_MAX_FAILURES]
        failures = tuple(
            {
                "slot": slot,
                "location": self._seen[slot].location,
                "reason": self._records[slot].reason or "Bad",
                "message": self._records[slot].message[:_MAX_MESSAGE],
            }
            for slot in named
        )
        published = {name: found.copy() for name, found in self._sets.items() if name != "errors"}
        return Verdicts(self._state.attempt, failures=failures, **published)


_GOOD, _BAD, _EXCUSED = "good", "bad", "excused"
_SETS: Final = (
    "good",
    "bad",
    "excused",
    "settled",
    "delivered",
    "joined",
    "unfit",
    "absent",
    "unavailable",
    "errors",
)
