"""The grammar of paths: what is one, what it means, and what is none."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.customization.paths import parse_path
from skerry.logic.machinery.jsonpath import (
    Descent,
    Every,
    Items,
    JSONPathError,
    Members,
    Number,
    Slice,
    Step,
)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$", ()),
        ("$.a", (Members(("a",)),)),
        ("$.a_1.B", (Members(("a_1",)), Members(("B",)))),
        ("$.0", (Number(0),)),
        ("$.*", (Every(),)),
        ("$[*]", (Every(),)),
        ("$['a']", (Members(("a",)),)),
        ("$['a','b c']", (Members(("a", "b c")),)),
        ('$["x-y"]', (Members(("x-y",)),)),
        (r"$['it\'s']", (Members(("it's",)),)),
        ("$[ 'a' , 'b' ]", (Members(("a", "b")),)),
        ("$[1]", (Items((1,)),)),
        ("$[1,2]", (Items((1, 2)),)),
        ("$[1:3]", (Slice(1, 3, 1),)),
        ("$[:]", (Slice(0, None, 1),)),
        ("$[::2]", (Slice(0, None, 2),)),
        ("$[1::]", (Slice(1, None, 1),)),
        ("$[ 1 : 2 : 3 ]", (Slice(1, 2, 3),)),
        ("$..", (Descent(),)),
        ("$..*", (Descent(), Every())),
        ("$..name", (Descent(), Members(("name",)))),
        ("$..[0]", (Descent(), Items((0,)))),
        ("$.a.0['b'][*]", (Members(("a",)), Number(0), Members(("b",)), Every())),
    ],
)
def test_a_path_means_its_steps(text: str, steps: tuple[Step, ...]) -> None:
    assert parse_path(text).steps == steps


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "want '$' at the beginning"),
        ("a", "want '$' at the beginning"),
        ("$a", "found 'a' at 1, want '.', '..' or '['"),
        ("$.", "the text ends at 2, want a name, a number or '*' after '.'"),
        ("$.a-b", "found '-b' at 3"),
        ("$.-1", "found '-1' at 2"),
        ("$[-1]", "found '-1]' at 2, want a number"),
        ("$[", "the text ends at 2, want a number"),
        ("$[]", "found ']' at 2, want a number"),
        ("$['a'", "the text ends at 5, want ']'"),
        ("$['a',]", "found ']' at 6, want a string"),
        ("$['a',1]", "found '1]' at 6, want a string"),
        ("$[1,'a']", "want a number"),
        ("$[::0]", "the stride of a slice cannot be 0"),
        ("$[?(@.a)]", "want a number"),
        ("$...", "the text ends at 4"),
        ("$.a ", "found ' ' at 3"),
    ],
)
def test_a_wrong_path_is_reported_where_it_went_wrong(text: str, complaint: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        parse_path(text)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "definite"),
    [("$", True), ("$.a[0].1['b']", True), ("$['a','b']", False), ("$[0,1]", False),
     ("$.*", False), ("$[0:1]", False), ("$..a", False)],
)  # fmt: skip
def test_a_path_is_definite_when_it_can_mean_one_place_only(text: str, definite: bool) -> None:
    assert parse_path(text).definite is definite


@given(st.text(alphabet="$.*[]'\",:0123abc \\-?()@", max_size=20))
def test_every_text_is_a_path_or_refused_as_none(text: str) -> None:
    with suppress(JSONPathError):
        assert parse_path(text).text == text


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4))
def test_quoted_names_are_read_back_as_they_are(names: list[str]) -> None:
    quoted = [name.replace("\\", "\\\\").replace("'", "\\'") for name in names]
    text = "$[" + ",".join(f"'{name}'" for name in quoted) + "]"
    assert parse_path(text).steps == (Members(tuple(names)),)
