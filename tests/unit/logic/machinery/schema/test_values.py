"""Rules about single values, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.schema.values import number_rules, string_rules


def complaints(raw: dict[str, Any], value: Any) -> list[str]:
    schema = Schema(raw)
    rules = string_rules(schema) if raw.get("type") == "string" else number_rules(schema)
    found: list[Any] = []
    for rule in rules:
        rule(value, ((None, "spec"), "x"), found)
    return [str(each.error) for each in found]


@pytest.mark.parametrize(
    ("rules", "good", "bad", "words"),
    [
        ({"maxLength": 2}, "äö", "äöü", "Too long: may not be more than 2"),
        ({"maxLength": 0}, "", "a", "Too long: may not be more than 0"),
        ({"minLength": 2}, "ab", "a", "should be at least 2 chars long"),
        ({"pattern": "^a+$"}, "aa", "ab", "should match '^a+$'"),
        ({"pattern": "b"}, "abc", "ac", "should match 'b'"),
        ({"format": "ipv4"}, "10.0.0.1", "10.0.0", "ipv4"),
    ],
)
def test_what_a_string_must_meet(rules: dict[str, Any], good: str, bad: str, words: str) -> None:
    assert complaints({"type": "string", **rules}, good) == []
    [found] = complaints({"type": "string", **rules}, bad)
    assert words in found


def test_an_unknown_format_and_a_minimum_of_nothing_are_no_rules() -> None:
    assert string_rules(Schema({"type": "string", "format": "colour", "minLength": 0})) == []


def test_every_rule_that_is_broken_is_reported_in_kubernetes_order() -> None:
    found = complaints({"type": "string", "pattern": "^a", "maxLength": 1}, "bb")
    assert ["Too long" in each for each in found] == [True, False]


@pytest.mark.parametrize(
    ("rules", "good", "bad", "words"),
    [
        ({"maximum": 3}, 3, 4, "should be less than or equal to 3"),
        ({"maximum": 3, "exclusiveMaximum": True}, 2, 3, "should be less than 3"),
        ({"minimum": 0}, 0, -1, "should be greater than or equal to 0"),
        ({"minimum": 1.5, "exclusiveMinimum": True}, 2, 1.5, "should be greater than 1.5"),
        ({"multipleOf": 3}, 9, 10, "should be a multiple of 3"),
        ({"multipleOf": 0.5}, 1.5, 1.25, "should be a multiple of 0.5"),
        ({"format": "int32"}, (1 << 31) - 1, 1 << 31, "with format int32 in spec.x"),
        ({"format": "int32"}, -(1 << 31), -(1 << 31) - 1, "with format int32"),
        ({"format": "int64"}, (1 << 63) - 1, 1 << 63, "with format int64"),
    ],
)
def test_what_a_number_must_meet(rules: dict[str, Any], good: Any, bad: Any, words: str) -> None:
    assert complaints({"type": "integer", **rules}, good) == []
    [found] = complaints({"type": "integer", **rules}, bad)
    assert words in found


def test_a_float_has_the_range_of_a_float() -> None:
    assert complaints({"type": "number", "format": "float"}, 3.4e38) == []
    [found] = complaints({"type": "number", "format": "float"}, -3.5e38)
    assert "of type number with format float" in found
