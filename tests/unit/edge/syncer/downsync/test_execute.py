"""Plans of the syncer carried out at a real edge, and the dry run that does none of it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skerry.api.errors import Forbidden, Invalid
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.edge.syncer.downsync.execute import DownsyncExecutor, NotYet
from skerry.edge.syncer.downsync.observe import DownsyncObserver
from skerry.edge.syncer.status_writeback import WritebackExecutor
from skerry.edge.syncer.upsync import UpsyncExecutor, UpsyncObserver
from skerry.kit.invariant import InvariantError
from skerry.logic.fleet.syncing.difference import DownsyncPlan, difference
from skerry.logic.fleet.syncing.outcome import APPLIED, GONE, SyncOutcome
from skerry.logic.fleet.syncing.present import present
from skerry.logic.fleet.syncing.status_writeback import WritebackObserved, status_writeback
from skerry.logic.fleet.syncing.upsync import UpsyncObserved, upsync
from skerry.logic.machinery.plan import NOTHING
from tests.kit.chain.syncer_place import CONTENT, PAGE, Place, place
from tests.kit.chain.syncer_world import CONFIG_MAPS
from tests.kit.sim.loop import virtual


@virtual
async def test_a_plan_is_recorded_applied_and_settled(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        executor = DownsyncExecutor(here.state)
        outcomes = await executor.execute(difference(await here.observed()))
        assert [outcome.result for outcome in outcomes] == ["recorded", "applied"]
        live = await here.world.at_edge(CONFIG_MAPS, "page")
        record = here.state.records.placed(PAGE)
        assert live is not None
        assert record is not None
        assert record.edge_uid == live["metadata"]["uid"]
        assert here.state.outcomes.get(PAGE).state == "Applied"
        assert here.state.edge_writes.answer(PAGE) == present(live)
        assert not difference(await here.observed()), "and a second plan is empty"


@virtual
async def test_a_deletion_is_proposed_then_made_then_forgotten(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        executor = DownsyncExecutor(here.state)
        await executor.execute(difference(await here.observed()))
        await executor.execute(difference(await here.observed(None)))
        assert here.state.budget.candidates == {PAGE}
        assert await here.world.at_edge(CONFIG_MAPS, "page") is not None
        [deleted] = await executor.execute(difference(await here.observed(None)))
        assert deleted.result == "deleted"
        assert not here.state.budget.candidates
        await executor.execute(difference(await here.observed(None)))
        assert not here.state.records.was_placed(PAGE)
        assert here.state.outcomes.get(PAGE) == GONE


@virtual
async def test_a_dry_run_says_what_would_happen_and_leaves_no_trace(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        dry = DownsyncExecutor(here.state, dry_run=True)
        outcomes = await dry.execute(difference(await here.observed()))
        assert [outcome.result for outcome in outcomes] == ["recorded", "applied"]
        assert outcomes[1].object is not None
        assert outcomes[1].object["data"] == {"index.html": "hello"}
        assert await here.world.at_edge(CONFIG_MAPS, "page") is None
        assert here.remembered() == []
        assert here.state.outcomes.get(PAGE) == GONE
        assert here.state.edge_writes.answer(PAGE) is None


@virtual
async def test_a_dry_run_deletes_nothing_and_spends_no_budget(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await DownsyncExecutor(here.state).execute(difference(await here.observed()))
        here.state.budget.propose((PAGE,))
        dry = DownsyncExecutor(here.state, dry_run=True)
        [outcome] = await dry.execute(difference(await here.observed(None)))
        assert outcome.result == "deleted"
        assert await here.world.at_edge(CONFIG_MAPS, "page") is not None
        assert here.state.budget.candidates == {PAGE}
        assert here.state.outcomes.get(PAGE).state == "Applied"


@virtual
async def test_a_dry_run_of_status_and_reports_writes_nothing_in_the_mailbox(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        await DownsyncExecutor(here.state).execute(difference(await here.observed()))
        copy = await here.world.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
        record = here.state.records.placed(PAGE)
        back = WritebackObserved(
            PAGE, CONFIG_MAPS, copy, None, record, SyncOutcome("Failed", "Rejected", "no")
        )
        dry = WritebackExecutor(here.state, dry_run=True)
        [marked] = await dry.execute(status_writeback(back))
        assert marked.result == "patched"
        assert await here.world.in_hub(CONFIG_MAPS, "page") == copy

        born = ObjectRef("", "", "configmaps", "shop", "born")
        live = {**CONTENT, "metadata": {"name": "born", "namespace": "shop", "uid": "e2"}}
        up = UpsyncObserved(
            born, CONFIG_MAPS, live, True, covered=True, placed=False, record=None, taken=False
        )
        observer = UpsyncObserver(here.state, here.watches)
        [raised] = await UpsyncExecutor(here.state, observer, dry_run=True).execute(upsync(up))
        assert raised.result == "applied"
        assert await here.world.in_hub(CONFIG_MAPS, "born") is None
        assert not here.state.records.was_upsynced(born)


@virtual
async def test_what_the_edge_refuses_is_the_objects_state_and_tried_again(tmp_path: Path) -> None:
    async with place(tmp_path, namespace=False) as here:
        executor = DownsyncExecutor(here.state)
        with pytest.raises(NotYet):
            await executor.execute(difference(await here.observed()))
        outcome = here.state.outcomes.get(PAGE)
        assert (outcome.state, outcome.reason) == ("Waiting", "DependencyMissing")
        record = here.state.records.placed(PAGE)
        assert record is not None
        assert record.is_intent


@virtual
async def test_a_request_without_an_answer_may_still_take_effect(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        plan = difference(await here.observed())
        here.world.to_edge.sever()
        with pytest.raises(NotYet):
            await DownsyncExecutor(here.state).execute(plan)
        assert here.state.edge_writes.settling_seconds(PAGE) == pytest.approx(75.0, abs=1.0)
        assert here.state.outcomes.get(PAGE) == GONE, "nothing is known to be wrong"


@virtual
async def test_an_unreadable_object_is_retried_and_its_right_is_missed(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        forbidden = SyncOutcome("Failed", "EdgeForbidden", "the edge must allow get")
        plan = DownsyncPlan(ref=PAGE, outcome=forbidden, record=None, retry=True)
        with pytest.raises(NotYet):
            await DownsyncExecutor(here.state).execute(plan)
        assert here.state.outcomes.troubled == {PAGE: forbidden}


@virtual
async def test_plans_of_others_are_a_bug(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        with pytest.raises(InvariantError):
            await DownsyncExecutor(here.state).execute(NOTHING)
        observer = UpsyncObserver(here.state, here.watches)
        with pytest.raises(InvariantError):
            await UpsyncExecutor(here.state, observer).execute(NOTHING)


@virtual
async def test_what_does_not_concern_the_syncer_is_not_looked_at(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        observed = await DownsyncObserver(here.state).observe(PAGE)
        assert (observed.wanted, observed.live, observed.record) == (None, None, None)
        assert difference(observed).outcome == GONE


@virtual
async def test_what_a_full_disk_refused_is_written_before_the_next_request(tmp_path: Path) -> None:
    full = True

    async def disk(work: Callable[[], None]) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        work()

    async with place(tmp_path, offload=disk) as here:
        executor = DownsyncExecutor(here.state)
        await executor.execute(difference(await here.observed()))
        assert "No space left" in here.state.records.failure
        full = False
        live = await here.world.at_edge(CONFIG_MAPS, "page")
        assert live is not None
        live["data"] = {"index.html": "drifted"}
        await here.world.edge.client.update(CONFIG_MAPS, live)
        plan = difference(await here.observed())
        assert [action.reason for action in plan] == ["Drifted"], "and nothing new to record"
        await executor.execute(plan)
        assert here.state.records.failure == ""


class Refusing:
    """Lets an edge refuse every apply with one error."""

    def __init__(self, here: Place, error: Exception) -> None:
        self._inner = here.world.to_edge.request
        self._error = error
        here.world.to_edge.request = self.request  # type: ignore[method-assign]

    async def request(self, method: str, *args: Any, **more: Any) -> Any:
        if method == "PATCH":
            raise self._error
        return await self._inner(method, *args, **more)


@virtual
async def test_content_that_is_wrong_is_tried_again_and_says_the_edges_words(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        plan = difference(await here.observed())
        Refusing(here, Invalid("spec.x: Required value"))
        with pytest.raises(NotYet, match="Required value"):
            await DownsyncExecutor(here.state).execute(plan)
        outcome = here.state.outcomes.get(PAGE)
        assert (outcome.state, outcome.reason) == ("Failed", "Rejected")


@virtual
async def test_an_immutable_field_is_final_for_that_content(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        plan = difference(await here.observed())
        Refusing(here, Invalid("data: Forbidden: field is immutable when `immutable` is set"))
        assert await DownsyncExecutor(here.state).execute(plan) == []
        assert here.state.outcomes.get(PAGE).reason == "ImmutableField"
        assert plan.record is not None
        assert here.state.edge_writes.refused(PAGE, plan.record.desired.digest)
        assert len(here.state.down) == 1, "decided anew, with what is known now"


@virtual
async def test_a_right_that_is_missing_is_asked_about(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        plan = difference(await here.observed())
        Refusing(here, Forbidden('User "s" cannot patch resource "configmaps"'))
        with pytest.raises(NotYet):
            await DownsyncExecutor(here.state).execute(plan)
        outcome = here.state.outcomes.get(PAGE)
        assert outcome.reason == "EdgeForbidden"
        assert "patch of configmaps" in outcome.message
        assert here.state.rights._missing


@virtual
async def test_a_kind_that_is_unknown_makes_the_types_be_read_again(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        unknown = SyncOutcome("Waiting", "KindUnknown", "the edge does not serve it")
        plan = DownsyncPlan(ref=PAGE, outcome=unknown, record=None)
        here.state.edge_types._wanted.clear()
        await DownsyncExecutor(here.state).execute(plan)
        assert here.state.outcomes.get(PAGE) == unknown
        assert here.state.edge_types._wanted.is_set()


@virtual
async def test_a_namespace_that_arrived_lets_those_try_that_waited_for_it(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        state = here.state
        state.outcomes.set(PAGE, SyncOutcome("Waiting", "DependencyMissing", "no namespace"))
        plan = DownsyncPlan(ref=namespace_ref("shop"), outcome=APPLIED, record=None)
        await DownsyncExecutor(state).execute(plan)
        assert await state.down.get() == PAGE
