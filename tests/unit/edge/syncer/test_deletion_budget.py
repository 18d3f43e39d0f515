"""Deletions in numbers: churn let be, shrinkage held, approved, remembered."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import settings as settings_of
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skerry.api.refs import ObjectRef
from skerry.edge.syncer.deletion_budget import DeletionBudget
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.kit.clock import Clock, LoopClock
from skerry.logic.fleet.syncing.deletion_budget import Budget
from skerry.logic.fleet.syncing.recorded import DownsyncRecord, placed_key
from skerry.logic.fleet.syncing.wanted import Desired
from tests.kit.chain.inline import inline
from tests.kit.sim.loop import virtual

REFS = [ObjectRef("", "", "configmaps", "shop", f"page-{number:03}") for number in range(200)]
LIMIT = 10
BUDGET = Budget(LIMIT, 1)
NOWHERE = Path("/nonexistent/journal")  # never flushed, so never opened


class Edge:
    """What a syncer's executor tells the budget, and what the edge has."""

    def __init__(self, budget: Budget = BUDGET, clock: Clock | None = None) -> None:
        self.limits = budget
        self.clock: Clock = clock or LoopClock()
        self.journal = Journal(NOWHERE, offload=inline)
        self.lives = 0
        self.changes = self.openings = 0
        self.start()

    def start(self) -> None:
        """Begin a session on what the journal remembers."""
        self.records = SyncRecords(self.journal)
        self.budget = DeletionBudget(self.limits, self.clock, self.records)
        self.budget.changed.connect(self._changed)
        self.budget.opened.connect(self._opened)

    def _changed(self) -> None:
        self.changes += 1

    def _opened(self) -> None:
        self.openings += 1

    def place(self, *refs: ObjectRef) -> None:
        """Have these at the edge, each as an object that was never there before."""
        for ref in refs:
            self.lives += 1
            record = DownsyncRecord(Desired("v1", {}, "m", 1), edge_uid=f"u{self.lives}")
            self.budget.withdraw(ref)
            self.records.set_placed(ref, record)

    def delete(self, ref: ObjectRef) -> None:
        """Delete what is allowed, as a worker does."""
        self.budget.propose((ref,))
        assert self.budget.of(ref) == "allowed"
        self.budget.deleted(ref)

    def gone(self, ref: ObjectRef) -> None:
        """Take it that the edge does not show it any more."""
        self.budget.withdraw(ref)
        self.records.put(placed_key(ref), None)


def held(count: int = len(REFS)) -> Edge:
    """Return an edge whose objects would all have to go."""
    edge = Edge()
    edge.place(*REFS[:count])
    edge.budget.propose(REFS[:count])
    assert not edge.budget.verdict.allowed
    return edge


def approved() -> Edge:
    """Return one that was asked to let them go."""
    edge = held()
    edge.budget.approve(edge.budget.verdict.name)
    assert edge.budget.verdict.allowed
    return edge


@virtual
async def test_asking_about_an_object_does_not_make_it_a_candidate() -> None:
    edge = Edge()
    edge.place(*REFS)
    assert {edge.budget.of(ref) for ref in REFS} == {"unproposed"}
    assert not edge.budget.candidates
    assert edge.changes == 0


@virtual
async def test_few_candidates_are_allowed_and_one_too_many_holds_all_that_wait() -> None:
    edge = Edge()
    edge.place(*REFS)
    edge.budget.propose(REFS[:LIMIT])
    assert {edge.budget.of(ref) for ref in REFS[:LIMIT]} == {"allowed"}
    edge.budget.propose(REFS[: LIMIT + 1])
    assert {edge.budget.of(ref) for ref in REFS[: LIMIT + 1]} == {"held"}
    assert edge.budget.held(3) == REFS[:3]
    assert (edge.changes, edge.openings) == (1, 0)
    edge.budget.withdraw(REFS[LIMIT])
    assert {edge.budget.of(ref) for ref in REFS[:LIMIT]} == {"allowed"}
    assert edge.budget.of(REFS[LIMIT]) == "unproposed"
    assert (edge.changes, edge.openings) == (2, 1)


@virtual
async def test_what_is_placed_and_deleted_again_and_again_is_never_held() -> None:
    edge = Edge()
    edge.place(*REFS)
    for _ in range(50):
        for ref in REFS[:LIMIT]:
            edge.delete(ref)
            edge.gone(ref)
        edge.place(*REFS[:LIMIT])
        await asyncio.sleep(1)
    assert edge.changes == 0


@virtual
async def test_slow_deletion_is_one_until_its_window_has_passed_without_any_event() -> None:
    edge = Edge()
    edge.place(*REFS)
    judging = asyncio.create_task(edge.budget.run())
    for ref in REFS[:LIMIT]:
        edge.delete(ref)
        edge.gone(ref)
        await asyncio.sleep(30)
    edge.budget.propose((REFS[LIMIT],))
    assert edge.budget.of(REFS[LIMIT]) == "held"
    await asyncio.sleep(BUDGET.window_seconds)
    assert edge.budget.of(REFS[LIMIT]) == "allowed"
    assert edge.openings == 1
    judging.cancel()


