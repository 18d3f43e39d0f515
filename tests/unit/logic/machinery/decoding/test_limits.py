"""The limits of one document hold for JSON and for YAML, and a little less passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skerry.logic.machinery.decoding.json_text import decode_json
from skerry.logic.machinery.decoding.limits import (
    DEFAULT_LIMITS,
    DecodeError,
    LimitExceeded,
    Limits,
)
from skerry.logic.machinery.decoding.yaml_text import decode_yaml

SMALL = Limits(depth=5, nodes=50, aliases=2, expanded_bytes=200, repeated_values=20)


def test_too_much_is_a_failure_to_decode_and_says_so() -> None:
    assert issubclass(LimitExceeded, DecodeError)
    assert issubclass(DecodeError, ValueError)


Decode = Callable[[bytes, Limits], Any]


@pytest.mark.parametrize("decode", [decode_json, decode_yaml])
def test_depth_is_limited_in_both_notations(decode: Decode) -> None:
    assert decode(b"[" * 5 + b"]" * 5, SMALL) == [[[[[]]]]]
    with pytest.raises(DecodeError, match="nested more than 5 levels deep"):
        decode(b"[" * 6 + b"]" * 6, SMALL)


@pytest.mark.parametrize("decode", [decode_json, decode_yaml])
def test_values_are_counted_in_both_notations(decode: Decode) -> None:
    assert len(decode(b"[" + b"1," * 40 + b"1]", SMALL)) == 41
    with pytest.raises(LimitExceeded):
        decode(b"[" + b"1," * 60 + b"1]", SMALL)


def test_what_yaml_repeats_counts_each_time() -> None:
    few = b"a: &a [1, 2]\nb: [*a, *a]\n"
    assert decode_yaml(few, SMALL) == {"a": [1, 2], "b": [[1, 2], [1, 2]]}
    with pytest.raises(LimitExceeded):
        decode_yaml(b"a: &a [1, 2]\nb: [*a, *a, *a]\n", SMALL)
    with pytest.raises(LimitExceeded):
        decode_yaml(b"a: &a [" + b"1," * 18 + b"1]\nb: [*a, *a]\n", SMALL)


def test_ordinary_documents_are_far_below_the_limits() -> None:
    assert DEFAULT_LIMITS.depth >= 100
    assert DEFAULT_LIMITS.nodes >= 40_000
