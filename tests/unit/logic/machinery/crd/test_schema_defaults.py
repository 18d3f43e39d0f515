"""Defaults are themselves such objects as the schema allows."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.crd.schema_defaults import default_errors


def wrong(**properties: Any) -> list[str]:
    schema = Schema({"type": "object", "properties": properties})
    return [str(error) for error in default_errors(schema, "s")]


def test_defaults_that_fit_are_fine() -> None:
    assert wrong(a={"type": "string", "default": "x"}, b={"type": "integer"}) == []
    assert wrong(a={"type": "string", "nullable": True, "default": None}) == []


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"type": "string", "default": 1}, "s.properties[a].default"),
        ({"type": "string", "maxLength": 1, "default": "xy"}, "s.properties[a].default"),
        (
            {"type": "array", "items": {"type": "string", "default": 1}},
            "s.properties[a].items.default",
        ),
        (
            {"type": "object", "properties": {"b": {"type": "integer", "default": "x"}}},
            "s.properties[a].properties[b].default",
        ),
        (
            {"type": "object", "default": {"b": "x"}, "properties": {"b": {"type": "integer"}}},
            "s.properties[a].default.b",
        ),
    ],
)
def test_a_default_that_does_not_fit_is_named_by_its_place(raw: dict[str, Any], field: str) -> None:
    (text,) = wrong(a=raw)
    assert text.startswith(f"{field}: ")


def test_a_default_has_no_unknown_fields() -> None:
    raw = {"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}}
    (text,) = wrong(a=raw)
    assert text.endswith("must not have unknown fields")


def test_a_default_agrees_with_the_rules_of_its_schema() -> None:
    rule = [{"rule": "self > 1"}]
    assert wrong(a={"type": "integer", "default": 2, "x-kubernetes-validations": rule}) == []
    (text,) = wrong(a={"type": "integer", "default": 1, "x-kubernetes-validations": rule})
    assert text.startswith("s.properties[a].default: Invalid value")


def test_defaults_in_the_metadata_of_the_root_are_judged_elsewhere() -> None:
    bad = {"type": "object", "default": "x"}
    assert wrong(metadata=bad) == []
    assert wrong(a={"type": "object", "properties": {"metadata": bad}}) != []


def test_judging_a_default_does_not_change_it() -> None:
    default = {"c": 1}
    wrong(a={"type": "object", "properties": {"b": {"type": "string", "default": "x"}},
             "default": default})  # fmt: skip
    assert default == {"c": 1}
