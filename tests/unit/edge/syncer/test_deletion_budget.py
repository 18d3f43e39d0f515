"""Deletions in numbers: held, approved, and then let be."""

from __future__ import annotations

import asyncio

from skerry.api.refs import ObjectRef
from skerry.edge.syncer.deletion_budget import DeletionBudget
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.syncing.deletion_budget import Budget
from tests.kit.sim.loop import virtual

REFS = [ObjectRef("", "", "configmaps", "shop", f"page-{number:03}") for number in range(200)]
LIMIT = 10


class Calls:
    """Counts how often the budget had something new to say."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def budget_of(calls: Calls, lives: dict[ObjectRef, int] | None = None) -> DeletionBudget:
    which = lives if lives is not None else dict.fromkeys(REFS, 1)
    budget = DeletionBudget(Budget(LIMIT, 1), LoopClock(), lambda ref: str(which[ref]))
    budget.changed.connect(calls)
    return budget


def approved(calls: Calls, lives: dict[ObjectRef, int] | None = None) -> DeletionBudget:
    """Return a budget that held all of these and was asked to let them go."""
    budget = budget_of(calls, lives)
    budget.propose(REFS, len(REFS))
    assert not budget.verdict.allowed
    budget.approve(budget.verdict.name)
    assert budget.verdict.allowed
    return budget


@virtual
async def test_asking_about_an_object_does_not_make_it_a_candidate() -> None:
    calls = Calls()
    budget = budget_of(calls)
    assert {budget.of(ref) for ref in REFS} == {"unproposed"}
    assert not budget.candidates
    assert calls.times == 0


@virtual
async def test_few_candidates_are_allowed_and_one_too_many_holds_all_that_wait() -> None:
    calls = Calls()
    budget = budget_of(calls)
    budget.propose(REFS[:LIMIT], len(REFS))
    assert {budget.of(ref) for ref in REFS[:LIMIT]} == {"allowed"}
    budget.propose(REFS[: LIMIT + 1], len(REFS))
    assert {budget.of(ref) for ref in REFS[: LIMIT + 1]} == {"held"}
    assert calls.times == 1
    budget.withdraw(REFS[LIMIT])
    assert {budget.of(ref) for ref in REFS[:LIMIT]} == {"allowed"}
    assert budget.of(REFS[LIMIT]) == "unproposed"
    assert calls.times == 2


@virtual
async def test_deletions_count_until_their_window_has_passed() -> None:
    budget = budget_of(Calls())
    for ref in REFS[:LIMIT]:
        budget.propose((ref,), len(REFS))
        assert budget.of(ref) == "allowed"
        budget.deleted(ref)
    budget.propose((REFS[LIMIT],), len(REFS))
    assert budget.of(REFS[LIMIT]) == "held"
    await asyncio.sleep(601)
    budget.propose((REFS[LIMIT + 1],), len(REFS))
    assert budget.of(REFS[LIMIT]) == "allowed"


@virtual
async def test_what_was_approved_is_not_held_again_while_the_edge_still_shows_it() -> None:
    calls = Calls()
    budget = approved(calls)
    before = calls.times
    for ref in REFS:
        assert budget.of(ref) == "allowed"
        budget.deleted(ref)
    # A watch that lags behind shows them all once more.
    budget.propose(REFS, len(REFS))
    assert all(budget.of(ref) == "allowed" for ref in REFS)
    assert budget.verdict.allowed
    for ref in REFS:
        budget.withdraw(ref)
    assert calls.times == before


@virtual
async def test_what_is_wanted_again_and_unwanted_once_more_is_judged_anew() -> None:
    lives = dict.fromkeys(REFS, 1)
    budget = approved(Calls(), lives)
    for ref in REFS:
        budget.deleted(ref)
        budget.withdraw(ref)
        lives[ref] = 2
    budget.propose(REFS, len(REFS))
    assert not budget.verdict.allowed
    assert budget.of(REFS[0]) == "held"
    budget.approve(budget.verdict.name)
    assert budget.of(REFS[0]) == "allowed"
