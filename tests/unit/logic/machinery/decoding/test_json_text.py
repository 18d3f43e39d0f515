"""JSON bodies: limits that hold before values are built."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.decoding import DecodeError, LimitExceeded, Limits, decode_json
from skerry.logic.machinery.decoding.json_text import max_values

FEW = Limits(nodes=50, depth=10)
values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**63), 2**64 - 1) | st.text(alphabet='ab,[{:"\\', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(alphabet='ab,[{:"\\', max_size=4), inner, max_size=5)
    ),
    max_leaves=40,
)  # fmt: skip


def count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + (sum(count(member) for member in value.values()) or 1)
    if isinstance(value, list):
        return 1 + (sum(count(item) for item in value) or 1)
    return 1


def height(value: object) -> int:
    members = value.values() if isinstance(value, dict) else value
    if isinstance(members, str) or not hasattr(members, "__iter__"):
        return 0
    return 1 + max((height(member) for member in members), default=0)


@given(values, st.booleans())
def test_a_document_is_refused_exactly_when_it_exceeds_a_limit(value: object, dense: bool) -> None:
    text = json.dumps(value, separators=(",", ":") if dense else (" , ", " : ")).encode()
    assert max_values(text) >= count(value)
    fits = height(value) <= FEW.depth and count(value) <= FEW.nodes
    try:
        assert decode_json(text, FEW) == orjson.loads(text)
    except LimitExceeded:
        assert count(value) > FEW.nodes
    except DecodeError:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"1," * 300_000 + b"1]",
        b"[" + b"[]," * 300_000 + b"[]]",
        b"[" + b"{}," * 300_000 + b"{}]",
        b"{" + b",".join(b'"k%d":1' % i for i in range(180_000)) + b"}",
        b"[[" + b"],[" * 300_000 + b"]]",
        b"[" + b'"\\",",' * 200_000 + b"1]",
    ],
)
def test_too_many_values_are_refused(text: bytes) -> None:
    with pytest.raises(LimitExceeded, match="want at most 100000"):
        decode_json(text)


def test_separators_inside_text_are_no_values() -> None:
    body = orjson.dumps({"a": ",[{" * 100_000, "b": '\\",' * 100_000})
    assert len(decode_json(body)["a"]) == 300_000


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 1_000_000,
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b"[" * 201 + b"]" * 201,
        b"[1e999]",
        b"[" + b"9" * 1_000_000 + b"]",
        b'["\\ud800"]',
        b"[NaN]",
        b'"',
        b"",
    ],
)
def test_hostile_json_is_refused(text: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_json(text)


def test_nesting_up_to_the_limit_is_read() -> None:
    assert decode_json(b"[" * 200 + b"]" * 200)


@pytest.mark.parametrize("text", [b'["a\xffb"]', b'["\xed\xa0\x80"]', b'["\xc3"]'])
def test_what_is_not_utf_8_is_read_as_go_reads_it(text: bytes) -> None:
    (value,) = decode_json(text)
    assert set(value) <= set("ab\ufffd")
    assert "\ufffd" in value


def test_limits_hold_for_what_was_made_readable() -> None:
    with pytest.raises(DecodeError):
        decode_json(b'{"\xff":' * 300 + b"1" + b"}" * 300)
