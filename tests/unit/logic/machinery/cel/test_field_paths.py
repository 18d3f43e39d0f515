"""``fieldPath`` and selectable fields: what they mean in a schema, and what is wrong with them."""

from __future__ import annotations

import pytest

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.field_paths import FieldPathError, rendered, resolved_path

SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "a-b": {"type": "object", "properties": {"c": {"type": "string"}}},
                    "it's": {"type": "string"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            }
        },
    }
)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (".spec", "spec"),
        (".spec['a-b'].c", "spec.a-b.c"),
        (".spec.a-b.c", "spec.a-b.c"),
        (r".spec['it\'s']", "spec.it's"),
        (".spec.labels['app']", "spec.labels[app]"),
    ],
)
def test_a_path_leads_through_the_schema_and_is_printed_as_errors_print_it(
    path: str, shown: str
) -> None:
    steps, found = resolved_path(path, SCHEMA)
    assert rendered(steps) == shown
    assert found is not None


def test_declared_fields_and_keys_of_maps_are_distinguished() -> None:
    steps, found = resolved_path(".spec.labels.app", SCHEMA)
    assert steps == [("spec", True), ("labels", True), ("app", False)]
    assert found is not None
    assert found.type == "string"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".other", "does not refer to a valid field"),
        (".spec.labels.app.more", "does not refer to a valid field"),
        ("spec", "expected [ or . but got: spec"),
        (".", "unexpected end of JSON path"),
        (".spec[", "unexpected end of JSON path"),
        (".spec['a-b'", "unexpected end of JSON path"),
        (".spec['a-b'x", "expected ] but got x"),
        (".spec[0]", "expected single quoted string but got 0"),
        (r".spec['a\q']", r"invalid escape char \q"),
    ],
)
def test_what_is_wrong_with_a_path_is_said(path: str, words: str) -> None:
    with pytest.raises(FieldPathError) as error:
        resolved_path(path, SCHEMA)
    assert words in str(error.value)


def test_selectable_fields_have_no_brackets() -> None:
    with pytest.raises(FieldPathError, match="array notation is not allowed"):
        resolved_path(".spec['a-b']", SCHEMA, brackets=False)
    steps, _ = resolved_path(".spec.a-b", SCHEMA, brackets=False)
    assert rendered(steps) == "spec.a-b"
