"""Columns that a definition asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.logic.machinery.crd.columns import columns_of, plain_text

NOW = datetime(2030, 1, 2, tzinfo=UTC)


def cell(kind: str, value: Any) -> Any:
    column = {"name": "X", "type": kind, "jsonPath": ".spec.x"}
    (_, shown) = columns_of({"additionalPrinterColumns": [column]})
    return shown.cell({"spec": {"x": value}}, NOW)


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("string", "a", "a"),
        ("string", 3, "3"),
        ("string", {"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ("integer", 3.9, 3),
        ("integer", "3", None),
        ("integer", True, None),
        ("number", 1.5, 1.5),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("date", "2030-01-01T00:00:00Z", "24h"),
        ("date", "", "<unknown>"),
        ("date", "yesterday", "<invalid>"),
        ("date", 5, None),
        ("unheard-of", "a", None),
    ],
)
def test_a_value_is_shown_if_it_is_of_the_columns_type(kind: str, value: Any, shown: Any) -> None:
    assert cell(kind, value) == shown


def test_without_columns_the_age_is_shown() -> None:
    assert [column.name for column in columns_of({})] == ["Name", "Age"]


def test_columns_are_shown_up_to_the_first_that_cannot_be_read() -> None:
    wanted = [
        {"name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 1},
        {"name": "B", "type": "string", "jsonPath": ".spec[?("},
        {"name": "C", "type": "string", "jsonPath": ".spec.c"},
    ]
    found = columns_of({"additionalPrinterColumns": wanted})
    assert [(column.name, column.priority) for column in found] == [("Name", 0), ("A", 1)]


def test_a_column_without_a_description_names_its_path() -> None:
    (_, column) = columns_of(
        {"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".a"}]}
    )
    assert column.description == "Custom resource definition column (in JSONPath format): .a"


def test_whole_floats_have_no_point() -> None:
    assert [plain_text(2.0), plain_text(2.5e6), plain_text(None)] == ["2", "2.5e+06", "null"]
