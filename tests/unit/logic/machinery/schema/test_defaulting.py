"""Defaults of structural schemas."""

from __future__ import annotations

from typing import Any

from skerry.api.schema import Schema
from skerry.logic.machinery.schema import apply_defaults
from tests.kit.machinery.pruned import CRON


def defaulted(raw: dict[str, Any], value: Any) -> Any:
    apply_defaults(Schema(raw), value)
    return value


def test_defaults_reach_nested_objects_and_items() -> None:
    value: dict[str, Any] = {"spec": {"env": [{"name": "a"}]}}
    apply_defaults(CRON, value)
    assert value["spec"]["replicas"] == 1
    assert value["spec"]["env"] == [{"name": "a", "value": "none"}]


def test_a_missing_object_is_not_created_for_the_defaults_inside() -> None:
    value: dict[str, Any] = {}
    apply_defaults(CRON, value)
    assert value == {}


def test_a_defaulted_object_receives_the_defaults_inside_it() -> None:
    inner = {
        "type": "object",
        "default": {},
        "properties": {"b": {"type": "string", "default": "x"}},
    }
    assert defaulted({"type": "object", "properties": {"a": inner}}, {}) == {"a": {"b": "x"}}


def test_no_two_objects_share_a_default() -> None:
    raw = {"type": "object", "properties": {"a": {"type": "array", "default": [], "items": {}}}}
    schema = Schema(raw)
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    apply_defaults(schema, first)
    apply_defaults(schema, second)
    first["a"].append(1)
    assert second == {"a": []}


def test_null_gives_way_to_the_default_or_to_nothing_unless_it_is_allowed() -> None:
    raw = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "string"},
            "c": {"type": "string", "nullable": True, "default": "x"},
            "d": {"type": "object", "additionalProperties": {"type": "string"}},
            "e": {"type": "object", "additionalProperties": True},
        },
    }
    value = {"a": None, "b": None, "c": None, "d": {"k": None}, "e": {"k": None}, "f": None}
    assert defaulted(raw, value) == {
        "a": "x",
        "c": None,
        "d": {},
        "e": {"k": None},
        "f": None,
    }


def test_null_items_take_the_default_of_items() -> None:
    raw = {"type": "array", "items": {"type": "string", "default": "x"}}
    assert defaulted(raw, ["a", None]) == ["a", "x"]
    assert defaulted({"type": "array", "items": {"type": "string"}}, [None]) == [None]
