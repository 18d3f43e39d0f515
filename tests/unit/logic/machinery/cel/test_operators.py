"""Operators that choose what to compute: logic that forgives, conditionals, optionals."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.cel.operators import truth
from skerry.logic.machinery.cel.values import EvaluationError
from tests.kit.machinery.expressions import complaint, computed

FAILS = "(1 / 0 == 1)"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"true || {FAILS}", True),
        (f"{FAILS} || true", True),
        (f"false && {FAILS}", False),
        (f"{FAILS} && false", False),
        ("false || false", False),
        ("true && true", True),
    ],
)
def test_the_side_that_settles_it_forgives_the_other(text: str, value: bool) -> None:
    assert computed(text) is value


@pytest.mark.parametrize("text", [f"false || {FAILS}", f"{FAILS} || false", f"true && {FAILS}"])
def test_an_error_that_nothing_settles_stays(text: str) -> None:
    assert complaint(text) == "division by zero"


def test_the_first_of_two_errors_is_the_one_reported() -> None:
    text = complaint("(1 / 0 == 1) || (1 % 0 == 1)")
    assert text in ("division by zero", "modulus by zero")


@pytest.mark.parametrize("text", ["1 || true", "true && 'a'", "1 ? 2 : 3", "true ? 1 : 'a'"])
def test_types_that_cannot_be_are_refused_before_they_run(text: str) -> None:
    assert "found no matching overload" in complaint(text)


@pytest.mark.parametrize("text", ["a || false", "a ? 1 : 2", "false || a"])
def test_what_turns_out_to_be_no_bool_is_an_error(text: str) -> None:
    assert complaint(text, a=1) == "no such overload"


def test_truth_takes_nothing_but_a_bool() -> None:
    assert truth(True) is True
    assert truth(False) is False
    bad: list[object] = [1, 0, None, "true", []]
    for value in bad:
        with pytest.raises(EvaluationError):
            truth(value)


def test_a_conditional_computes_only_what_it_chooses() -> None:
    assert computed("true ? 1 : 1 / 0") == 1
    assert computed("false ? 1 / 0 : 2") == 2


def test_an_error_does_not_end_a_loop_that_something_else_settles() -> None:
    assert computed("[0, 1].exists(x, 1 / x == 1)") is True
    assert computed("[0, 2].all(x, 1 / x == 1)") is False
    assert complaint("[0, 1].all(x, 1 / x == 1)") == "division by zero"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.?b.orValue(0)", 1),
        ("a.?x.orValue(0)", 0),
        ("a.?x.?y.orValue(0)", 0),
        ("a.?m.?k.orValue('')", "v"),
        ("a.?m.?x.hasValue()", False),
        ("a[?'b'].orValue(0)", 1),
        ("l[?0].orValue(0)", 7),
        ("l[?1].orValue(0)", 0),
        ("l[?-1].orValue(0)", 0),
        ("l[?0u].orValue(0)", 7),
        ("l[?0.0].orValue(0)", 7),
        ("a.?x.or(a.?b).orValue(0)", 1),
        ("a.?b.or(a.?x).orValue(0)", 1),
    ],
)
def test_access_that_may_fail_yields_what_is_there(text: str, value: object) -> None:
    assert computed(text, a={"b": 1, "m": {"k": "v"}}, l=[7]) == value


def test_a_value_in_reserve_is_computed_only_when_needed() -> None:
    assert computed("a.?b.orValue(1 / 0)", a={"b": 1}) == 1
    assert complaint("a.?x.orValue(1 / 0)", a={"b": 1}) == "division by zero"


@pytest.mark.parametrize(
    "text",
    [
        "l[?'a'].hasValue()",
        "l[?true].hasValue()",
        "l[?0.5].hasValue()",
        "l.?a.hasValue()",
        "m[?[1]].hasValue()",
        "m[[1]] == 1",
        "l in m",
        "n.?a.hasValue()",
        "n.orValue(2) == 2",
    ],
)
def test_an_index_of_the_wrong_sort_is_an_error_that_logic_forgives(text: str) -> None:
    assert complaint(text, l=[1], m={"a": 1}, n=1).startswith("no such overload")
    assert computed(f"{text} || true", l=[1], m={"a": 1}, n=1) is True


def test_reserves_are_of_the_type_of_what_they_stand_for() -> None:
    assert "found no matching overload" in complaint("optional.of(1).orValue('a')")
    assert "found no matching overload" in complaint("optional.of(1).or(1)")
    assert "undeclared reference" in complaint("orValue(1)")
