"""An applied configuration against its schema: what is named with its path."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.apply.check import problem_text, problems

SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "number": {"type": "integer"},
            "flag": {"type": "boolean"},
            "port": {"x-kubernetes-int-or-string": True},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                     "properties": {"text": {"type": "string"}}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "inner": {"type": "object", "x-kubernetes-embedded-resource": True,
                      "properties": {"spec": {"type": "string"}}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "items": {"type": "string"},
                    "x-kubernetes-list-type": "set"},
            "keyed": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"},
                                                           "n": {"type": "integer"}}},
            },
        },
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "applied",
    [
        {},
        {"text": "a", "number": 1.5, "flag": False},
        {"text": None, "keyed": None},
        {"port": 80},
        {"port": "http"},
        {"map": {"anything": "x"}},
        {"free": {"unknown": {"deep": 1}}},
        {"inner": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "spec": "s"}},
        {"plain": ["a", "a"]},
        {"set": ["a", "b"]},
        {"keyed": [{"name": "a"}, {"name": "b", "n": 1}]},
    ],
)
def test_what_the_schema_knows_will_do(applied: dict[str, Any]) -> None:
    assert problems(applied, SCHEMA) == []


@pytest.mark.parametrize(
    ("applied", "text"),
    [
        ({"odd": 1}, ".odd: field not declared in schema"),
        ({"inner": {"odd": 1}}, ".inner.odd: field not declared in schema"),
        ({"text": 1}, ".text: expected string, got &value.valueUnstructured{Value:1}"),
        ({"number": "1"}, ".number: expected numeric (int or float), got string"),
        ({"number": True}, ".number: expected numeric (int or float), got bool"),
        ({"flag": "yes"}, ".flag: expected boolean, got &{yes}"),
        ({"map": {"k": 1}}, ".map.k: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"free": {"text": 1}},
            ".free.text: expected string, got &value.valueUnstructured{Value:1}",
        ),
        ({"plain": "a"}, ".plain: expected list, got &{a}"),
        ({"inner": "a"}, ".inner: expected map, got &{a}"),
        ({"set": ["a", "a"]}, '.set: duplicate entries for key [="a"]'),
        (
            {"keyed": [{"name": "a"}, {"name": "a"}]},
            '.keyed: duplicate entries for key [name="a"]',
        ),
        ({"keyed": [{"name": "a", "n": "x"}]},
         '.keyed[name="a"].n: expected numeric (int or float), got string'),
    ],
)  # fmt: skip
def test_what_it_does_not_know_is_named(applied: dict[str, Any], text: str) -> None:
    assert problems(applied, SCHEMA) == [text]


def test_an_element_without_its_key_ends_the_list() -> None:
    (found,) = problems({"keyed": [{"n": 1}, {"name": "a", "odd": 1}]}, SCHEMA)
    assert found.startswith(".keyed: element 0: ")


def test_a_scalar_of_either_type_is_no_structure() -> None:
    (found,) = problems({"port": {"a": 1}}, SCHEMA)
    assert found.startswith(".port: expected any scalar, got &{")


def test_a_kind_without_a_schema_takes_anything() -> None:
    assert problems({"odd": [1, {}]}, None) == []


def test_the_root_itself_has_no_path() -> None:
    assert problems([1], SCHEMA)[0].startswith("expected map, got &{")


def test_several_problems_are_one_message() -> None:
    assert problem_text(["a"]) == "a"
    assert problem_text(["a", "b"]) == "errors:\n  a\n  b"
