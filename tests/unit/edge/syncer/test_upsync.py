"""Reports written in a real mailbox, one step at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skerry.api.errors import ServiceUnavailable
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.downsync.execute import NotYet
from skerry.edge.syncer.upsync import UpsyncExecutor, UpsyncObserver
from skerry.logic.fleet.syncing.recorded import DownsyncRecord, UpsyncRecord
from skerry.logic.fleet.syncing.upsync import UpsyncObserved, upsync
from skerry.runtime.discovery import discover
from skerry.runtime.transport import Answer
from tests.kit.chain.syncer_place import WANTED, Place, place
from tests.kit.chain.syncer_world import CONFIG_MAPS, SPEC
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


RULE = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["shop"], "names": ["*"]}


async def configure(here: Place, *rules: Object) -> None:
    """Have the mailbox ask for what the rules name; the edge's and the hub's types are known."""
    state = here.state
    for types, client in ((state.edge_types, state.edge), (state.hub_types, state.hub)):
        await types._take(await discover(client))
    metadata = {"name": "the-one", "uid": "c", "resourceVersion": str(5 + len(rules))}
    state.config.informer.synced.set()
    state.config.informer.apply("ADDED", {"metadata": metadata, "spec": {"upsync": list(rules)}})


OTHER = BORN._replace(name="other")


@virtual
async def test_watches_follow_the_rules_and_the_types_of_the_edge(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await configure(here, RULE)
        here.watches.adjust()
        assert here.watches.types() == {CONFIG_MAPS}
        gvr, watch = here.watches.find(BORN)
        assert gvr == CONFIG_MAPS
        assert watch is not None
        assert here.watches.find(BORN._replace(namespace="bank")) == (CONFIG_MAPS, None)
        nowhere = ObjectRef("", "test.example", "widgets", "shop", "w")
        assert here.watches.find(nowhere) == (None, None)
        await configure(here, RULE, {**RULE, "namespaces": ["*"]})
        here.watches.adjust()
        _, wide = here.watches.find(BORN._replace(namespace="bank"))
        assert wide is not None, "everywhere at once"
        await configure(here)
        here.state.config.informer.apply(
            "MODIFIED",
            {"metadata": {"name": "the-one", "uid": "c", "resourceVersion": "99"}, "spec": {}},
        )
        here.watches.adjust()
        assert here.watches.types() == set()


@virtual
async def test_a_type_that_nobody_serves_is_named(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        assert here.watches.unknown_types() == [], "before types are known nothing is missing"
        await configure(here, {**RULE, "apiGroup": "test.example", "resources": ["widgets"]})
        here.watches.adjust()
        assert here.watches.unknown_types() == ["widgets.test.example"]


@virtual
async def test_another_store_gets_every_report_anew(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        here.state.records.set_upsynced(BORN, UpsyncRecord("v1", "mailbox-uid", "content"))
        here.watches.forget_content()
        assert here.state.records.upsynced(BORN) == UpsyncRecord("v1")
        assert len(here.state.up) == 1


@virtual
async def test_names_and_types_of_the_mailbox_enqueue_what_is_watched(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await configure(here, RULE)
        here.watches.adjust()
        _, watch = here.watches.find(BORN)
        assert watch is not None
        watch.apply("ADDED", {**LIVE, "metadata": {**LIVE["metadata"], "resourceVersion": "1"}})
        assert here.state.up.delayed == 1, "gathered for a moment"
        here.watches.enqueue_type(GroupResource("", "secrets"))
        assert len(here.state.up) == 0
        here.watches.enqueue_all()
        assert len(here.state.up) == 1
        here.watches.enqueue_name(OTHER._replace(namespace="bank"))
        assert len(here.state.up) == 1, "no rule brings that up"
        here.watches.enqueue_name(OTHER)
        assert len(here.state.up) == 2


@virtual
async def test_what_is_seen_of_an_object_born_at_the_edge(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        observer = UpsyncObserver(here.state, here.watches)
        assert await observer.observe(BORN) is None, "its type is not known"
        await configure(here, RULE)
        here.watches.adjust()
        _, watch = here.watches.find(BORN)
        assert watch is not None
        watch.synced.set()
        watch.apply("ADDED", {**LIVE, "metadata": {**LIVE["metadata"], "resourceVersion": "1"}})
        found = await observer.observe(BORN)
        assert found is not None
        assert found.live is not None
        assert (found.edge_synced, found.covered, found.placed) == (True, True, False)
        assert (found.served, found.taken) == (True, False)
        await here.world.put(CONFIG_MAPS, "born", {"data": {"theirs": "1"}})
        again = await observer.observe(BORN)
        assert again is not None
        assert again.taken, "the mailbox has another's object of that name"


@virtual
async def test_what_went_down_does_not_come_up(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await configure(here, RULE)
        here.watches.adjust()
        observer = UpsyncObserver(here.state, here.watches)
        here.state.records.set_placed(BORN, DownsyncRecord(WANTED))
        found = await observer.observe(BORN)
        assert found is not None
        assert found.placed


@virtual
async def test_what_may_go_down_is_left_until_the_mailbox_was_read(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await configure(here, RULE)
        state = here.state
        spec = {**SPEC, "upsync": [RULE]}
        metadata = {"name": "the-one", "uid": "c", "resourceVersion": "88"}
        state.config.informer.apply("MODIFIED", {"metadata": metadata, "spec": spec})
        here.watches.adjust()
        observer = UpsyncObserver(state, here.watches)
        assert await observer.observe(BORN) is None
        state.mailbox.follow({BORN.group_resource: CONFIG_MAPS})
        mailbox = state.mailbox._types[BORN.group_resource].informer
        mailbox.synced.set()
        found = await observer.observe(BORN)
        assert found is not None
        assert not found.placed
        mailbox.apply("ADDED", {**LIVE, "metadata": {**LIVE["metadata"], "resourceVersion": "1"}})
        found = await observer.observe(BORN)
        assert found is not None
        assert found.placed


@virtual
async def test_a_mailbox_that_does_not_answer_is_asked_again_later(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await configure(here, RULE)
        here.watches.adjust()
        _, watch = here.watches.find(BORN)
        assert watch is not None
        watch.synced.set()
        watch.apply("ADDED", {**LIVE, "metadata": {**LIVE["metadata"], "resourceVersion": "1"}})
        hub = here.world.hub.transport

        async def busy(*_: object, **__: object) -> Answer:
            raise ServiceUnavailable("starting")

        hub.request = busy  # type: ignore[method-assign]
        with pytest.raises(NotYet, match="starting"):
            await UpsyncObserver(here.state, here.watches).observe(BORN)


@virtual
async def test_the_type_of_a_report_is_known_though_the_edge_serves_it_no_more(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        await configure(here)
        gone = ObjectRef("", "test.example", "widgets", "shop", "w")
        here.state.records.set_upsynced(gone, UpsyncRecord("v1beta1", "m"))
        found = await UpsyncObserver(here.state, here.watches).observe(gone)
        assert found is not None
        assert found.gvr == GroupVersionResource("test.example", "v1beta1", "widgets")
        assert (found.live, found.edge_synced, found.served) == (None, False, False)
