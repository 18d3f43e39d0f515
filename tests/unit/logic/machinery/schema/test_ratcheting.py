"""An update answers for what it changed, and not for what was wrong before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.errors import FieldError
from skerry.api.schema import Schema
from skerry.logic.machinery.schema.findings import Finding
from skerry.logic.machinery.schema.paths import Path
from skerry.logic.machinery.schema.ratcheting import Correlation, unforgiven

SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "plain": {"type": "array", "items": {"type": "string"}},
            "keyed": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object"},
            },
            "atomic": {"type": "object", "x-kubernetes-map-type": "atomic"},
            "map": {"type": "object"},
        },
    }
)


def at(*steps: str | int) -> Path:
    path: Path = None
    for step in steps:
        path = (path, step)
    return path


def answers_for(new: Any, old: Any, *steps: str | int) -> bool:
    finding = Finding(at(*steps), FieldError.required("f"))
    return bool(unforgiven(SCHEMA, [finding], new, old))


@pytest.mark.parametrize(
    ("new", "old", "steps", "answers"),
    [
        ({"map": {"a": 1}}, {"map": {"a": 1}}, ("map", "a"), False),
        ({"map": {"a": 1}}, {"map": {"a": 2}}, ("map", "a"), True),
        ({"map": {"a": 1, "b": 2}}, {"map": {"a": 1}}, ("map", "a"), False),
        ({"map": {"a": 1}}, {}, ("map", "a"), True),
        ({"map": {"a": 1}}, {"map": "odd"}, ("map", "a"), True),
        # Of an atomic map every member is as new as the whole.
        ({"atomic": {"a": 1, "b": 2}}, {"atomic": {"a": 1}}, ("atomic", "a"), True),
        ({"atomic": {"a": 1}}, {"atomic": {"a": 1}}, ("atomic", "a"), False),
        # Items of plain lists have no counterpart, though an equal list has equal items.
        ({"plain": ["a", "b"]}, {"plain": ["a"]}, ("plain", 0), True),
        ({"plain": ["a"]}, {"plain": ["a"]}, ("plain", 0), False),
        (
            {"keyed": [{"name": "b", "n": 1}, {"name": "a", "n": 2}]},
            {"keyed": [{"name": "a", "n": 2}]},
            ("keyed", 1, "n"),
            False,
        ),
        ({"keyed": [{"name": "b", "n": 1}]}, {"keyed": [{"name": "a"}]}, ("keyed", 0, "n"), True),
        ({"keyed": [{"name": "a"}]}, {"keyed": "odd"}, ("keyed", 0), True),
    ],
)
def test_only_what_is_as_it_was_is_forgiven(
    new: Any, old: Any, steps: tuple[str | int, ...], answers: bool
) -> None:
    assert answers_for(new, old, *steps) is answers


def test_findings_stay_in_their_order() -> None:
    new, old = {"map": {"a": 1, "b": 2, "c": 3}}, {"map": {"b": 2}}
    found = [Finding(at("map", key), FieldError.required(key)) for key in "cba"]
    assert [f.error.field for f in unforgiven(SCHEMA, found, new, old)] == ["c", "a"]


def test_a_root_within_another_object_has_its_prefix() -> None:
    finding = Finding(((None, "spec"), "map"), FieldError.required("f"))
    new: dict[str, Any] = {"map": {"a": 1}}
    assert unforgiven(SCHEMA, [finding], new, dict(new), "spec") == []
    assert unforgiven(SCHEMA, [finding], new, {}, "spec") == [finding]


OBJECTS = st.fixed_dictionaries(
    {}, optional={"map": st.dictionaries(st.sampled_from("ab"), st.integers(0, 2))}
)


@given(new=OBJECTS, old=OBJECTS)
def test_nothing_is_unchanged_unless_it_equals_or_lies_in_what_equals(
    new: dict[str, Any], old: dict[str, Any]
) -> None:
    correlation = Correlation(SCHEMA, new, old)
    for key, value in new.get("map", {}).items():
        equal = new == old or new["map"] == old.get("map") or old.get("map", {}).get(key) == value
        assert correlation.unchanged(at("map", key)) is equal
