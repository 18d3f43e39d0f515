"""Reports written in a real mailbox, one step at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.downsync.execute import NotYet
from skerry.edge.syncer.upsync import UpsyncExecutor, UpsyncObserver
from skerry.logic.fleet.syncing.recorded import UpsyncRecord
from skerry.logic.fleet.syncing.upsync import UpsyncObserved, upsync
from tests.kit.chain.syncer_place import Place, place
from tests.kit.chain.syncer_world import CONFIG_MAPS
from tests.kit.sim.loop import virtual

BORN = ObjectRef("", "", "configmaps", "shop", "born")
LIVE: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "born", "namespace": "shop", "uid": "e1"},
    "data": {"a": "1"},
}


def observed(here: Place, observer: UpsyncObserver, live: Object | None = LIVE) -> UpsyncObserved:
    return UpsyncObserved(
        BORN,
        CONFIG_MAPS,
        live,
        edge_synced=True,
        covered=True,
        placed=False,
        record=here.state.records.upsynced(BORN),
        taken=False,
        namespace_missing=BORN.namespace in observer.missing_namespaces,
    )


@virtual
async def test_a_report_is_written_recorded_by_uid_and_removed_with_its_original(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        observer = UpsyncObserver(here.state, here.watches)
        executor = UpsyncExecutor(here.state, observer)
        await executor.execute(upsync(observed(here, observer)))
        report = await here.world.in_hub(CONFIG_MAPS, "born")
        assert report is not None
        assert report["metadata"]["annotations"]["edge.kcp.io/upsynced"] == "true"
        record = here.state.records.upsynced(BORN)
        assert record is not None
        assert record.mailbox_uid == report["metadata"]["uid"]
        assert not upsync(observed(here, observer))
        await executor.execute(upsync(observed(here, observer, None)))
        assert await here.world.in_hub(CONFIG_MAPS, "born") is None
        assert not here.state.records.was_upsynced(BORN)


@virtual
async def test_a_namespace_that_the_mailbox_lacks_is_made_with_the_next_step(
    tmp_path: Path,
) -> None:
    async with place(tmp_path, namespace=False) as here:
        observer = UpsyncObserver(here.state, here.watches)
        executor = UpsyncExecutor(here.state, observer)
        assert await executor.execute(upsync(observed(here, observer))) == []
        assert observer.missing_namespaces == {"shop"}
        assert len(here.state.up) == 1, "another step is due at once"
        outcomes = await executor.execute(upsync(observed(here, observer)))
        assert [outcome.action.reason for outcome in outcomes] == ["NamespaceMissing", "Upsynced"]
        assert not observer.missing_namespaces
        assert await here.world.in_hub(CONFIG_MAPS, "born") is not None


@virtual
async def test_a_namespace_is_made_once_and_what_still_lacks_is_tried_later(
    tmp_path: Path,
) -> None:
    async with place(tmp_path, namespace=False) as here:
        observer = UpsyncObserver(here.state, here.watches)
        executor = UpsyncExecutor(here.state, observer)
        nowhere = replace(
            observed(here, observer), gvr=GroupVersionResource("test.example", "v1", "widgets")
        )
        assert await executor.execute(upsync(nowhere)) == []
        with pytest.raises(NotYet):
            await executor.execute(upsync(replace(nowhere, namespace_missing=True)))


@virtual
async def test_anothers_object_of_the_same_name_is_not_removed(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        observer = UpsyncObserver(here.state, here.watches)
        theirs = await here.world.put(CONFIG_MAPS, "born", {"data": {"b": "2"}})
        here.state.records.set_upsynced(BORN, UpsyncRecord("v1", "another-uid", "c"))
        plan = upsync(observed(here, observer, None))
        outcomes = await UpsyncExecutor(here.state, observer).execute(plan)
        assert [outcome.result for outcome in outcomes] == ["kept", "recorded"]
        assert await here.world.in_hub(CONFIG_MAPS, "born") == theirs
        assert not here.state.records.was_upsynced(BORN)
