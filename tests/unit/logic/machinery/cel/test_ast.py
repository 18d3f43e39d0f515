"""Expressions as trees: every sort of node is read, and complaints point at their place."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.cel.ast import (
    MAX_LENGTH,
    Call,
    Comprehension,
    Constant,
    Identifier,
    ListOf,
    MapOf,
    ParseError,
    Select,
    parsed,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("-5", -5),
        ("9223372036854775807", 9223372036854775807),
        ("1.5", 1.5),
        ("'ä'", "ä"),
        ("b'ab'", b"ab"),
        ("null", None),
    ],
)
def test_literals(text: str, value: object) -> None:
    root = parsed(text).root
    assert isinstance(root, Constant)
    assert root.value == value
    assert root.unsigned is False


def test_unsigned_literals_are_marked() -> None:
    root = parsed("5u").root
    assert isinstance(root, Constant)
    assert (root.value, root.unsigned) == (5, True)


def test_selections_and_questions_whether_they_are_there() -> None:
    root = parsed("a.b").root
    assert isinstance(root, Select)
    assert isinstance(root.operand, Identifier)
    assert (root.operand.name, root.field, root.test) == ("a", "b", False)
    asked = parsed("has(a.b)").root
    assert isinstance(asked, Select)
    assert asked.test is True


def test_calls_of_functions_and_of_methods() -> None:
    method, function = parsed("a.f(1, 2)").root, parsed("f(1)").root
    assert isinstance(method, Call)
    assert isinstance(function, Call)
    assert (method.function, len(method.arguments)) == ("f", 2)
    assert isinstance(method.target, Identifier)
    assert function.target is None


def test_lists_and_maps_with_members_that_may_be_absent() -> None:
    made = parsed("[1, ?a, 2]").root
    assert isinstance(made, ListOf)
    assert (len(made.elements), made.optional) == (3, frozenset((1,)))
    pairs = parsed("{'k': 1, ?'l': a}").root
    assert isinstance(pairs, MapOf)
    assert [optional for _, _, optional in pairs.entries] == [False, True]
    message = parsed("Thing{field: 1}").root
    assert isinstance(message, MapOf)
    assert message.message == "Thing"


def test_macros_become_folds() -> None:
    root = parsed("l.all(x, x > 0)").root
    assert isinstance(root, Comprehension)
    assert root.variable == "x"
    assert isinstance(root.range, Identifier)


def test_a_complaint_marks_the_place_in_its_line() -> None:
    expression = parsed("a &&\n  b.c")
    assert isinstance(expression.root, Call)
    node = expression.root.arguments[1]
    assert expression.complaint(node.id, "no") == "ERROR: <input>:2:4: no\n |   b.c\n | ...^"


def test_what_is_no_expression_says_where_it_stops_being_one() -> None:
    with pytest.raises(ParseError, match=r"ERROR: <input>:1:\d+: Syntax error"):
        parsed("a +")


def test_a_text_too_long_to_be_a_rule_is_not_parsed() -> None:
    with pytest.raises(ParseError, match="exceeds the limit of 4096"):
        parsed("a" * (MAX_LENGTH + 1))
