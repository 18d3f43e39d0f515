"""A patch made of two objects turns the one into the other, and says no more than it must."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.patch import apply_strategic_patch, two_way_merge_patch

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(st.booleans(), st.integers(0, 2), st.sampled_from("xy"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=10,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_the_patch_turns_the_one_into_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy(old)
    patch = two_way_merge_patch(old, new, None)
    assert apply_strategic_patch(old, patch, None) == new
    assert old == before, "nothing is changed on the way"


@given(OBJECTS)
def test_of_what_is_equal_nothing_is_said(obj: dict[str, Any]) -> None:
    assert two_way_merge_patch(obj, copy.deepcopy(obj), None) == {}


def test_only_what_differs_is_said_and_what_is_gone_is_null() -> None:
    old = {"spec": {"replicas": 1, "paused": True}, "data": {"x": "1"}}
    new = {"spec": {"replicas": 2}, "data": {"x": "1"}, "kind": "K"}
    assert two_way_merge_patch(old, new, None) == {
        "spec": {"replicas": 2, "paused": None},
        "kind": "K",
    }