@virtual
async def test_what_is_placed_meanwhile_lets_go_what_was_held() -> None:
    edge = Edge()
    edge.place(*REFS[:100])
    edge.budget.propose(REFS[: LIMIT + 5])
    assert edge.budget.of(REFS[0]) == "held"
    edge.place(*REFS[100:104])
    assert edge.budget.of(REFS[0]) == "held"
    edge.place(REFS[104])
    assert edge.budget.of(REFS[0]) == "allowed"


@virtual
async def test_objects_the_edge_has_not_confirmed_replace_nothing() -> None:
    edge = Edge()
    edge.place(*REFS[:100])
    for ref in REFS[100:]:
        edge.records.set_placed(ref, DownsyncRecord(Desired("v1", {}, "m", 1)))
    edge.budget.propose(REFS[:100])
    assert edge.budget.of(REFS[0]) == "held"


@virtual
async def test_a_restart_forgets_neither_what_was_there_nor_what_was_deleted() -> None:
    edge = Edge()
    edge.place(*REFS)
    for ref in REFS[:LIMIT]:
        edge.delete(ref)
        edge.gone(ref)
    for _ in range(3):
        edge.start()
        edge.budget.propose((REFS[LIMIT],))
        assert edge.budget.of(REFS[LIMIT]) == "held"
        await asyncio.sleep(60)
    await asyncio.sleep(BUDGET.window_seconds)
    edge.start()
    edge.budget.propose((REFS[LIMIT],))
    assert edge.budget.of(REFS[LIMIT]) == "allowed"


@virtual
async def test_a_journal_from_before_there_was_a_window_counts_from_what_is_there() -> None:
    edge = Edge()
    edge.place(*REFS)
    edge.records.set_fact("placed-window", None)
    edge.start()
    edge.budget.propose(REFS[: LIMIT + 1])
    assert edge.budget.of(REFS[0]) == "held"


@virtual
async def test_what_was_approved_is_not_held_again_while_the_edge_still_shows_it() -> None:
    edge = approved()
    before = edge.changes
    for ref in REFS:
        edge.delete(ref)
    # A watch that lags behind shows them all once more.
    edge.budget.propose(REFS)
    assert all(edge.budget.of(ref) == "allowed" for ref in REFS)
    assert edge.budget.verdict.allowed
    for ref in REFS:
        edge.gone(ref)
    assert edge.changes == before


@virtual
async def test_an_approval_is_good_for_exactly_what_was_shown() -> None:
    edge = Edge()
    edge.place(*REFS)
    edge.budget.propose(REFS[:100])
    shown = edge.budget.verdict.name
    edge.budget.propose(REFS[100:])
    edge.budget.approve(shown)
    assert edge.budget.of(REFS[0]) == "held", "more is held than was shown"
    for ref in REFS[100:]:
        edge.budget.withdraw(ref)
    assert edge.budget.of(REFS[0]) == "allowed", "exactly what was shown"
    edge.budget.propose(REFS[100:])
    assert edge.budget.of(REFS[0]) == "allowed"
    assert edge.budget.of(REFS[100]) == "held"


@virtual
async def test_an_approval_survives_a_restart_for_what_is_left_of_it_and_no_longer() -> None:
    edge = approved()
    for ref in REFS[:100]:
        edge.delete(ref)
        edge.gone(ref)
    edge.start()
    edge.budget.propose(REFS[100:])
    assert {edge.budget.of(ref) for ref in REFS[100:]} == {"allowed"}
    for ref in REFS[100:]:
        edge.delete(ref)
        edge.gone(ref)
    assert edge.records.facts("approved/") == []


@virtual
async def test_an_approval_ends_when_the_object_is_wanted_again() -> None:
    edge = approved()
    edge.start()
    for ref in REFS:
        edge.budget.withdraw(ref)
    edge.budget.propose(REFS)
    assert edge.budget.of(REFS[0]) == "held"


@virtual
async def test_what_is_wanted_again_and_unwanted_once_more_is_judged_anew() -> None:
    edge = approved()
    for ref in REFS:
        edge.delete(ref)
        edge.gone(ref)
    edge.place(*REFS)
    edge.budget.propose(REFS)
    assert edge.budget.of(REFS[0]) == "held"
    edge.budget.approve(edge.budget.verdict.name)
    assert edge.budget.of(REFS[0]) == "allowed"


@virtual
async def test_what_is_left_at_the_edge_on_purpose_is_no_shrinkage() -> None:
    edge = Edge()
    edge.place(*REFS)
    for ref in REFS[:100]:
        edge.budget.release(ref)
        edge.records.put(placed_key(ref), None)
    edge.budget.propose(REFS[100 : 100 + LIMIT])
    assert edge.budget.of(REFS[100]) == "allowed"


