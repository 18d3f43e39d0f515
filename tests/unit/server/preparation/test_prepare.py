"""What a client sent, recognised, cleaned and addressed, step by step."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import BadRequest, Invalid
from skerry.api.objects import Object
from skerry.logic.machinery import crd
from skerry.logic.machinery.resource import Resource
from skerry.server.http.message import Request
from skerry.server.preparation import prepare
from skerry.server.request.options import WriteOptions
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of
from tests.kit.server.objects import definition

_scalars = st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.text(max_size=3))
_junk = st.one_of(
    _scalars, st.lists(_scalars, max_size=2), st.dictionaries(st.text(max_size=3), _scalars)
)


def things() -> Resource:
    made = definition()
    crd.default_crd(made)
    return crd.resources_of(made)[0]


MAPS, THINGS, NODES = resource("configmaps"), things(), resource("nodes")


@pytest.mark.parametrize(
    ("kind", "obj", "error"),
    [
        (MAPS, {"kind": "Secret"}, BadRequest),
        (MAPS, {"apiVersion": "v2"}, BadRequest),
        (MAPS, {"kind": 5}, BadRequest),
        (MAPS, {"metadata": []}, BadRequest),
        (THINGS, {"apiVersion": "example.org/v1"}, BadRequest),
        (THINGS, {"apiVersion": "example.org/v1", "kind": "Other"}, Invalid),
    ],
)
def test_an_object_of_another_type_is_not_recognised(
    kind: Resource, obj: Object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        prepare.recognise(call_of(kind), obj)


def test_what_an_object_leaves_unsaid_the_path_says() -> None:
    obj: Object = {"metadata": None}
    prepare.recognise(call_of(MAPS), obj)
    assert obj == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}


@pytest.mark.parametrize("how", ["Ignore", "Warn", "Strict"])
def test_unknown_fields_are_dropped_as_loudly_as_asked(how: Any) -> None:
    obj: Object = {"metadata": {"name": "a"}, "data": {"k": "v"}, "unknown": 1}
    call = call_of(MAPS)
    options = WriteOptions(field_validation=how)
    if how == "Strict":
        with pytest.raises(BadRequest, match='strict decoding error: unknown field "unknown"'):
            prepare.conform(call, obj, options)
        return
    prepare.conform(call, obj, options)
    assert obj == {"metadata": {"name": "a"}, "data": {"k": "v"}}
    assert call.warnings == ([] if how == "Ignore" else ['unknown field "unknown"'])


def test_a_wrong_type_is_refused_however_quietly_it_was_asked() -> None:
    for kind, obj in ((MAPS, {"metadata": {}, "data": 5}), (THINGS, {"metadata": {"labels": 5}})):
        with pytest.raises(BadRequest):
            prepare.conform(call_of(kind), obj, WriteOptions(field_validation="Ignore"))


@given(st.dictionaries(st.sampled_from(["name", "labels", "annotations", "odd", "uid"]), _junk))
def test_metadata_of_a_custom_object_is_read_or_refused_and_never_passed_on_wrong(
    metadata: Object,
) -> None:
    obj: Object = {"metadata": metadata, "spec": {}}
    try:
        prepare.conform(call_of(THINGS), obj, WriteOptions())
    except BadRequest:
        return
    assert "odd" not in obj["metadata"]
    assert isinstance(obj["metadata"].get("name") or "", str)
    for name in ("labels", "annotations"):
        found = obj["metadata"].get(name) or {}
        assert all(isinstance(value, str) for value in found.values())


@pytest.mark.parametrize("creating", [True, False])
def test_an_object_is_where_its_path_says(creating: bool) -> None:
    call = call_of(MAPS, namespace="ns", name="a")
    obj: Object = {"metadata": {"name": "a"}}
    prepare.address(call, obj, creating=creating)
    assert obj["metadata"]["namespace"] == "ns"
    with pytest.raises(BadRequest, match="namespace of the"):
        prepare.address(call, {"metadata": {"namespace": "other"}}, creating=creating)
    wide: Object = {"metadata": {"name": "n", "namespace": "any"}}
    prepare.address(call_of(NODES, name="n"), wide, creating=creating)
    assert "namespace" not in wide["metadata"]


def test_what_is_there_keeps_its_name() -> None:
    call = call_of(MAPS, namespace="ns", name="a")
    unnamed: Object = {"metadata": {}}
    prepare.address(call, unnamed, creating=False)
    assert unnamed["metadata"]["name"] == "a"
    with pytest.raises(BadRequest, match="does not match the name on the URL"):
        prepare.address(call, {"metadata": {"name": "b"}}, creating=False)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"spec": {"size": 2}}, True),
        ({"status": {"size": 2}}, False),
        (
            {"metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}}},
            False,
        ),
    ],
)
def test_the_generation_counts_changes_of_what_is_desired(change: Object, counts: bool) -> None:
    metadata = {"name": "a", "uid": "u", "resourceVersion": "1", "generation": 4}
    old: Object = {"metadata": metadata, "spec": {"size": 1}, "status": {"size": 1}}
    new = {**old, "metadata": dict(metadata), **change}
    prepare.carry_over(call_of(THINGS), new, old, None)
    assert new["metadata"]["generation"] == (5 if counts else 4)
    assert new["status"] == {"size": 1}, "a status is written through the status"


def test_members_of_metadata_that_are_empty_are_left_out() -> None:
    metadata: Object = {"a": "", "b": {}, "c": [], "d": None, "e": 0, "f": False, "g": "x"}
    prepare.drop_empty(metadata)
    assert metadata == {"e": 0, "f": False, "g": "x"}


def test_everything_that_is_wrong_with_an_object_is_said_at_once() -> None:
    obj: Object = {"apiVersion": "v1", "kind": "ConfigMap",
                   "metadata": {"name": "Not A Name", "namespace": "ns", "finalizers": ["plain"]},
                   "data": {"not a key": "v"}}  # fmt: skip
    with pytest.raises(Invalid) as caught:
        prepare.refuse_invalid(call_of(MAPS, namespace="ns"), obj)
    fields = {cause["field"] for cause in caught.value.status()["details"]["causes"]}
    assert len(fields) >= 3, fields
    assert "metadata.name" in fields


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ({}, True),
        ({"kind": "Eviction", "unknown": 1}, True),
        ({"kind": "Pod"}, False),
        ({"deleteOptions": 5}, False),
    ],
)
def test_a_kind_that_is_not_stored_must_be_what_it_is_sent_as(body: Object, fits: bool) -> None:
    headers = {"content-type": "application/json"}
    request = Request("POST", "/", headers=headers, body=orjson.dumps(body))
    if fits:
        assert "unknown" not in prepare.sent_as(request, prepare.EVICTION)
        return
    with pytest.raises(BadRequest):
        prepare.sent_as(request, prepare.EVICTION)
