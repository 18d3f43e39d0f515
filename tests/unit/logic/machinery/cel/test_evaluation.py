"""Which rules judge which parts of an object, with which former value, and what is forgiven."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.evaluation import check_rules, presentable


def ruled(text: str, **schema: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": text, "message": "no"}]}


def fields(schema: dict[str, Any], new: Any, old: Any = None) -> list[str]:
    whole = Schema({"type": "object", "properties": {"spec": schema}})
    former = None if old is None else {"spec": old}
    return [error.field for error in check_rules(whole, {"spec": new}, former)]


def test_null_is_never_judged_by_its_own_rules() -> None:
    schema = ruled("self > 1", type="integer", nullable=True)
    assert fields(schema, None) == []
    assert fields(schema, 1) == ["spec"]


def test_rules_judge_every_item_and_every_value_below_them() -> None:
    number = ruled("self > 1", type="integer")
    assert fields({"type": "array", "items": number}, [1, 2, 0]) == ["spec[0]", "spec[2]"]
    values = {"type": "object", "additionalProperties": number}
    assert fields(values, {"a": 2, "b": 1}) == ["spec[b]"]


def test_items_have_former_values_in_lists_that_are_maps_only() -> None:
    item = ruled(
        "self.n >= oldSelf.n",
        type="object",
        properties={"name": {"type": "string"}, "n": {"type": "integer"}},
    )
    keyed = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    old = [{"name": "a", "n": 5}, {"name": "b", "n": 5}]
    new = [{"name": "b", "n": 4}, {"name": "c", "n": 0}, {"name": "a", "n": 6}]
    assert fields(keyed, new, old) == ["spec[0]"]
    assert fields({"type": "array", "items": item}, new, old) == []


def test_what_was_wrong_before_and_is_not_touched_is_forgiven() -> None:
    part = ruled("self.n > 1", type="object", properties={"n": {"type": "integer"}})
    schema = {"type": "object", "properties": {"kept": part, "changed": part}}
    old = {"kept": {"n": 0}, "changed": {"n": 5}}
    assert fields(schema, {"kept": {"n": 0}, "changed": {"n": 1}}, old) == ["spec.changed"]
    assert fields(schema, {"kept": {"n": 0}, "changed": {"n": 5}}) == ["spec.kept"]


def test_a_rule_about_a_change_is_not_forgiven() -> None:
    schema = ruled("self == oldSelf + 1", type="integer")
    assert fields(schema, 5, 5) == ["spec"]
    assert fields(schema, 6, 5) == []


def test_a_rule_that_stumbles_fails() -> None:
    schema = ruled("self[5] == 1", type="array", items={"type": "integer"})
    assert fields(schema, [1]) == ["spec"]


@pytest.mark.parametrize(
    ("computed", "shown"),
    [(" too few ", "too few"), (3, ""), ("two\nlines", ""), ("x" * 100_000, ""), ("", "")],
)
def test_a_computed_message_is_shown_if_it_is_one_line_of_bearable_length(
    computed: object, shown: str
) -> None:
    assert presentable(computed) == shown
