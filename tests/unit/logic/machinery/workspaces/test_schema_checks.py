"""Complaints about schemas of exports, as one sentence each."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.kcp import compute
from skerry.api.schema import ANY, Schema
from skerry.logic.machinery.workspaces.schema_checks import (
    conversion_complaint,
    listed,
    schema_complaint,
)
from skerry.logic.machinery.workspaces.schemas import schema_object


def schema() -> dict[str, Any]:
    return deepcopy(schema_object(compute.location(), "v1"))


def test_a_schema_that_can_be_served_earns_none() -> None:
    assert schema_complaint(ANY, schema()) == ""


def test_what_is_wrong_is_listed_as_go_prints_it() -> None:
    bad = schema()
    bad["spec"]["group"] = "core"
    text = schema_complaint(ANY, bad)
    assert text.startswith("[")
    assert text.endswith("]")
    assert "must be empty string for the core group" in text


def test_what_is_not_even_of_its_form_is_refused_for_that_elsewhere() -> None:
    form = Schema({"type": "object", "required": ["spec", "unheard"]})
    bad = schema()
    bad["spec"]["group"] = "core"
    assert schema_complaint(form, bad) == ""


def test_a_conversion_that_makes_sense_earns_none() -> None:
    assert conversion_complaint(schema(), {"metadata": {"name": "x"}, "spec": {}}) == ""


def test_a_conversion_between_versions_that_are_not_there_says_which() -> None:
    rules = [{"field": ".spec.a", "destination": ".spec.b"}]
    conversion = {"metadata": {"name": "x"}, "spec": {"conversions": [
        {"from": "v7", "to": "v8", "rules": rules}]}}  # fmt: skip
    text = conversion_complaint(schema(), conversion)
    assert text.startswith("error compiling conversion rules: ")


def test_errors_are_separated_by_spaces() -> None:
    assert listed([FieldError.required("a"), FieldError.required("b")]) == (
        "[a: Required value b: Required value]"
    )
    assert listed([]) == "[]"
