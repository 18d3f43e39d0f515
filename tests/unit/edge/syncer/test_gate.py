"""Deletions in numbers: held, approved, and then let be."""

from __future__ import annotations

from skerry.api.refs import ObjectRef
from skerry.edge.syncer.gate import DeletionGate
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.syncing.evidence import Budget
from tests.kit.sim.loop import virtual

REFS = [ObjectRef("", "", "configmaps", "shop", f"page-{number:03}") for number in range(200)]


class Told:
    """Counts how often the gate had something new to say."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def approved(told: Told, lives: dict[ObjectRef, int] | None = None) -> DeletionGate:
    """Return a gate that held all of these and was told to let them go."""
    which = lives if lives is not None else dict.fromkeys(REFS, 1)
    gate = DeletionGate(Budget(count=10, percent=10), LoopClock(), told, lambda r: str(which[r]))
    gate.name(REFS, len(REFS))
    assert not gate.verdict.allowed
    gate.approve(gate.verdict.name)
    assert gate.verdict.allowed
    return gate


@virtual
async def test_what_was_approved_is_not_held_again_while_the_edge_still_shows_it() -> None:
    told = Told()
    gate = approved(told)
    before = told.times
    for ref in REFS:
        assert gate.is_open(ref)
        gate.deleted(ref)
    # A watch that lags behind shows them all once more.
    assert all(gate.is_open(ref) for ref in REFS)
    assert gate.verdict.allowed
    for ref in REFS:
        gate.unname(ref)
    assert told.times == before


@virtual
async def test_what_is_wanted_again_and_unwanted_once_more_is_judged_anew() -> None:
    lives = dict.fromkeys(REFS, 1)
    gate = approved(Told(), lives)
    for ref in REFS:
        gate.deleted(ref)
        gate.unname(ref)
        lives[ref] = 2
    gate.name(REFS, len(REFS))
    assert not gate.verdict.allowed
    assert not gate.is_open(REFS[0])
    gate.approve(gate.verdict.name)
    assert gate.is_open(REFS[0])
