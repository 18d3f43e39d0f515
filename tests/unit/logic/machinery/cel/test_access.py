"""Fields are read along whole paths, and what is missing is named as the rule writes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.cel import access
from skerry.logic.machinery.cel.typed import Scope, Typed
from skerry.logic.machinery.cel.types import DYN
from skerry.logic.machinery.cel.values import EvaluationError

KEYS = st.sampled_from("abc")
TREES = st.recursive(
    st.none() | st.integers() | st.text(max_size=2) | st.lists(st.integers(), max_size=1),
    lambda below: st.dictionaries(KEYS, below, max_size=3),
    max_leaves=12,
)


def stepwise(value: Any, keys: list[str]) -> Any:
    """Return what lies at a path, or the error, read one key after the other."""
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return f"no such key: the {key}"
        value = value[key]
    return [value]


def found(run: Any, scope: Scope) -> Any:
    try:
        return [run(scope)]
    except EvaluationError as error:
        return str(error)


@given(TREES, st.lists(KEYS, min_size=1, max_size=5))
def test_a_path_is_read_like_its_steps_one_after_the_other(tree: Any, keys: list[str]) -> None:
    read = Typed(DYN, access.variable("x"), 1, 1, ("x",))
    unfused = read._replace(path=())
    for key in keys:
        shown = f"the {key}"
        run = access.get(read, key, shown)
        read = Typed(DYN, run, 1, 1, (*read.path, key, shown))
        unfused = Typed(DYN, access.get(unfused, key, shown), 1, 1)
    expected = stepwise(tree, keys)
    assert found(read.run, {"x": tree}) == expected
    assert found(unfused.run, {"x": tree}) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [({"a": None}, True), ({"b": 1}, False), ("a", False), (None, False)]
)
def test_a_field_is_there_when_its_key_is(value: Any, expected: bool) -> None:
    run = access.has(Typed(DYN, access.variable("x"), 1, 1, ("x",)), "a")
    assert run({"x": value}) is expected
