"""RFC 7386."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import BadRequest
from skerry.api.objects import Object
from skerry.logic.machinery.patch import apply_merge_patch


@pytest.mark.parametrize(
    ("obj", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
    ],
)
def test_the_examples_of_the_rfc(obj: Object, patch: Object, expected: Object) -> None:
    before = copy.deepcopy((obj, patch))
    assert apply_merge_patch(obj, patch) == expected
    assert (obj, patch) == before


@pytest.mark.parametrize(
    ("patch", "kind"),
    [([], "array"), ("x", "string"), (1, "number"), (None, "null"), (True, "bool")],
)
def test_a_patch_that_is_no_object_is_a_bad_request(patch: Any, kind: str) -> None:
    with pytest.raises(BadRequest, match=f"cannot unmarshal {kind} into"):
        apply_merge_patch({}, patch)


KEYS = st.sampled_from(["a", "b", "c"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)


@settings(max_examples=60, deadline=None)
@given(OBJECTS, OBJECTS)
def test_any_patch_gives_what_the_rfc_s_own_pseudocode_gives(obj: Object, patch: Object) -> None:
    before = copy.deepcopy((obj, patch))
    assert apply_merge_patch(obj, patch) == rfc(copy.deepcopy(obj), patch)
    assert (obj, patch) == before


@settings(max_examples=100, deadline=None)
@given(OBJECTS, OBJECTS)
def test_a_patch_applied_twice_changes_nothing_more(obj: Object, patch: Object) -> None:
    once = apply_merge_patch(obj, patch)
    assert apply_merge_patch(once, patch) == once


def rfc(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = rfc(target.get(name), value)
    return target
