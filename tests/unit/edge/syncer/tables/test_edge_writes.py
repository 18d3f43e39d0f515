"""What we wrote, laid over a watch that lags behind."""

from __future__ import annotations

import asyncio

import pytest

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.tables.edge_writes import EdgeWrites
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.syncing.present import present
from tests.kit.sim.loop import virtual

PAGE = ObjectRef("", "", "configmaps", "shop", "page")


def answer(revision: int) -> Object:
    return {"metadata": {"name": "page", "uid": "e1", "resourceVersion": str(revision)}}


@virtual
async def test_an_answer_counts_until_the_watch_has_caught_up() -> None:
    writes = EdgeWrites(LoopClock())
    assert writes.answer(PAGE) is None
    writes.answered(PAGE, answer(7))
    assert writes.answer(PAGE) == present(answer(7))
    writes.seen(PAGE, None, answer(6))
    assert writes.answer(PAGE) is not None, "that was before our write"
    writes.seen(PAGE, answer(6), answer(7))
    assert writes.answer(PAGE) is None
    assert not writes.is_overdue(PAGE)


@virtual
async def test_a_deletion_that_the_watch_shows_ends_the_answer() -> None:
    writes = EdgeWrites(LoopClock())
    writes.answered(PAGE, answer(7))
    writes.seen(PAGE, answer(7), None)
    assert writes.answer(PAGE) is None


@virtual
async def test_a_watch_that_never_shows_the_write_has_missed_it() -> None:
    writes = EdgeWrites(LoopClock())
    writes.answered(PAGE, answer(7))
    await asyncio.sleep(9)
    assert not writes.is_overdue(PAGE)
    await asyncio.sleep(2)
    assert writes.is_overdue(PAGE)
    assert writes.answer(PAGE) is None


@virtual
async def test_a_request_without_an_answer_may_take_effect_for_as_long_as_servers_let_it() -> None:
    writes = EdgeWrites(LoopClock())
    assert writes.settling_seconds(PAGE) == 75, "a process before this one may have sent it"
    await asyncio.sleep(80)
    assert writes.settling_seconds(PAGE) == 0
    writes.lost(PAGE)
    await asyncio.sleep(5)
    assert writes.settling_seconds(PAGE) == pytest.approx(70)
    writes.settled(PAGE)
    assert writes.settling_seconds(PAGE) == 0


@virtual
async def test_a_refusal_is_of_one_content_and_ends_with_the_next_answer() -> None:
    writes = EdgeWrites(LoopClock())
    writes.refuse(PAGE, "digest")
    assert writes.is_refused(PAGE)
    assert writes.refused(PAGE, "digest")
    assert not writes.refused(PAGE, "another")
    writes.answered(PAGE, answer(8))
    assert not writes.is_refused(PAGE)
