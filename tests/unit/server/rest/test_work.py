"""The computing of one write: here or in a worker, with the same result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from skerry.api.errors import ApiError, FieldError
from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.kit.invariant import present
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.work import spend
from skerry.logic.machinery.workspaces.stamp import ClusterStamp
from skerry.server.catalogue import TypeSet, builtin_types
from skerry.server.codec import decode, encode
from skerry.server.http.message import Request
from skerry.server.offload.offload import Offload, OffloadSettings
from skerry.server.preparation.pipeline import Preparation
from skerry.server.request.call import Call
from skerry.server.request.options import WriteOptions
from skerry.server.rest.work import Work, local_work, remote_work
from skerry.store.base import Entry
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.clock import HandClock
from tests.kit.server.loopback import EAGER, Loopback

TYPES = TypeSet(builtin_types())
MAPS = present(TYPES.find("", "v1", "configmaps"), "every server has them")
OPTIONS = WriteOptions(field_manager="me")
METADATA = {"name": "a", "namespace": "ns", "uid": "u", "creationTimestamp": "2029-01-01T00:00:00Z"}
STORED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": METADATA, "data": {"k": "v"}}
ENTRY = Entry("/k", encode(STORED), 7)


def call(body: Any, method: str = "PUT", name: str = "a", kind: Resource = MAPS) -> Call:
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = Request(method, "/", headers={"content-type": media}, body=orjson.dumps(body))
    return call_of(
        kind, request=request, cluster="root", namespace="ns", name=name, version="v1",
        resource=kind.info.resource,
    )  # fmt: skip


def work(where: str, asked: Call, way: str, options: WriteOptions = OPTIONS) -> Work:
    clock, ids = HandClock(), SeededIds(1)
    if where == "here":
        preparation = Preparation(ClusterStamp())
        return local_work(preparation, asked, options, way, clock, ids, offload=Offload())
    offload = Offload(Loopback(ClusterStamp()), EAGER)
    return present(remote_work(offload, asked, options, way, clock, ids), "it is a built-in type")


@pytest.fixture(params=["here", "in a worker"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_new_object_is_drafted_and_stored_with_the_mark_of_its_cluster(where: str) -> None:
    asked = call({"metadata": {"generateName": "web-"}, "data": {"n": "1"}}, "POST", "")
    doing = work(where, asked, "create")
    drafted = await doing.drafted()
    assert drafted.generated
    new = drafted.draft.take()
    assert new["metadata"]["name"].startswith("web-")
    # A second try begins with what was sent, whatever admission did to the first.
    new["data"]["n"] = "changed"
    again = drafted.draft.take()
    assert again["data"] == {"n": "1"}
    value = await doing.finished(again, None, None, "")
    assert value is not None
    stored = decode(value, 1)
    assert stored["metadata"]["annotations"] == {"kcp.io/cluster": "root"}
    assert stored["metadata"]["managedFields"][0]["manager"] == "me"


async def test_a_change_that_changes_nothing_is_known_as_such(where: str) -> None:
    doing = work(where, call({"data": {"k": "v"}}, "PATCH"), "patch", WriteOptions())
    changed = await doing.changed(ENTRY, "")
    assert changed is not None
    value = await doing.finished(changed.new, changed.old, ENTRY, "")
    assert value is not None, "the stored one lacks the mark of its cluster"
    marked = Entry("/k", value, 7)
    doing = work(where, call({"data": {"k": "v"}}, "PATCH"), "patch", WriteOptions())
    changed = await doing.changed(marked, "")
    if changed is not None:
        assert await doing.finished(changed.new, changed.old, marked, "") is None


@pytest.mark.parametrize(("version", "pinned"), [("7", True), ("", False)])
async def test_whether_a_request_names_a_version_is_known_after_its_change(
    where: str, version: str, pinned: bool
) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": version}, "data": {}}
    doing = work(where, call(body), "update")
    assert await doing.changed(ENTRY, "") is not None
    assert doing.pinned is pinned


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"metadata": {"name": "a", "resourceVersion": "6"}}, 409),
        ({"metadata": {"name": "b"}}, 400),
        ({"metadata": {"name": "a"}, "data": 5}, 400),
        ({"metadata": {"name": "a"}, "data": {"not a key": "v"}}, 422),
    ],
)
async def test_what_is_refused_is_refused_with_the_same_status(
    where: str, body: Any, code: int
) -> None:
    async def written() -> None:
        doing = work(where, call(body), "update")
        changed = present(await doing.changed(ENTRY, ""), "something is changed")
        await doing.finished(changed.new, changed.old, ENTRY, "")

    with pytest.raises(ApiError) as caught:
        await written()
    assert caught.value.code == code


async def test_both_places_store_the_same_bytes() -> None:
    found = []
    for each in ("here", "in a worker"):
        doing = work(each, call({"metadata": {"name": "a"}, "data": {"n": "1"}}), "update")
        changed = present(await doing.changed(ENTRY, ""), "something is changed")
        found.append(await doing.finished(changed.new, changed.old, ENTRY, ""))
    assert found[0] == found[1]


async def test_what_turns_out_to_take_long_here_is_finished_by_a_worker() -> None:
    runner = Loopback(ClusterStamp())
    offload = Offload(runner, OffloadSettings(units=0))

    def validated(_: Object, __: Object) -> list[FieldError]:
        spend(1)
        return []

    slow = replace(MAPS, validate_update=validated)
    asked = call({"metadata": {"name": "a"}, "data": {"n": "1"}}, kind=slow)
    preparation, clock = Preparation(ClusterStamp()), HandClock()
    doing = local_work(preparation, asked, OPTIONS, "update", clock, SeededIds(1), offload=offload)
    changed = present(await doing.changed(ENTRY, ""), "something is changed")
    assert await doing.finished(changed.new, changed.old, ENTRY, "") is not None
    # Once to say that it lacks the type, and once to do it.
    assert set(runner.done) == {"Finish"}


def test_a_type_that_only_this_process_knows_has_no_worker() -> None:
    own = resource("configmaps")
    asked = call({}, kind=own)
    offload = Offload(Loopback(), EAGER)
    assert remote_work(offload, asked, OPTIONS, "update", HandClock(), SeededIds(1)) is None
