"""Lists that are sets or maps by their schema, as operators see them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.cel.lists import special_list_run
from skerry.logic.machinery.cel.typed import COST
from skerry.logic.machinery.cel.types import DYN, list_of

SET = replace(list_of(DYN), list_type="set")
MAP = replace(list_of(DYN), list_type="map", list_keys=("k",))
MEMBERS = st.lists(st.integers(0, 5), unique=True, max_size=5)


def run(name: str, kind: Any, left: list[Any], right: list[Any]) -> Any:
    found = special_list_run(name, [kind, kind])
    assert found is not None
    return found({COST: 1e6}, left, right)


@given(MEMBERS, MEMBERS)
def test_sets_are_equal_in_any_order_and_add_without_repeating(
    left: list[int], right: list[int]
) -> None:
    assert run("_==_", SET, left, right) is (set(left) == set(right))
    assert run("_!=_", SET, left, right) is (set(left) != set(right))
    union = run("_+_", SET, left, right)
    assert sorted(union) == sorted({*left, *right})
    assert union[: len(left)] == left


def test_the_right_members_of_a_map_replace_the_left_ones_in_place() -> None:
    left = [{"k": 1, "v": "a"}, {"k": 2, "v": "b"}]
    right = [{"k": 2, "v": "c"}, {"k": 3, "v": "d"}]
    assert run("_+_", MAP, left, right) == [left[0], right[0], right[1]]


def test_atomic_lists_and_other_operators_are_as_usual() -> None:
    plain = list_of(DYN)
    assert special_list_run("_==_", [plain, plain]) is None
    assert special_list_run("_in_", [SET, SET]) is None
    assert special_list_run("_==_", [SET]) is None
    assert special_list_run("_==_", [plain, SET]) is not None


def test_a_list_and_something_else_are_unequal() -> None:
    found = special_list_run("_==_", [SET, DYN])
    assert found is not None
    assert found({COST: 10.0}, [1], "x") is False
