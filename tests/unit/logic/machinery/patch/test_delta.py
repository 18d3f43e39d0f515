"""Deltas: exact to the letter, and nothing said twice."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.patch.delta import delta
from skerry.logic.machinery.patch.json_patch import apply_json_patch

NAMES = st.sampled_from(["a", "b", "c/d", "e~f", "", "~1"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(0, 2), st.sampled_from([0.0, 1.0]), st.sampled_from("xy")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


def text(obj: Any) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


@given(OBJECTS, OBJECTS)
def test_applying_the_delta_gives_the_new_object_to_the_letter(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert text(apply_json_patch(old, delta(old, new))) == text(new)


@given(OBJECTS)
def test_nothing_is_said_of_what_is_the_same(obj: dict[str, Any]) -> None:
    assert delta(obj, orjson.loads(orjson.dumps(obj))) == []


def test_one_annotation_is_one_operation() -> None:
    old = {"metadata": {"annotations": {"a": "1"}}, "data": {"large": "x" * 1000}}
    new = {"metadata": {"annotations": {"a": "1", "edge/b": "2"}}, "data": {"large": "x" * 1000}}
    added = {"op": "add", "path": "/metadata/annotations/edge~1b", "value": "2"}
    assert delta(old, new) == [added]
