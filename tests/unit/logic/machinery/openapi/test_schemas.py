"""Schemas in the notations of both documents: references, unions, and what v2 cannot say."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import ResourceInfo
from skerry.api.schema import Schema
from skerry.logic.machinery.openapi.schemas import (
    V2,
    V3,
    built_in_schema,
    closure,
    custom_definitions,
    reference,
    referenced,
)
from skerry.logic.machinery.resource import Resource

NAME = "com.example.v1.Widget"


def custom(notation: Any, **raw: Any) -> dict[str, Any]:
    info = ResourceInfo("example.com", "v1", "widgets", "Widget", True)
    return custom_definitions(Resource(info, Schema(raw), "v1", custom=True), notation)


def field(notation: Any, **raw: Any) -> Any:
    made = custom(notation, type="object", properties={"f": raw})
    return made[NAME]["properties"]["f"]


def test_references_point_into_the_document() -> None:
    assert reference("a", V2) == {"$ref": "#/definitions/a"}
    assert reference("a", V3) == {"$ref": "#/components/schemas/a"}


def test_types_that_may_be_null_are_written_as_kubernetes_does() -> None:
    raw = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    assert built_in_schema("x", raw, V3)["properties"]["a"] == {"type": "string"}


def test_a_reference_with_text_beside_it_is_wrapped_in_v3_only() -> None:
    raw = {"properties": {"a": {"$ref": "#/$defs/b", "description": "d"}, "c": {"$ref": "x/b"}}}
    v3, v2 = (built_in_schema("x", raw, each)["properties"] for each in (V3, V2))
    assert v3["a"] == {"allOf": [{"$ref": "#/components/schemas/b"}], "description": "d"}
    assert v2["a"] == {"$ref": "#/definitions/b", "description": "d"}
    assert v3["c"] == {"$ref": "#/components/schemas/b"}


def test_versions_and_kinds_are_left_open() -> None:
    raw = {"properties": {"kind": {"type": "string", "enum": ["X"]}, "a": {"enum": ["y"]}}}
    made = built_in_schema("x", raw, V3)["properties"]
    assert made == {"kind": {"type": "string"}, "a": {"enum": ["y"]}}


@pytest.mark.parametrize(
    "name",
    [
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
    ],
)
def test_types_that_are_two_at_once_are_a_union_in_v3_and_a_text_in_v2(name: str) -> None:
    assert "oneOf" in built_in_schema(name, {}, V3)
    assert built_in_schema(name, {}, V2)["type"] == "string"


def test_what_is_referred_to_is_found_wherever_it_stands_and_once() -> None:
    raw = {"a": [{"$ref": "#/x/one"}], "b": {"c": {"$ref": "#/x/two"}}, "$ref": 5}
    assert set(referenced(raw)) == {"one", "two"}
    definitions: dict[str, Any] = {
        "one": {"$ref": "x/two"},
        "two": {"items": {"$ref": "x/one"}},
        "three": {},
    }
    assert closure(["one", "unknown"], definitions) == ["one", "two"]


def test_a_custom_kind_has_what_every_object_has_and_a_list() -> None:
    made = custom(V3, type="object", properties={"spec": {"type": "string"}})
    assert set(made) == {NAME, f"{NAME}List"}
    assert set(made[NAME]["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert made[NAME]["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "version": "v1", "kind": "Widget"}
    ]
    items = made[f"{NAME}List"]["properties"]["items"]
    assert items["items"] == reference(NAME, V3)


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ({"type": "string", "default": "x", "example": "y"}, {"type": "string"}),
        ({"type": "integer", "anyOf": [{"minimum": 1}]}, {"type": "integer"}),
        ({"type": "string", "nullable": True, "description": "d", "maxLength": 3},
         {"description": "d"}),
        ({"x-kubernetes-int-or-string": True, "type": "string"},
         {"x-kubernetes-int-or-string": True}),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
             "properties": {"a": {"type": "string"}}},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        ({"type": "array", "items": {"type": "string", "default": "x"}},
         {"type": "array", "items": {"type": "string"}}),
    ],
)  # fmt: skip
def test_v2_says_only_what_it_can_without_being_wrong(
    raw: dict[str, Any], left: dict[str, Any]
) -> None:
    assert field(V2, **raw) == left
    assert field(V3, **raw) == raw


def test_an_open_root_lists_no_fields_in_v2() -> None:
    made = custom(V2, type="object", **{"x-kubernetes-preserve-unknown-fields": True})[NAME]
    assert "properties" not in made
    assert made["type"] == "object"


def test_an_embedded_object_has_its_fields_in_v3() -> None:
    made = field(V3, type="object", **{"x-kubernetes-embedded-resource": True})
    assert set(made["properties"]) == {"apiVersion", "kind", "metadata"}
