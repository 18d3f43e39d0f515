"""Custom kinds are shown by JSONPath, and a column never fails a request."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.printing import custom_columns
from skerry.logic.printing.jsonpath import JsonPath

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
OBJECT: dict[str, Any] = {
    "metadata": {
        "name": "w",
        "creationTimestamp": "2025-03-01T11:00:00Z",
        "annotations": {"a.b/c": "note"},
    },
    "spec": {"replicas": 3, "ratio": 1.5, "on": True, "list": ["p", "q", "r"], "none": None},
    "status": {
        "conditions": [
            {"type": "Synced", "status": "False", "weight": 1},
            {"type": "Ready", "status": "True", "weight": 2},
        ],
        "when": "2025-03-01T11:58:00Z",
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        ("$.spec.replicas", [3]),
        ("spec.replicas", [3]),
        (".metadata.annotations['a.b/c']", ["note"]),
        ('.metadata.annotations["a.b/c"]', ["note"]),
        (r".metadata.annotations.a\.b/c", ["note"]),
        (".spec.list[0]", ["p"]),
        (".spec.list[-1]", ["r"]),
        (".spec.list[9]", []),
        (".spec.list[1:]", ["q", "r"]),
        (".spec.list[0:2]", ["p", "q"]),
        (".spec.list[*]", ["p", "q", "r"]),
        (".spec.list[0,2]", ["p", "r"]),
        (".spec['replicas','on']", [3, True]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Ready')].status", ["True"]),
        (".status.conditions[?(@.weight>1)].type", ["Ready"]),
        (".status.conditions[?(@.weight<=1)].type", ["Synced"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Synced"]),
        (".status.conditions[?(@.weight)].type", ["Synced", "Ready"]),
        (".status.conditions[?(@.missing)].type", []),
        ('.status.conditions[?(@.weight=="1")].type', []),
        ("..type", ["Synced", "Ready"]),
        (".spec.replicas.deeper", []),
        (".missing.deeper", []),
        (".metadata.annotations.*", ["note"]),
    ],
)
def test_a_path_finds_what_it_names(path: str, found: list[Any]) -> None:
    assert JsonPath(path).find(OBJECT) == found


@pytest.mark.parametrize("path", [".a[", ".a[?(@.b==)]", ".a[b]", ".a['b]", ".a[0]b"])
def test_a_path_that_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="JSON path"):
        JsonPath(path)


@given(st.text(alphabet=".[]'\"?()@=<>*:,0ab\\", max_size=20))
def test_any_text_is_either_a_path_or_refused(text: str) -> None:
    try:
        path = JsonPath(text)
    except ValueError:
        return
    path.find(OBJECT)


def cell(kind: str, path: str) -> Any:
    column = custom_columns([{"name": "C", "type": kind, "jsonPath": path}])[1]
    return column.cell(OBJECT, NOW)


@pytest.mark.parametrize(
    ("kind", "path", "shown"),
    [
        ("integer", ".spec.replicas", 3),
        ("integer", ".spec.ratio", 1),
        ("integer", ".spec.on", None),
        ("number", ".spec.ratio", 1.5),
        ("number", ".metadata.name", None),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.replicas", None),
        ("string", ".spec.replicas", "3"),
        ("string", ".spec.ratio", "1.5"),
        ("string", ".spec.on", "true"),
        ("string", ".spec.list", '["p","q","r"]'),
        ("string", ".spec.none", None),
        ("string", ".missing", None),
        ("date", ".status.when", "2m"),
        ("date", ".metadata.name", "<invalid>"),
        ("date", ".spec.replicas", None),
        ("odd", ".spec.replicas", None),
    ],
)
def test_a_cell_fits_the_columns_type_or_is_null(kind: str, path: str, shown: Any) -> None:
    assert cell(kind, path) == shown


def test_a_kind_that_says_nothing_shows_name_and_age() -> None:
    columns = custom_columns(None)
    assert [column.name for column in columns] == ["Name", "Age"]
    assert [column.cell(OBJECT, NOW) for column in columns] == ["w", "60m"]


def test_priority_format_and_description_are_kept() -> None:
    definition = {
        "name": "C",
        "type": "integer",
        "jsonPath": ".a",
        "priority": 1,
        "format": "int32",
        "description": "why",
    }
    column = custom_columns([definition])[1]
    assert (column.priority, column.format, column.description) == (1, "int32", "why")


def test_a_column_without_description_tells_its_path() -> None:
    column = custom_columns([{"name": "C", "type": "string", "jsonPath": ".a"}])[1]
    assert column.description == "Custom resource definition column (in JSONPath format): .a"
