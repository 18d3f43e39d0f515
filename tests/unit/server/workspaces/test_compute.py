"""SyncTargets and Locations as they are written: complete, and the first with its Location."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.logic.machinery import crd
from skerry.logic.machinery.workspaces.stamp import ClusterStamp
from skerry.server.admission.operation import Operation, Verb
from skerry.server.catalogue import TypeSet
from skerry.server.codec import decode
from skerry.server.seeding import Seeder
from skerry.server.workspaces.bootstrap import root_definitions
from skerry.server.workspaces.compute import KEY_LABEL, LABELS_ANNOTATION, ComputeRules
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.clock import HandClock
from tests.kit.server.mailboxes import hub_state

TYPES = TypeSet(
    [r for kinds in root_definitions().values() for k in kinds for r in crd.resources_of(k)]
)


class Types:
    """Every cluster has what root offers."""

    def types(self, cluster: str) -> TypeSet:
        return TYPES


def rules(store: MemoryStore) -> ComputeRules:
    clock, ids = HandClock(), SeededIds(1)
    seeder = Seeder(store, clock, ids, ClusterStamp())
    state = hub_state()
    return ComputeRules(state, Types(), seeder, store, clock, ids, lambda: "https://hub.example")  # type: ignore[arg-type]


async def admitted(
    store: MemoryStore,
    obj: Object,
    kind: tuple[str, str] = ("workload.kcp.io", "synctargets"),
    verb: Verb = "CREATE",
    **more: Any,
) -> Operation:
    base = resource("configmaps")
    info = replace(base.info, group=kind[0], resource=kind[1], namespaced=False)
    operation = Operation(call_of(replace(base, info=info), cluster="imw"), verb, obj, **more)
    await rules(store).admit(operation)
    return operation


def target(name: str = "florin", **metadata: Any) -> Object:
    return {"metadata": {"name": name, "uid": "u-1", **metadata}, "spec": {}}


async def test_a_new_sync_target_is_not_ready_and_knows_where_it_is_served() -> None:
    done = await admitted(MemoryStore("test"), target())
    status = done.obj["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "Ready": "False",
        "HeartbeatHealthy": "False",
    }
    assert status["virtualWorkspaces"][0]["syncerURL"] == (
        "https://hub.example/services/syncer/imw/florin/u-1"
    )


async def test_the_key_of_a_sync_target_is_the_servers_to_write() -> None:
    made = await admitted(MemoryStore("test"), target(labels={KEY_LABEL: "mine"}))
    other = await admitted(MemoryStore("test"), target("guilder"))
    label = made.obj["metadata"]["labels"][KEY_LABEL]
    assert label not in ("mine", other.obj["metadata"]["labels"][KEY_LABEL])
    changed = await admitted(MemoryStore("test"), target(), verb="UPDATE", old=target())
    assert changed.obj["metadata"]["labels"][KEY_LABEL] == label
    assert "status" not in changed.obj
    assert changed.writes == []


async def test_the_first_brings_the_default_location_with_it_and_no_other_does() -> None:
    store = MemoryStore("test")
    done = await admitted(store, target())
    location, mark = done.writes
    assert location.value is not None
    made = decode(location.value, 1)
    assert (made["kind"], made["metadata"]["name"]) == ("Location", "default")
    assert made["spec"]["instanceSelector"] == {}
    assert made["metadata"]["annotations"]["kcp.io/path"] == "root:imw"
    # Of two first ones one is tried again, and finds the mark.
    assert mark.expected == 0
    await store.commit(done.writes)
    assert (await admitted(store, target("guilder"))).writes == []


async def test_a_default_location_that_somebody_deleted_stays_deleted() -> None:
    store = MemoryStore("test")
    done = await admitted(store, target())
    await store.commit(done.writes)
    await store.commit([Write(done.writes[0].key, None)])
    assert (await admitted(store, target("guilder"))).writes == []


async def test_a_default_location_that_somebody_made_is_left() -> None:
    store = MemoryStore("test")
    first = await admitted(store, target())
    await store.commit(first.writes[:1])
    [mark] = (await admitted(store, target())).writes
    assert mark.key == ObjectKey("marks", "default-location", "imw", "", "default").path()


async def test_a_location_shows_its_labels_and_its_workspace() -> None:
    kind = ("scheduling.kcp.io", "locations")
    obj: Object = {"metadata": {"name": "l", "labels": {"env": "prod", "a": "b"}}}
    done = await admitted(MemoryStore("test"), obj, kind)
    notes = done.obj["metadata"]["annotations"]
    assert notes == {"kcp.io/path": "root:imw", LABELS_ANNOTATION: "a=b env=prod"}
    bare: Object = {"metadata": {"name": "l", "annotations": {LABELS_ANNOTATION: "a=b"}}}
    again = await admitted(MemoryStore("test"), bare, kind, "UPDATE", old=obj)
    assert LABELS_ANNOTATION not in again.obj["metadata"]["annotations"]


async def test_a_status_is_written_as_it_is() -> None:
    done = await admitted(MemoryStore("test"), target(), verb="UPDATE", subresource="status")
    assert done.obj == target()
