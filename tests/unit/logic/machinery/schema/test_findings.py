"""What rules find wrong, word for word as apiextensions says it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.machinery.schema.findings import (
    Finding,
    forbidden_property,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_name,
    unmet,
    wrong_format,
    wrong_type,
)

PATH = ((None, "spec"), "x")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "boolean"),
        ("x", "string"),
        (1, "integer"),
        (1.5, "number"),
        ({}, "object"),
        ([], "array"),
    ],
)
def test_types_have_the_names_of_json(value: Any, name: str) -> None:
    assert type_name(value) == name


@pytest.mark.parametrize(
    ("finding", "field", "words"),
    [
        (
            wrong_type(PATH, "string", 1),
            "spec.x",
            'spec.x in body must be of type string: "integer"',
        ),
        (wrong_format(PATH, "ipv4", "a"), "spec.x", 'spec.x in body must be of type ipv4: "a"'),
        (invalid(PATH, "a", "should match 'b'"), "spec.x", "spec.x in body should match 'b'"),
        (required(PATH, "y"), "spec.x.y", "Required value"),
        (not_supported(PATH, "c", ["a", 1]), "spec.x", 'supported values: "a", "1"'),
        (forbidden_property(PATH, "k"), "spec.x", "spec.x.k in body is a forbidden property"),
        (too_long(PATH, 3), "spec.x", "may not be more than 3"),
        (too_many(PATH, 5, 3), "spec.x", "must have at most 3 items"),
        (unmet(PATH, "must validate one schema"), "<nil>", '"spec.x" must validate one schema'),
    ],
)
def test_a_finding_names_field_and_rule(finding: Finding, field: str, words: str) -> None:
    text = str(finding.error)
    assert text.startswith(f"{field}: ")
    assert words in text
    assert finding.node == PATH, "what must change before it is held against an update"
