"""Marks and statuses written in a real mailbox."""

from __future__ import annotations

from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.syncer.state import SyncerState
from skerry.edge.syncer.status_writeback import WritebackExecutor, WritebackObserver
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.fleet.syncing.status_writeback import WritebackObserved, status_writeback
from tests.kit.chain.syncer_place import PAGE, place
from tests.kit.chain.syncer_world import CONFIG_MAPS
from tests.kit.sim.loop import virtual

REJECTED = SyncOutcome("Failed", "Rejected", "no room")


def rejected(copy: Object) -> WritebackObserved:
    return WritebackObserved(PAGE, CONFIG_MAPS, copy, None, None, REJECTED)


def counted(state: SyncerState) -> float:
    value = state.metrics.runtime.registry.get_sample_value(
        "skerry_syncer_returned_total", {"what": "mark"}
    )
    return value or 0.0


@virtual
async def test_a_mark_is_written_and_counted(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        copy = await here.world.put(CONFIG_MAPS, "page", {"data": {"a": "1"}})
        await WritebackExecutor(here.state).execute(status_writeback(rejected(copy)))
        marked = await here.world.in_hub(CONFIG_MAPS, "page")
        assert marked is not None
        annotations = marked["metadata"]["annotations"]
        assert annotations["edge.kcp.io/sync-error"] == "Rejected: no room"
        assert counted(here.state) == 1


@virtual
async def test_a_dry_run_counts_nothing(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        copy = await here.world.put(CONFIG_MAPS, "page", {"data": {"a": "1"}})
        await WritebackExecutor(here.state, dry_run=True).execute(status_writeback(rejected(copy)))
        assert counted(here.state) == 0


@virtual
async def test_an_object_that_went_or_was_replaced_meanwhile_is_let_be(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        copy = await here.world.put(CONFIG_MAPS, "page", {"data": {"a": "1"}})
        plan = status_writeback(rejected(copy))
        await here.world.hub.client.delete(CONFIG_MAPS, "page", "shop")
        assert await WritebackExecutor(here.state).execute(plan) == []
        await here.world.put(CONFIG_MAPS, "page", {"data": {"a": "2"}})
        assert await WritebackExecutor(here.state).execute(plan) == []
        again = await here.world.in_hub(CONFIG_MAPS, "page")
        assert again is not None
        assert "annotations" not in again["metadata"] or (
            "edge.kcp.io/sync-error" not in again["metadata"]["annotations"]
        )


@virtual
async def test_what_the_mailbox_does_not_send_down_is_not_compared(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        assert await WritebackObserver(here.state).observe(PAGE) is None
