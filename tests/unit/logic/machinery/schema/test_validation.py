"""What validation says, word for word."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.schema import validate, validate_update
from tests.kit.machinery.schemas import CRON_TAB

CRON = Schema(CRON_TAB)


def errors(raw: dict[str, Any], value: Any) -> list[str]:
    schema = Schema({"type": "object", "properties": {"x": raw}})
    return [str(error) for error in validate(schema, {"x": value})]


@pytest.mark.parametrize(
    ("raw", "value", "expected"),
    [
        (
            {"type": "integer"},
            "a",
            'x: Invalid value: "string": x in body must be of type integer: "string"',
        ),
        (
            {"type": "integer"},
            None,
            'x: Invalid value: "null": x in body must be of type integer: "null"',
        ),
        (
            {"type": "integer"},
            True,
            'x: Invalid value: "boolean": x in body must be of type integer: "boolean"',
        ),
        (
            {"x-kubernetes-int-or-string": True},
            [],
            'x: Invalid value: "array": x in body must be of type integer,string: "array"',
        ),
        (
            {"type": "string", "enum": ["b", "a"]},
            "x",
            'x: Unsupported value: "x": supported values: "b", "a"',
        ),
        (
            {"type": "integer", "enum": [1, 2]},
            3,
            'x: Unsupported value: 3: supported values: "1", "2"',
        ),
        (
            {"type": "string", "pattern": "^a$"},
            "b",
            "x: Invalid value: \"b\": x in body should match '^a$'",
        ),
        ({"type": "string", "maxLength": 1}, "ab", "x: Too long: may not be more than 1 bytes"),
        (
            {"type": "string", "minLength": 2},
            "é",
            'x: Invalid value: "é": x in body should be at least 2 chars long',
        ),
        (
            {"type": "integer", "maximum": 10},
            11,
            "x: Invalid value: 11: x in body should be less than or equal to 10",
        ),
        # The limit is written as what it is held against: a whole number, or one with a fraction.
        (
            {"type": "integer", "maximum": 2000000},
            2000001,
            "x: Invalid value: 2000001: x in body should be less than or equal to 2000000",
        ),
        (
            {"type": "number", "maximum": 2000000},
            2000000.5,
            "x: Invalid value: 2.0000005e+06: x in body should be less than or equal to 2e+06",
        ),
        (
            {"type": "integer", "maximum": 10, "exclusiveMaximum": True},
            10,
            "x: Invalid value: 10: x in body should be less than 10",
        ),
        (
            {"type": "number", "minimum": 1.5},
            1,
            "x: Invalid value: 1: x in body should be greater than or equal to 1.5",
        ),
        (
            {"type": "number", "minimum": 1, "exclusiveMinimum": True},
            1,
            "x: Invalid value: 1: x in body should be greater than 1",
        ),
        (
            {"type": "integer", "multipleOf": 3},
            4,
            "x: Invalid value: 4: x in body should be a multiple of 3",
        ),
        (
            {"type": "array", "maxItems": 1, "items": {"type": "string"}},
            ["a", "b"],
            "x: Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "array", "minItems": 1, "items": {"type": "string"}},
            [],
            "x: Invalid value: 0: x in body should have at least 1 items",
        ),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            ["a", "a"],
            'x: Invalid value: "": x in body shouldn\'t contain duplicates',
        ),
        (
            {"type": "object", "maxProperties": 0},
            {"a": 1},
            "x: Too many: 1: must have at most 0 items",
        ),
        (
            {"type": "object", "minProperties": 1},
            {},
            "x: Invalid value: 0: x in body should have at least 1 properties",
        ),
        ({"type": "object", "required": ["y"]}, {}, "x.y: Required value"),
        (
            {"type": "string", "format": "ipv4"},
            "no",
            'x: Invalid value: "no": x in body must be of type ipv4: "no"',
        ),
        (
            {"type": "integer", "not": {"enum": [1]}},
            1,
            '<nil>: Invalid value: "": "x" must not validate the schema (not)',
        ),
        (
            {"type": "array", "items": {"type": "integer"}},
            [1, "a"],
            'x[1]: Invalid value: "string": x[1] in body must be of type integer: "string"',
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"k": "a"},
            'x.k: Invalid value: "string": x.k in body must be of type integer: "string"',
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            ["a", "a", "a"],
            'x[1]: Duplicate value: "a"',
        ),
        (
            {"type": "integer", "format": "int32"},
            1 << 31,
            (
                '<nil>: Invalid value: "": '
                "Checked value must be of type integer with format int32 in x"
            ),
        ),
        (
            {"type": "object", "additionalProperties": False},
            {"a": 1},
            'x: Invalid value: "a": x.a in body is a forbidden property',
        ),
    ],
)
def test_every_rule_speaks_as_kubernetes_does(
    raw: dict[str, Any], value: Any, expected: str
) -> None:
    assert errors(raw, value) == [expected]


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"type": "integer"}, 1.0),
        ({"type": "number"}, 1),
        ({"type": "string", "nullable": True}, None),
        ({"type": "string", "enum": ["a", None], "nullable": True}, None),
        ({"type": "string", "maxLength": 1}, "é"),
        ({"type": "array", "x-kubernetes-list-type": "set", "items": {}}, [1, True]),
        ({"type": "string", "format": "no-such-format"}, "x"),
        ({}, {"anything": [1]}),
    ],
)
def test_values_that_only_look_wrong_are_accepted(raw: dict[str, Any], value: Any) -> None:
    assert errors(raw, value) == []


def test_any_of_reports_itself_and_the_best_alternative() -> None:
    raw = {"type": "integer", "anyOf": [{"minimum": 5}, {"enum": [1]}]}
    assert errors(raw, 6) == []
    assert errors(raw, 2) == [
        '<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)',
        "x: Invalid value: 2: x in body should be greater than or equal to 5",
    ]


def test_one_of_says_how_many_alternatives_fit() -> None:
    raw = {"type": "integer", "oneOf": [{"minimum": 5}, {"minimum": 7}]}
    head = '<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found '
    assert errors(raw, 6) == []
    assert errors(raw, 8) == [head + "2 valid alternatives"]
    assert errors(raw, 1)[0] == head + "none valid"


def test_all_of_reports_every_part_and_then_itself() -> None:
    raw = {"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 3}]}
    assert errors(raw, 4) == [
        "x: Invalid value: 4: x in body should be greater than or equal to 5",
        "x: Invalid value: 4: x in body should be less than or equal to 3",
        '<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated',
    ]


def test_keys_of_a_list_map_must_be_unique() -> None:
    value = {"spec": {"cronSpec": "*", "env": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}}
    assert [str(error) for error in validate(CRON, value)] == [
        'spec.env[2]: Duplicate value: {"name":"a"}'
    ]


def test_a_list_map_of_several_keys_compares_all_of_them() -> None:
    raw = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {"type": "object"},
    }
    assert errors(raw, [{"port": 1, "protocol": "a"}, {"port": 1, "protocol": "b"}]) == []
    assert errors(raw, [{"port": 1}, {"port": 1}]) == ['x[1]: Duplicate value: {"port":1}']


def test_an_embedded_resource_must_say_what_it_is() -> None:
    raw = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert errors(raw, {}) == ["x.apiVersion: Required value", "x.kind: Required value"]
    assert errors(raw, {"apiVersion": "v1", "kind": "Pod", "spec": {}}) == []
    bad = {"apiVersion": "a/b/c", "kind": "", "metadata": {"labels": {"a": 1}}}
    assert errors(raw, bad) == [
        'x.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        'x.kind: Invalid value: "": must not be empty',
        "x.metadata.labels[a]: Invalid value: 1: must be a string",
    ]


def test_a_path_given_by_the_caller_stands_before_every_field() -> None:
    found = validate(Schema(CRON_TAB["properties"]["spec"]), {"replicas": "a"}, "spec")
    assert [error.field for error in found] == ["spec.replicas", "spec.cronSpec"]


class TestRatcheting:
    """An update answers only for what it changes."""

    OLD: ClassVar[dict[str, Any]] = {
        "spec": {
            "cronSpec": "bad!",
            "env": [{"name": "a", "value": 1}, {"name": "b", "value": "ok"}],
            "zones": [1, 2],
        }
    }

    def fields(self, **changed: Any) -> list[str]:
        new = {"spec": {**self.OLD["spec"], **changed}}
        return [error.field for error in validate_update(CRON, new, self.OLD)]

    def test_untouched_errors_are_forgiven_beside_a_changed_field(self) -> None:
        assert self.fields(image="nginx") == []

    def test_a_changed_field_must_be_valid(self) -> None:
        assert self.fields(cronSpec="worse!") == ["spec.cronSpec"]

    def test_items_of_a_list_map_are_followed_by_key(self) -> None:
        moved = [{"name": "b", "value": "ok"}, {"name": "a", "value": 1}]
        assert self.fields(env=moved) == []
        assert self.fields(env=[{"name": "a", "value": 2}]) == ["spec.env[0].value"]

    def test_items_of_a_set_are_judged_anew_when_the_set_changes(self) -> None:
        assert self.fields(zones=[1, 2, "c"]) == ["spec.zones[0]", "spec.zones[1]"]

    def test_a_missing_field_is_forgiven_only_while_its_object_is_unchanged(self) -> None:
        old: dict[str, Any] = {"spec": {}}
        assert validate_update(CRON, {"spec": {}, "kind": "x"}, old) == []
        changed = validate_update(CRON, {"spec": {"image": "nginx"}}, old)
        assert [error.field for error in changed] == ["spec.cronSpec"]
