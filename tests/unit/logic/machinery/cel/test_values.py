"""CEL's equality: numbers across types, everything else within its own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.cel.typed import COST, CostExceeded
from skerry.logic.machinery.cel.types import BOOL, DYN
from skerry.logic.machinery.cel.values import NONE, Optional_, UInt, Url, equal, holds, kind_of

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", 1.0, 2.5])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=5,
)


def same(left: Any, right: Any) -> bool:
    return equal({COST: 1e6}, left, right)


@given(VALUES, VALUES)
def test_equality_is_reflexive_and_symmetric(one: Any, other: Any) -> None:
    assert same(one, one)
    assert same(one, other) is same(other, one)


@pytest.mark.parametrize(
    ("left", "right", "equals"),
    [
        (1, 1.0, True),
        (UInt(1), 1, True),
        (1, True, False),
        (0, None, False),
        ("1", 1, False),
        ([1, 2], [1.0, 2], True),
        ([1], [1, 1], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"b": 1}, False),
        (b"a", b"a", True),
        (Optional_(1), Optional_(1.0), True),
        (Optional_(1), NONE, False),
        (NONE, NONE, True),
        (Url("https://a"), Url("https://a"), True),
        (BOOL, BOOL, True),
        (BOOL, DYN, False),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), True),
    ],
)
def test_values_of_different_types_are_unequal_but_for_numbers(
    left: Any, right: Any, equals: bool
) -> None:
    assert same(left, right) is equals


def test_a_value_is_among_others_by_that_equality() -> None:
    assert holds({COST: 100.0}, [1, "a"], 1.0)
    assert not holds({COST: 100.0}, [1, "a"], True)


def test_comparing_is_charged_by_what_is_compared() -> None:
    with pytest.raises(CostExceeded):
        equal({COST: 50.0}, list(range(100)), list(range(100)))
    scope: dict[str, Any] = {COST: 50.0}
    equal(scope, list(range(100)), [1])
    assert scope[COST] == 50.0, "lists of different lengths differ at once"


@pytest.mark.parametrize(
    ("value", "name"),
    [(True, "bool"), (1, "int"), (UInt(1), "uint"), (None, "null"), ({}, "map"), (object(), "dyn")],
)
def test_each_value_has_a_type_name(value: Any, name: str) -> None:
    assert kind_of(value) == name