@virtual
async def test_whose_objects_are_held_is_known_when_it_is_known_of_all() -> None:
    edge = Edge()
    edge.place(*REFS)
    edge.budget.propose(REFS[:50])
    assert edge.budget.owners(5) == (), "nobody knows"
    for ref in REFS[:50]:
        edge.budget.withdraw(ref)
    for number, ref in enumerate(REFS):
        wanted = Desired("v1", {}, "m", 1, owner=f"tenant-{number % 2}")
        edge.records.set_placed(ref, DownsyncRecord(wanted, edge_uid="u"))
    edge.budget.propose(REFS)
    assert edge.budget.owners(5) == ("tenant-0", "tenant-1")
    assert edge.budget.owners(1) == ()
    for ref in REFS[::2]:
        edge.budget.withdraw(ref)
    assert edge.budget.owners(5) == ("tenant-1",)
    edge.budget.approve(edge.budget.verdict.name)
    assert edge.budget.owners(5) == ()


class Hands:
    """A clock that stands still until it is moved; elapsed time begins anew with each process."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.since = 0.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return 77.0 + self.elapsed - self.since

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


members = st.sets(st.integers(0, 39), min_size=1, max_size=25)


class Histories(RuleBasedStateMachine):
    """Anything placed, unwanted, wanted again, deleted, approved and restarted in any order.

    Kept beside it: how many objects were wanted and there at every moment, less those whose going
    was approved. What the budget says must follow from that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hands = Hands()
        self.edge = Edge(Budget(4, 30, 600.0), self.hands)
        self.wanted: set[ObjectRef] = set()
        # Unwanted, with how many were wanted and there just before.
        self.waiting: dict[ObjectRef, int] = {}
        self.approved: set[ObjectRef] = set()
        self.going: set[ObjectRef] = set()
        self.history: list[tuple[float, int]] = []

    def _note(self) -> None:
        self.history.append((self.hands.elapsed, len(self.wanted)))

    def _allowed(self, seconds: float) -> bool:
        since = self.hands.elapsed - seconds
        within = [count for time, count in self.history if time >= since]
        peak = max([len(self.wanted), *within, *self.waiting.values()])
        return peak - len(self.wanted) <= max(4, peak * 30 // 100)

    @rule(numbers=members)
    def place(self, numbers: set[int]) -> None:
        taken = self.wanted | self.waiting.keys() | self.approved | self.going
        fresh = sorted({REFS[number] for number in numbers} - taken)
        self.edge.place(*fresh)
        self.wanted |= set(fresh)

    @rule(numbers=members)
    def unwant(self, numbers: set[int]) -> None:
        refs = {REFS[number] for number in numbers} & self.wanted
        self._note()
        self.edge.budget.propose(refs)
        self.waiting |= dict.fromkeys(refs, len(self.wanted))
        self.wanted -= refs

    @rule(numbers=members)
    def want_again(self, numbers: set[int]) -> None:
        for ref in {REFS[number] for number in numbers} & (self.waiting.keys() | self.approved):
            self.edge.budget.withdraw(ref)
            self.waiting.pop(ref, None)
            self.approved.discard(ref)
            self.wanted.add(ref)

    @rule(limit=st.integers(1, 30))
    def delete(self, limit: int) -> None:
        unwanted = sorted(self.waiting.keys() | self.approved)
        for ref in [ref for ref in unwanted if self.edge.budget.of(ref) == "allowed"][:limit]:
            if ref in self.waiting:
                assert self._allowed(600.0)
            self.edge.delete(ref)
            self.waiting.pop(ref, None)
            self.approved.discard(ref)
            self.going.add(ref)

    @rule()
    def vanish(self) -> None:
        for ref in sorted(self.going):
            self.edge.gone(ref)
        self.going.clear()

    @rule(seconds=st.sampled_from([1.0, 30.0, 299.0, 601.0]))
    def pass_time(self, seconds: float) -> None:
        self._note()
        self.hands.elapsed += seconds
        self.edge.budget.judge()

    @rule(stale=st.booleans())
    def approve(self, stale: bool) -> None:
        budget = self.edge.budget
        if stale or budget.verdict.allowed:
            budget.approve("0123456789")
            return
        budget.approve(budget.verdict.name)
        count = len(self.waiting)
        self.approved |= self.waiting.keys()
        self.waiting.clear()
        self.history = [(time, number - count) for time, number in self.history]

    @rule()
    def restart(self) -> None:
        self.vanish()
        self.hands.since = self.hands.elapsed
        # What waits is known as wanted until it is found missing again.
        full = len(self.wanted) + len(self.waiting)
        self.edge.start()
        self.history.append((self.hands.elapsed, full))
        self.edge.budget.propose([*self.waiting, *self.approved])
        self.waiting = dict.fromkeys(self.waiting, full)

    @invariant()
    def exactly_what_was_shown_is_approved(self) -> None:
        assert set(self.edge.budget._approved) == self.approved

    @invariant()
    def nothing_is_held_without_a_loss(self) -> None:
        budget = self.edge.budget
        if not budget.verdict.allowed:
            assert set(budget.held(1000)) == self.waiting.keys()
            # The window is remembered in steps, and once more in steps by each restart.
            assert not self._allowed(660.0)


TestHistories = Histories.TestCase
TestHistories.settings = settings_of(max_examples=150, stateful_step_count=40, deadline=None)
