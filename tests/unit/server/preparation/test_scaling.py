"""Scale: replicas of anything in one form, read and written by paths."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from skerry.api.errors import BadRequest, Conflict, Invalid
from skerry.api.objects import Object
from skerry.logic.machinery.resource import Scale
from skerry.server.http.message import Request
from skerry.server.preparation.scaling import put, scale_of, wanted_replicas
from tests.kit.machinery.objects import resource
from tests.kit.server.calls import call_of

PATHS = Scale("spec.replicas", "status.replicas", "status.selector")
OBJ: Object = {
    "metadata": {"name": "web", "namespace": "n", "uid": "u", "resourceVersion": "5", "labels": {}},
    "spec": {"replicas": 3},
    "status": {"replicas": 2, "selector": "app=web"},
}


def wanted(document: Any, media: str = "application/merge-patch+json", verb: str = "patch") -> int:
    request = Request("PATCH", "/", "", {"content-type": media}, orjson.dumps(document))
    call = call_of(resource("deployments", "apps"), request=request, verb=verb, name="web")
    return wanted_replicas(call)(scale_of(OBJ, PATHS))


def test_a_scale_shows_what_lies_at_the_paths() -> None:
    found = scale_of(OBJ, PATHS)
    assert (found["kind"], found["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert found["metadata"] == {
        "name": "web",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "5",
    }
    assert (found["spec"], found["status"]) == (
        {"replicas": 3},
        {"replicas": 2, "selector": "app=web"},
    )


def test_what_is_not_there_is_zero_and_selectors_are_text() -> None:
    bare = {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}
    found = scale_of(bare, Scale("spec.replicas", "status.replicas", "spec.selector"))
    assert found["spec"] == {"replicas": 0}
    assert found["status"] == {"replicas": 0, "selector": "a=b"}
    assert "selector" not in scale_of(bare, Scale("spec.replicas", "status.replicas"))["status"]


@pytest.mark.parametrize(
    ("document", "media", "replicas"),
    [
        ({"spec": {"replicas": 7}}, "application/merge-patch+json", 7),
        ({"spec": {"replicas": None}}, "application/merge-patch+json", 0),
        ({}, "application/merge-patch+json", 3),
        (
            [{"op": "replace", "path": "/spec/replicas", "value": 9}],
            "application/json-patch+json",
            9,
        ),
    ],
)
def test_patches_of_a_scale(document: Any, media: str, replicas: int) -> None:
    assert wanted(document, media) == replicas


def test_a_scale_that_was_read_before_a_change_is_stale() -> None:
    def sent(version: str) -> Object:
        return {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "web", "resourceVersion": version},
            "spec": {"replicas": 1},
        }

    assert wanted(sent("5"), "application/json", "update") == 1
    assert wanted(sent(""), "application/json", "update") == 1
    assert wanted(sent("0"), "application/json", "update") == 1
    with pytest.raises(Conflict):
        wanted(sent("4"), "application/json", "update")


@pytest.mark.parametrize(
    ("replicas", "error"),
    [(-1, Invalid), (1.5, BadRequest), ("3", BadRequest), (True, BadRequest)],
)
def test_replicas_are_a_whole_number_that_is_not_negative(
    replicas: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        wanted({"spec": {"replicas": replicas}})


def test_members_are_made_on_the_way() -> None:
    obj: Object = {}
    put(obj, "spec.a.b", 1)
    put(obj, "spec.c", 2)
    assert obj == {"spec": {"a": {"b": 1}, "c": 2}}
