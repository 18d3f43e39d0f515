"""JSON as rules see it: only what a rule reads and a schema says is converted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.conversion import conversion

TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
NUMBER: dict[str, Any] = {"type": "number"}


def converted(raw: dict[str, Any], value: Any, *reads: str) -> Any:
    convert = conversion(Schema(raw), frozenset(reads) if reads else None)
    return value if convert is None else convert(value)


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"x-kubernetes-int-or-string": True},
        {},
    ],
)
def test_most_schemas_need_no_conversion(raw: dict[str, Any]) -> None:
    assert conversion(Schema(raw)) is None


@pytest.mark.parametrize(
    ("raw", "value", "seen"),
    [
        (NUMBER, 1, 1.0),
        (NUMBER, 1.5, 1.5),
        (TIME, "2024-01-01T00:00:00Z", datetime(2024, 1, 1, tzinfo=UTC)),
        ({"type": "string", "format": "date"}, "2024-01-01", datetime(2024, 1, 1, tzinfo=UTC)),
        ({"type": "string", "format": "duration"}, "90s", timedelta(seconds=90)),
        ({"type": "string", "format": "byte"}, "YWJj", b"abc"),
    ],
)
def test_values_become_those_of_cel(raw: dict[str, Any], value: object, seen: object) -> None:
    assert converted(raw, value) == seen
    assert type(converted(raw, value)) is type(seen)


@pytest.mark.parametrize("value", ["yesterday", 5, None, ["x"]])
def test_what_is_not_of_its_format_stays_as_it_is(value: object) -> None:
    assert converted(TIME, value) == value


def test_a_boolean_is_no_number() -> None:
    assert converted(NUMBER, True) is True


def test_members_are_converted_as_deep_as_something_changes() -> None:
    inner = {"type": "object", "properties": {"n": NUMBER, "s": {"type": "string"}}}
    raw = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": inner},
            "map": {"type": "object", "additionalProperties": NUMBER},
            "plain": {"type": "object", "properties": {"s": {"type": "string"}}},
        },
    }
    plain = {"s": "x"}
    obj = {"list": [{"n": 1, "s": "a"}], "map": {"k": 2}, "plain": plain}
    seen = converted(raw, obj)
    assert seen == obj
    assert type(seen["list"][0]["n"]) is float
    assert type(seen["map"]["k"]) is float
    assert seen["plain"] is plain
    assert type(obj["list"][0]["n"]) is int  # type: ignore[index]


def test_only_fields_that_are_read_are_converted() -> None:
    raw = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}}
    seen = converted(raw, {"a": 1, "b": 1}, "a")
    assert (type(seen["a"]), type(seen["b"])) == (float, int)
    assert conversion(Schema(raw), frozenset(["c"])) is None


def test_an_object_without_what_is_converted_is_not_copied() -> None:
    obj = {"c": 1}
    assert converted({"type": "object", "properties": {"a": NUMBER}}, obj) is obj


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "array", "items": NUMBER},
        {"type": "object", "properties": {"a": NUMBER}},
        {"type": "object", "additionalProperties": NUMBER},
    ],
)
def test_what_has_another_shape_than_its_schema_stays(raw: dict[str, Any]) -> None:
    assert converted(raw, "odd") == "odd"
