"""The types of expressions: what may stand for what, and what schemas declare."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.types import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    MAX_REQUEST_BYTES,
    NULL,
    STRING,
    TIMESTAMP,
    CelType,
    assignable,
    declared,
    list_of,
    map_of,
    optional_of,
    resolved,
    signature,
    variable,
)


def of(root: bool = False, **raw: Any) -> CelType:
    made = declared(Schema(raw), root=root)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (list_of(INT), "list(int)"),
        (map_of(STRING, DYN), "map(string, dyn)"),
        (optional_of(NULL), "optional_type(null_type)"),
        (TIMESTAMP, "google.protobuf.Timestamp"),
    ],
)
def test_types_are_shown_as_cel_shows_them(kind: CelType, text: str) -> None:
    assert str(kind) == text


@pytest.mark.parametrize(
    ("wanted", "given", "good"),
    [
        (INT, INT, True),
        (INT, STRING, False),
        (DYN, STRING, True),
        (INT, DYN, True),
        (list_of(INT), list_of(INT), True),
        (list_of(INT), list_of(STRING), False),
        (list_of(INT), list_of(DYN), True),
        (INT, NULL, False),
        (TIMESTAMP, NULL, True),
        (CelType("string", nullable=True), NULL, True),
        (CelType("object"), CelType("object"), True),
    ],
)
def test_what_may_stand_where(wanted: CelType, given: CelType, good: bool) -> None:
    assert assignable(wanted, given, {}) is good


def test_objects_are_the_same_only_by_their_schema() -> None:
    one, other = (of(type="object", properties={"a": {"type": "string"}}) for _ in range(2))
    assert assignable(one, one, {}) is True
    assert assignable(one, other, {}) is False


def test_a_variable_is_bound_once_and_by_the_more_precise() -> None:
    bound: dict[str, CelType] = {}
    assert assignable(variable("T"), INT, bound) is True
    assert assignable(variable("T"), STRING, bound) is False
    assert resolved(list_of(variable("T")), bound).parameters[0] is INT
    # An empty list is a list of anything until something says of what.
    loose: dict[str, CelType] = {}
    assert assignable(variable("T"), list_of(DYN), loose) is True
    assert assignable(variable("T"), list_of(INT), loose) is True
    assert str(resolved(variable("T"), loose)) == "list(int)"
    assert resolved(variable("U"), loose) is DYN


@pytest.mark.parametrize(
    ("text", "parameters", "result", "member"),
    [
        ("(int, int) bool", ["int", "int"], "bool", False),
        ("string.(int) bool", ["string", "int"], "bool", True),
        ("string.() int", ["string"], "int", True),
        ("() timestamp", [], "google.protobuf.Timestamp", False),
        ("(map(K, V), K) V", ["map(~K, ~V)", "~K"], "~V", False),
        ("list(string).(string) list(string)", ["list(string)", "string"], "list(string)", True),
        ("net.CIDR.(net.IP) bool", ["net.CIDR", "net.IP"], "bool", True),
        ("(string) optional(list(string))", ["string"], "optional_type(list(string))", False),
    ],
)
def test_signatures_are_read(text: str, parameters: list[str], result: str, member: bool) -> None:
    found = signature(text)
    assert [str(part) for part in found[0]] == parameters
    assert (str(found[1]), found[2]) == (result, member)


def test_a_signature_without_a_result_is_refused() -> None:
    with pytest.raises(ValueError, match="want '\\(types\\) result'"):
        signature("(int)")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "byte"}, "bytes"),
        ({"type": "string", "format": "date-time"}, "google.protobuf.Timestamp"),
        ({"type": "string", "format": "duration"}, "google.protobuf.Duration"),
        ({"type": "boolean"}, "bool"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "double"),
        ({"x-kubernetes-int-or-string": True}, "dyn"),
        ({"type": "array", "items": {"type": "string"}}, "list(string)"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map(string, int)"),
    ],
)
def test_schemas_declare_types(raw: dict[str, Any], text: str) -> None:
    assert str(of(**raw)) == text
    assert of(nullable=True, **raw).nullable is True


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "object", "additionalProperties": {}},
    ],
)
def test_rules_see_nothing_where_a_schema_says_nothing(raw: dict[str, Any]) -> None:
    assert declared(Schema(raw)) is None


def test_fields_are_reached_by_the_names_cel_can_write() -> None:
    fields = of(
        type="object",
        properties={"a-b": {"type": "string"}, "namespace": {"type": "string"}, "x": {}},
    ).fields
    assert {written: name for written, (name, _) in fields.items()} == {
        "a__dash__b": "a-b",
        "__namespace__": "namespace",
    }


def test_of_the_metadata_of_a_resource_only_its_names_are_in_reach() -> None:
    kind = of(root=True, type="object", properties={"metadata": {"type": "object"}, "spec":
              {"type": "string"}})  # fmt: skip
    assert set(kind.fields) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(kind.fields["metadata"][1].fields) == {"name", "generateName"}


def test_sizes_follow_the_schema_or_the_largest_request() -> None:
    assert of(type="string", maxLength=10).size == 40
    assert of(type="string", enum=["a", "abc"]).size == 3
    assert of(type="string").size == MAX_REQUEST_BYTES - 2
    assert of(type="array", maxItems=5, items={"type": "integer"}).size == 5
    assert of(type="array", items={"type": "integer"}).size == (MAX_REQUEST_BYTES - 2) // 2
    assert of(type="object", maxProperties=3, additionalProperties={"type": "integer"}).size == 3
    assert of(type="string", format="date").size == 10


def test_required_fields_make_an_object_larger() -> None:
    raw: dict[str, Any] = {"type": "object", "properties": {"ab": {"type": "boolean"}}}
    assert of(**raw).smallest == 2
    assert of(**raw, required=["ab"]).smallest == 2 + 2 + 4 + BOOL.smallest
    assert DOUBLE.smallest == 1
