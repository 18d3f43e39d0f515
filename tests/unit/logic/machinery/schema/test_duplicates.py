"""Keys given twice are found wherever they stand, and nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.schema.duplicates import duplicate_fields, duplicate_keys

TEXTS = st.text(alphabet='ab":\\ \n', max_size=6)
VALUES = st.recursive(
    st.one_of(st.integers(0, 9), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ('{"a":1,"a":2}', ["a"]),
        ('{"a":{"b":1,"b":2},"a":3}', ["a", "a.b"]),
        ('{"l":[{"x":1},{"x":1,"x":2}]}', ["l[1].x"]),
        ('{"a" : 1, "a" : 2}', ["a"]),
        ('{"a":1,"\\u0061":2}', ["a"]),
        ('{"a":1,"b":"a\\":"}', []),
        # What is escaped in the body stands plain in what is encoded, and must not make up for it.
        ('{"a":1,"a":2,"b":"\\"\\u003a"}', ["a"]),
        ('{"a":1,"a":2,"b":"\\"\\u0020:"}', ["a"]),
        ('{"a":1, "b":"\\" :", "a":2}', ["a"]),
        ("{}", []),
        ("no json", []),
        ("[" * 100_000, []),
    ],
)
@pytest.mark.parametrize("hinted", [False, True])
def test_every_repeated_field_is_named_once(body: str, paths: list[str], hinted: bool) -> None:
    decoded: Any = None
    if hinted and body.startswith("{"):
        decoded = orjson.loads(body)
    assert duplicate_keys(body.encode(), decoded) == paths


@given(VALUES, st.booleans())
def test_what_an_encoder_wrote_repeats_nothing(value: Any, spaced: bool) -> None:
    body = json.dumps(value, indent=1 if spaced else None).encode()
    assert duplicate_keys(body, orjson.loads(body)) == duplicate_keys(body) == []


def test_a_repeated_field_is_said_as_strict_decoding_says_it() -> None:
    assert duplicate_fields(b'{"spec":{"x":1,"x":1}}') == ['duplicate field "spec.x"']
