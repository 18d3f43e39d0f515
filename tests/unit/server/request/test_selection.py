"""Which objects a list or watch means: selectors, views, and one name among many clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skerry.api.errors import BadRequest
from skerry.logic.machinery.resource import ANY_IDENTITY
from skerry.server.codec import encode
from skerry.server.http.message import Request
from skerry.server.request.call import Call
from skerry.server.request.options import list_options
from skerry.server.request.selection import Selection
from tests.kit.machinery.objects import pod, resource
from tests.kit.server.calls import call_of


def selection(query: str = "", call: Call | None = None) -> Selection:
    return Selection(call or call_of(resource("pods")), list_options(Request("GET", "/", query)))


def matches(
    found: Selection, name: str = "a", key: str = "", labels: Any = None, **spec: Any
) -> bool:
    obj = pod(spec)
    obj["metadata"].update(name=name, labels=labels or {})
    return found.matches(encode(obj), 1, key=key or f"/k/{name}")


def test_nothing_asked_is_everything() -> None:
    assert selection().everything
    assert matches(selection())


@pytest.mark.parametrize(
    ("query", "labels", "meant"),
    [
        ("labelSelector=a%3Db", {"a": "b"}, True),
        ("labelSelector=a%3Db", {}, False),
        ("labelSelector=!a", {}, True),
        ("labelSelector=a+in+(x,y)", {"a": "y"}, True),
    ],
)
def test_labels(query: str, labels: dict[str, str], meant: bool) -> None:
    assert matches(selection(query), labels=labels) is meant


@pytest.mark.parametrize(
    ("query", "meant", "only"),
    [
        ("fieldSelector=metadata.name%3Da", True, "a"),
        ("fieldSelector=metadata.name%3Db", False, "b"),
        ("fieldSelector=metadata.name!%3Da", False, ""),
        ("fieldSelector=metadata.namespace%3Ddefault", True, ""),
        ("fieldSelector=spec.nodeName%3Dn", True, ""),
        ("fieldSelector=spec.nodeName%3Dm", False, ""),
    ],
)
def test_fields(query: str, meant: bool, only: str) -> None:
    found = selection(query)
    assert matches(found, nodeName="n") is meant
    assert found.only_name == only
    assert found.needs_object is ("spec." in query)


def test_an_object_that_is_known_is_not_decoded_again() -> None:
    found = selection("fieldSelector=spec.nodeName%3Dn")
    whole = pod({"nodeName": "n"})
    assert found.matches(encode(pod()), 1, key="/k", whole=lambda: whole)


def test_a_field_that_selects_nothing_is_refused_with_the_type() -> None:
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.color"):
        selection("fieldSelector=spec.color%3Dred")


def test_a_view_adds_labels_and_hides_keys() -> None:
    call = call_of(resource("pods"))
    call.labels = "a=b"
    found = selection("labelSelector=c%3Dd", call)
    assert matches(found, labels={"a": "b", "c": "d"})
    assert not matches(found, labels={"c": "d"})
    assert found.terms == 2
    hidden = call_of(resource("pods"))
    hidden.visible = lambda key: key == "/seen"
    assert matches(selection("", hidden), key="/seen")
    assert not matches(selection("", hidden), key="/other")


def test_the_name_in_the_path_is_the_only_one() -> None:
    found = selection("", call_of(resource("pods"), name="a"))
    assert found.only_name == "a"
    assert matches(found)
    assert not matches(found, name="b")


def test_one_name_is_many_objects_over_all_clusters() -> None:
    call = call_of(resource("pods"), cluster="*", namespace="default", name="a")
    found = selection("", call)
    assert found.only_name == ""
    assert not found.everything
    assert matches(found)
    assert not matches(selection("", call_of(resource("pods"), cluster="*", namespace="other")))


def test_a_type_whose_name_begins_alike_is_another() -> None:
    call = call_of(replace(resource("pods"), identity=ANY_IDENTITY), cluster="*")
    found = selection("", call)
    assert matches(found, key=f"{call.prefix}/root/default/a")
    assert matches(found, key=f"{call.prefix}:identity/root/default/a")
    assert not matches(found, key=f"{call.prefix}templates/root/default/a")
