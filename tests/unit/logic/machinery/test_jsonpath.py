"""One parser: what every dialect reads alike, what each allows, and where a mistake is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.jsonpath import (
    KUBECTL,
    Descent,
    Dialect,
    Every,
    Filter,
    Items,
    JSONPathError,
    Literal,
    Members,
    Number,
    Slice,
    Union,
    parsed,
)

STRICT = Dialect(re.compile(r"[a-z]+"), re.compile(r"[0-9]{1,9}"))


@pytest.mark.parametrize("dialect", [KUBECTL, STRICT])
@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.a", (Members(("a",)),)),
        ("$['a', \"b.c\"]", (Members(("a", "b.c")),)),
        ("$[0,2]", (Items((0, 2)),)),
        ("$[1:3]", (Slice(1, 3, 1),)),
        ("$[::2]", (Slice(0, None, 2),)),
        ("$.*[*]", (Every(), Every())),
        ("$..a", (Descent(), Members(("a",)))),
        ("$..", (Descent(),)),
    ],
)
def test_dialects_agree_on_what_they_share(
    text: str, steps: tuple[Any, ...], dialect: Dialect
) -> None:
    assert parsed(text, dialect) == steps


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$.", ()),
        ("$.[0]", (Items((0,)),)),
        (r"$.a\.b", (Members(("a.b",)),)),
        ("$.a-b", (Members(("a-b",)),)),
        ("$.0", (Members(("0",)),)),
        ("$[-1]", (Items((-1,)),)),
        ("$[0,-2:]", (Union((Items((0,)), Slice(-2, None, 1))),)),
        ("$[?(@.a)]", (Filter((Members(("a",)),)),)),
        ("$[?(@.a == 'x]')]", (Filter((Members(("a",)),), "==", Literal("x]")),)),
        ("$[?(1<=@)]", (Filter(Literal(1), "<=", ()),)),
        ("$[?(@['<']==\"a'b\")]", (Filter((Members(("<",)),), "==", Literal("a'b")),)),
        ("$[?(@.l[?(@.x)])]", (Filter((Members(("l",)), Filter((Members(("x",)),)))),)),
    ],
)
def test_kubectl_reads_more(text: str, steps: tuple[Any, ...]) -> None:
    assert parsed(text, KUBECTL) == steps


@pytest.mark.parametrize("text", ["$.", "$.a-b", "$[-1]", "$[0,1:2]", "$[0:1,2]", "$[?(@.a)]"])
def test_a_strict_dialect_refuses_what_it_does_not_name(text: str) -> None:
    with pytest.raises(JSONPathError, match=r"want "):
        parsed(text, STRICT)


def test_a_number_after_a_dot_may_be_an_item_or_a_name() -> None:
    assert parsed("$.0", STRICT) == (Number(0),)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("$[?(@.a]", "filter '(@.a': want it in parentheses"),
        ("$[?(@.a)", "the text ends at 8, want ']'"),
        ("$[?(@.a==x)]", "operand 'x': want '@', a string or JSON"),
        ("$[?(@.a==)]", "operand ''"),
        ("$[0", "the text ends at 3, want ']'"),
        ("$['a' 'b']", "want ']'"),
        ("$[1:2:0]", "the stride of a slice cannot be 0"),
        ("$[1:2:-1]", "the stride of a slice cannot be -1"),
        ("$.a b", "found ' b' at 3, want '.', '..' or '['"),
    ],
)
def test_a_mistake_is_reported_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        parsed(text, KUBECTL)
    assert complaint in str(caught.value)


@given(st.text(alphabet=".[]()?@'\"ab01:*,=<> \\-", max_size=16))
def test_a_strict_dialect_reads_nothing_that_kubectl_refuses(text: str) -> None:
    try:
        parsed(f"${text}", STRICT)
    except JSONPathError:
        return
    parsed(f"${text}", KUBECTL)
