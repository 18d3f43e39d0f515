"""From a request to the object it asks for: what each way of writing makes of what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import ApiError, BadRequest, Conflict, Invalid, UnsupportedMediaType
from skerry.api.objects import Object
from skerry.logic.machinery.resource import Resource
from skerry.logic.machinery.workspaces.stamp import ClusterStamp
from skerry.server.codec import decode, encode
from skerry.server.http.message import Request
from skerry.server.preparation.pipeline import Changed, Creation, Preparation
from skerry.server.request.call import Call
from skerry.server.request.options import WriteOptions
from skerry.store.base import Entry
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of

NOW = "2030-01-01T00:00:00Z"
MEDIA = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
PREPARATION = Preparation(ClusterStamp())
OPTIONS = WriteOptions(field_manager="me")
STORED: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "a",
        "namespace": "ns",
        "uid": "u-1",
        "creationTimestamp": "2029-01-01T00:00:00Z",
        "annotations": {"kcp.io/cluster": "root"},
    },
    "data": {"k": "v"},
}
ENTRY = Entry("/k", encode(STORED), 7)


def call(
    body: Any, media: str = "application/json", name: str = "a", kind: Resource | None = None
) -> Call:
    request = Request(
        "PATCH" if "patch" in media else "PUT", "/", headers={"content-type": media},
        body=orjson.dumps(body),
    )  # fmt: skip
    kind = kind or resource("configmaps")
    return call_of(kind, request=request, cluster="root", namespace="ns", name=name)


def changed(way: str, asked: Call, options: WriteOptions = OPTIONS) -> Changed | None:
    mutation = PREPARATION.mutation(way, asked, options, NOW)
    return PREPARATION.changed(asked, options, mutation, ENTRY, "", NOW)


def new(way: str, asked: Call, options: WriteOptions = OPTIONS) -> Object:
    found = changed(way, asked, options)
    assert found is not None
    return found.new


def drafted(body: Object, options: WriteOptions = OPTIONS) -> Object:
    asked = call(body, name="")
    mutation = PREPARATION.mutation("create", asked, options, NOW)
    creation = Creation(NOW, lambda: "u-2", lambda: "xyz")
    return PREPARATION.drafted(asked, options, mutation, creation)


# -- new objects ---------------------------------------------------------------------------------


def test_a_new_object_has_what_only_the_server_gives_and_nothing_it_claimed() -> None:
    claims = {"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 9,
              "deletionTimestamp": NOW, "selfLink": "/x"}  # fmt: skip
    made = drafted({"metadata": {"name": "a", **claims}})["metadata"]
    assert (made["uid"], made["creationTimestamp"], made["namespace"]) == ("u-2", NOW, "ns")
    assert not {"deletionTimestamp", "selfLink", "generation"} & made.keys()


def test_a_name_is_generated_where_none_is_given() -> None:
    assert drafted({"metadata": {"generateName": "web-"}})["metadata"]["name"] == "web-xyz"
    assert drafted({"metadata": {"name": "a", "generateName": "b-"}})["metadata"]["name"] == "a"


def test_a_new_object_names_no_version_but_in_a_rehearsal() -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "5"}}
    with pytest.raises(BadRequest, match="resourceVersion should not be set"):
        drafted(body)
    assert drafted(body, WriteOptions(dry_run=True))["metadata"]["resourceVersion"] == "5"


# -- changes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "media", "body", "data"),
    [
        ("update", "application/json", {"metadata": {"name": "a"}, "data": {"n": "1"}}, {"n": "1"}),
        ("patch", MEDIA["merge"], {"data": {"k": None, "n": "1"}}, {"n": "1"}),
        ("patch", MEDIA["json"], [{"op": "add", "path": "/data/n", "value": "1"}],
         {"k": "v", "n": "1"}),
        ("patch", MEDIA["strategic"], {"data": {"n": "1"}}, {"k": "v", "n": "1"}),
    ],
)  # fmt: skip
def test_each_way_changes_what_it_names_and_keeps_what_no_update_touches(
    way: str, media: str, body: Any, data: Mapping[str, str]
) -> None:
    found = changed(way, call(body, media))
    assert found is not None
    assert found.new["data"] == data
    assert found.old["data"] == {"k": "v"}
    for name in ("uid", "creationTimestamp", "namespace"):
        assert found.new["metadata"][name] == STORED["metadata"][name]


def test_an_update_is_made_from_the_version_it_names_or_refused() -> None:
    for version, fits in (("7", True), ("6", False), ("", True)):
        body = {"metadata": {"name": "a", "resourceVersion": version}, "data": {}}
        for way, media in (("update", "application/json"), ("patch", MEDIA["merge"])):
            if fits:
                new(way, call(body, media))
            else:
                with pytest.raises(Conflict):
                    new(way, call(body, media))


def test_some_types_are_replaced_only_by_who_says_which_version() -> None:
    kind = resource("leases", "coordination.k8s.io")
    with pytest.raises(Invalid, match="must be specified for an update"):
        new("update", call({"metadata": {"name": "a"}}, kind=kind))


def test_another_uid_is_a_conflict_and_in_a_patch_an_error_of_the_field() -> None:
    body = {"metadata": {"name": "a", "uid": "u-of-another"}}
    with pytest.raises(Conflict, match="UID in precondition"):
        new("update", call(body))
    with pytest.raises(Invalid, match="field is immutable"):
        new("patch", call(body, MEDIA["merge"]))


@pytest.mark.parametrize(
    ("way", "asked", "error"),
    [
        ("update", call({"metadata": {"name": "b"}}), BadRequest),
        ("update", call({"metadata": {}}), BadRequest),
        ("update", call({"metadata": {"name": "a", "namespace": "other"}}), BadRequest),
        ("update", call({"kind": "Secret", "metadata": {"name": "a"}}), BadRequest),
        ("patch", call({}, "application/x-patch"), UnsupportedMediaType),
        ("patch", call({"data": 5}, MEDIA["merge"]), Invalid),
        ("patch", call([{"op": "brew", "path": "/"}], MEDIA["json"]), ApiError),
        ("apply", call({"metadata": {}}, "application/apply-patch+yaml"), BadRequest),
    ],
)
def test_what_does_not_fit_is_refused(way: str, asked: Call, error: type[ApiError]) -> None:
    with pytest.raises(error):
        new(way, asked)


def test_who_applies_owns_the_fields_and_applying_again_changes_nothing() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "1"}}
    media = "application/apply-patch+yaml"
    found = new("apply", call(body, media))
    owners = {each["manager"]: each["operation"] for each in found["metadata"]["managedFields"]}
    assert owners["me"] == "Apply"
    assert found["data"] == {"k": "v", "n": "1"}
    asked = call(body, media)
    mutation = PREPARATION.mutation("apply", asked, OPTIONS, NOW)
    again = Entry("/k", encode(found), 8)
    assert PREPARATION.changed(asked, OPTIONS, mutation, again, "", NOW) is None


def test_a_mutation_can_be_tried_again_and_warns_once() -> None:
    body = {"metadata": {"name": "a"}, "data": {"n": "1"}, "unknown": 1}
    asked = call(body)
    options = WriteOptions(field_validation="Warn")
    mutation = PREPARATION.mutation("update", asked, options, NOW)
    tries = [PREPARATION.changed(asked, options, mutation, ENTRY, "", NOW) for _ in range(3)]
    assert all(found is not None and found == tries[0] for found in tries)
    assert asked.warnings == ['unknown field "unknown"']


# -- the mark of the server ----------------------------------------------------------------------


@given(st.sampled_from(["update", "merge"]), st.sampled_from(["away", "", None]))
def test_no_client_sets_or_sees_the_mark_of_the_cluster(way: str, claimed: str | None) -> None:
    notes = {} if claimed is None else {"kcp.io/cluster": claimed}
    body = {"metadata": {"name": "a", "annotations": notes}, "data": {"n": "1"}}
    asked = call(body) if way == "update" else call(body, MEDIA["merge"])
    found = new("update" if way == "update" else "patch", asked)
    assert "annotations" not in found["metadata"]
    stored = decode(PREPARATION.finished(asked, found, STORED), 8)
    assert stored["metadata"]["annotations"] == {"kcp.io/cluster": "root"}
    assert "annotations" not in PREPARATION.live(asked, ENTRY)["metadata"]


def test_a_rehearsal_is_in_no_cluster() -> None:
    assert "annotations" not in decode(PREPARATION.rehearsed(ENTRY.value), 1)["metadata"]


def test_what_is_not_valid_is_not_stored_unless_the_server_made_it() -> None:
    wrong = {**STORED, "data": {"not a key": "v"}}
    with pytest.raises(Invalid):
        PREPARATION.finished(call({}), wrong, STORED)
    PREPARATION.finished(call({}), wrong, STORED, trusted=True)
