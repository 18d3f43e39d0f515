"""Schemas as one form: what a node says, and how nodes refer to each other."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import ANY, MISSING, Definitions, Schema


def test_a_definition_is_built_once_and_may_refer_to_itself() -> None:
    tree = {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}}}
    definitions = Definitions({"tree": tree})
    root = definitions.get("tree")
    assert definitions.get("tree") is root
    assert root.field("below") is root
    with pytest.raises(KeyError):
        definitions.get("bush")


def test_text_beside_a_reference_refines_it_and_a_description_does_not() -> None:
    definitions = Definitions({"a": {"type": "string"}})
    plain = definitions.resolve({"$ref": "x/a", "description": "d"})
    refined = definitions.resolve({"$ref": "x/a", "default": "v"})
    assert plain is definitions.get("a")
    assert refined is not plain
    assert (refined.type, refined.default, refined.name) == ("string", "v", "a")
    assert definitions.resolve({"type": "integer"}).type == "integer"


@pytest.mark.parametrize(
    ("raw", "type_", "nullable"),
    [
        ({}, "", False),
        ({"type": "string"}, "string", False),
        ({"type": ["string", "null"]}, "string", True),
        ({"type": ["null"]}, "", True),
        ({"type": "string", "nullable": True}, "string", True),
    ],
)
def test_types_and_null(raw: dict[str, Any], type_: str, nullable: bool) -> None:
    schema = Schema(raw)
    assert (schema.type, schema.nullable) == (type_, nullable)


def test_nothing_is_not_null() -> None:
    assert Schema({}).default is MISSING
    assert Schema({"default": None}).default is None
    assert not MISSING
    assert repr(MISSING) == "MISSING"


@pytest.mark.parametrize(
    ("raw", "name", "both", "form"),
    [
        ({"x-kubernetes-int-or-string": True}, "", True, ""),
        ({"type": "string", "format": "int-or-string"}, "", True, "int-or-string"),
        ({}, "io.k8s.apimachinery.pkg.util.intstr.IntOrString", True, ""),
        ({}, "io.k8s.apimachinery.pkg.api.resource.Quantity", False, "quantity"),
    ],
)
def test_types_that_json_cannot_name(raw: dict[str, Any], name: str, both: bool, form: str) -> None:
    schema = Schema(raw, None, name)
    assert (schema.int_or_string, schema.format) == (both, form)
    assert schema.granular is False


@pytest.mark.parametrize(
    ("raw", "granular"),
    [
        ({"type": "object"}, True),
        ({}, True),
        ({"type": "object", "x-kubernetes-map-type": "atomic"}, False),
        ({"type": "string"}, False),
    ],
)
def test_maps_have_fields_of_their_own_unless_they_are_atomic(
    raw: dict[str, Any], granular: bool
) -> None:
    assert Schema(raw).granular is granular
    assert Schema({}, None, "io.k8s.apimachinery.pkg.runtime.RawExtension").granular is False


@pytest.mark.parametrize(
    ("raw", "associative"),
    [
        ({"type": "array"}, False),
        ({"type": "array", "x-kubernetes-list-type": "set"}, True),
        ({"type": "array", "x-kubernetes-list-type": "map"}, True),
        ({"type": "array", "x-kubernetes-patch-strategy": "merge,retainKeys"}, True),
        # What the list type says goes before the old patch strategy.
        (
            {"type": "array", "x-kubernetes-list-type": "atomic",
             "x-kubernetes-patch-strategy": "merge"},
            False,
        ),
        ({"type": "object", "x-kubernetes-list-type": "set"}, False),
    ],
)  # fmt: skip
def test_elements_are_known_by_value_or_key_where_a_schema_says(
    raw: dict[str, Any], associative: bool
) -> None:
    assert Schema(raw).associative is associative


def test_members_are_declared_or_additional() -> None:
    schema = Schema({"properties": {"a": {"type": "string"}},
                     "additionalProperties": {"type": "integer"}})  # fmt: skip
    declared, other = schema.child("a"), schema.child("x")
    assert declared is not None
    assert other is not None
    assert (declared.type, other.type) == ("string", "integer")
    assert schema.field("x") is None
    assert schema.child("a") is declared
    assert [name for name, _ in schema.properties()] == ["a"]


def test_additional_properties_may_be_anything_or_nothing() -> None:
    assert Schema({"additionalProperties": True}).additional is ANY
    assert Schema({"additionalProperties": False}).additional is None
    assert Schema({}).child("x") is None


def test_items_are_built_once() -> None:
    schema = Schema({"items": {"type": "string"}, "description": "d"})
    assert schema.items is schema.items is not None
    assert Schema({}).items is None
    assert schema.description == "d"
    assert (repr(schema), repr(Schema({}, None, "n"))) == ("Schema(any)", "Schema(n)")
