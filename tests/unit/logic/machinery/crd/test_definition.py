"""Parts of a definition, read without trusting their shape."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.crd.definition import (
    condition,
    established,
    mapping,
    names_of,
    schema_of,
    sequence,
    storage_version,
    text,
    versions_of,
)


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, True])
def test_what_has_another_shape_is_empty(value: Any) -> None:
    assert mapping(value) == (value if isinstance(value, dict) else {})
    assert list(sequence(value)) == []
    assert text(value) == ("x" if value == "x" else "")


@pytest.mark.parametrize("crd", [{}, {"spec": None}, {"spec": []}, {"spec": {"versions": "x"}}])
def test_a_definition_of_any_shape_has_no_versions_and_no_names(crd: dict[str, Any]) -> None:
    assert versions_of(crd) == []
    assert names_of(crd) == {}
    assert storage_version(crd) == ""
    assert not established(crd)


def test_the_stored_version_is_the_one_that_says_so() -> None:
    versions: list[Any] = [{"name": "v1"}, None, {"name": "v2", "storage": True}]
    crd = {"spec": {"versions": versions}}
    assert [dict(each) for each in versions_of(crd)] == [versions[0], {}, versions[2]]
    assert storage_version(crd) == "v2"


def test_a_condition_holds_when_it_is_true() -> None:
    crd = {"status": {"conditions": [None, {"type": "Established", "status": "True"}]}}
    assert established(crd)
    assert condition(crd, "NamesAccepted") is None
    crd["status"]["conditions"][1]["status"] = "False"  # type: ignore[index]
    assert not established(crd)


def version(schema: Any) -> dict[str, Any]:
    return {"schema": {"openAPIV3Schema": schema}}


def test_nulls_of_a_schema_are_absent_and_those_of_data_stay() -> None:
    raw = {
        "type": "object",
        "pattern": None,
        "properties": {"a": {"default": {"b": None}, "items": None}},
        "oneOf": [{"not": None}],
        "enum": [None],
    }
    assert schema_of(version(raw)) == {
        "type": "object",
        "properties": {"a": {"default": {"b": None}}},
        "oneOf": [{}],
        "enum": [None],
    }


def test_a_schema_without_nulls_is_the_very_same_and_none_is_none() -> None:
    raw = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert schema_of(version(raw)) is raw
    assert schema_of({}) is None
    assert schema_of(version(True)) is None
