"""JSON values: when two are one, and what Go calls them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.patch.values import equal, go_text, go_type, json_kind

_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 0.5]) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (True, 1, False),
        (0, False, False),
        (1, 1.0, True),
        ({"a": True}, {"a": 1}, False),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({}, [], False),
    ],
)
def test_equality_is_that_of_json(left: Any, right: Any, same: bool) -> None:
    assert equal(left, right) is same
    assert equal(right, left) is same


@given(_values)
def test_every_value_equals_itself(value: Any) -> None:
    assert equal(value, value)


@pytest.mark.parametrize(
    ("value", "kind", "type_", "text"),
    [
        (None, "null", "<nil>", "<nil>"),
        (True, "bool", "bool", "true"),
        ("a", "string", "string", "a"),
        (1, "number", "int64", "1"),
        (1.5, "number", "float64", "1.5"),
        (2e6, "number", "float64", "2e+06"),
        ([1, "a"], "array", "[]interface {}", "[1 a]"),
        ({"b": 1, "a": None}, "object", "map[string]interface {}", "map[a:<nil> b:1]"),
    ],
)
def test_a_value_is_called_what_go_calls_it(value: Any, kind: str, type_: str, text: str) -> None:
    assert (json_kind(value), go_type(value), go_text(value)) == (kind, type_, text)
