"""Which overload a call means does not depend on what was asked before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.logic.machinery.cel.compiler import compile_expression
from skerry.logic.machinery.cel.evaluation import STUMBLES
from skerry.logic.machinery.cel.typed import COST
from skerry.logic.machinery.cel.types import DYN
from skerry.logic.machinery.cel.values import EvaluationError

VALUES = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, 2.5]),
    st.sampled_from(["", "a", "b", "true"]),
    st.none(),
    st.lists(st.sampled_from(["a", "b", 1, True]), max_size=2),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2),
)
EXPRESSIONS = (
    "x == y", "x != y", "x == 'a'", "x != 'a'", "x == true", "x != true", "x == 1", "x in y",
    "'a' in y", "x < y", "x >= 1", "size(x) > 1", "!(x == y)", "x + y == x", "x == null",
)  # fmt: skip


def value_of(program: Any, x: Any, y: Any) -> Any:
    try:
        return repr(program.run({"x": x, "y": y, COST: 10_000}))
    except EvaluationError as error:
        return str(error)
    except STUMBLES:
        return "stumbled"


@pytest.mark.parametrize("text", EXPRESSIONS)
@settings(max_examples=30)
@given(pairs=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=6))
def test_a_program_that_has_run_before_computes_what_a_new_one_does(
    text: str, pairs: list[tuple[Any, Any]]
) -> None:
    declared = {"x": DYN, "y": DYN}
    used = compile_expression(text, declared)
    for x, y in pairs:
        assert value_of(used, x, y) == value_of(compile_expression(text, declared), x, y)


@given(VALUES, st.sampled_from(["a", True, False]))
def test_a_literal_is_compared_like_a_value(x: Any, y: Any) -> None:
    literal = repr(y).lower() if isinstance(y, bool) else repr(y)
    for sign in ("==", "!="):
        written = compile_expression(f"x {sign} {literal}", {"x": DYN})
        given_ = compile_expression(f"x {sign} y", {"x": DYN, "y": DYN})
        assert value_of(written, x, None) == value_of(given_, x, y)
