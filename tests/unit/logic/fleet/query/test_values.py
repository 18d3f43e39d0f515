"""Values are taken as they are or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.query.values import (
    MAX_TEXT,
    ValueRefusal,
    cut,
    number,
    ordered,
    scalar,
    shown,
    type_name,
)


@pytest.mark.parametrize(
    "value", ["3", True, None, [1], {}, float("nan"), float("inf"), -float("inf"), 1 << 5000]
)
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueRefusal):
        number(value)


@pytest.mark.parametrize("value", [[1], {"a": 1}, float("nan"), b"x"])
def test_what_is_no_scalar_is_refused(value: Any) -> None:
    with pytest.raises(ValueRefusal):
        scalar(value)


def test_equal_numbers_have_one_form() -> None:
    assert type(number(2.0)) is int
    assert number(2.5) == 2.5
    assert type(number(1e300)) is float


def test_a_long_text_is_cut_and_known_by_its_hash() -> None:
    one, other = "x" * 1_000_000 + "a", "x" * 1_000_000 + "b"
    assert len(cut(one)) == MAX_TEXT
    assert cut(one) != cut(other)
    assert cut("short") == "short"


@given(st.lists(st.none() | st.booleans() | st.integers() | st.text()))
def test_scalars_of_any_type_have_one_order(values: list[Any]) -> None:
    keys = sorted(map(ordered, values))
    assert keys == sorted(keys)
    assert ordered(True) != ordered(1)


def test_integers_beyond_53_bits_are_shown_as_strings() -> None:
    assert shown(2**53) == 2**53
    assert shown(2**53 + 1) == str(2**53 + 1)
    assert shown(True) is True


def test_types_have_the_names_of_cel() -> None:
    values: list[Any] = [1, 1.5, "x", True, [], None]
    names = ["int", "double", "string", "bool", "list", "dyn"]
    assert list(map(type_name, values)) == names
