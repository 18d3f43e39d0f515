"""Untagged YAML scalars mean what they mean to kubectl."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.decoding.scalars import Scalar, resolved
from tests.kit.counting import steps


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("On", True), ("y", True), ("TRUE", True),
        ("no", False), ("off", False), ("N", False), ("False", False),
        ("", None), ("~", None), ("Null", None),
        ("yEs", "yEs"), ("nULL", "nULL"), ("hello", "hello"), ("=", "="),
        ("0", 0), ("-7", -7), ("+12", 12), ("1_000", 1000), ("0x1F", 31), ("0b101", 5),
        ("017", 15), ("0o17", 15), ("-017", -15), ("08", 8), ("1__0", 10),
        ("18446744073709551615", 18446744073709551615), ("-9223372036854775808", -(1 << 63)),
        ("18446744073709551616", 18446744073709551616.0),
        ("1.5", 1.5), (".5", 0.5), ("1.", 1), ("1.0", 1), ("1e3", 1000), ("1E-2", 0.01),
        ("1e400", "1e400"), ("-", "-"), (".", "."), ("+", "+"), ("1e", "1e"), ("0x", "0x"),
        ("1:30", "1:30"), ("2001-12-14", "2001-12-14"), ("1.2.3", "1.2.3"), ("٣", "٣"),
        ("9" * 401, "9" * 401), ("0x" + "f" * 500, "0x" + "f" * 500),
    ],
)  # fmt: skip
def test_a_plain_scalar_is_resolved_as_go_resolves_it(text: str, value: Scalar) -> None:
    found = resolved(text)
    assert (found, type(found)) == (value, type(value))


@given(st.text(alphabet="0123456789_+-.eExob", max_size=12))
def test_any_text_has_a_value(text: str) -> None:
    found = resolved(text)
    assert found is None or isinstance(found, str | int | float)


def test_long_digits_cost_no_more_than_short_ones() -> None:
    assert steps(lambda: resolved("9" * 100_000)) <= steps(lambda: resolved("9" * 10))
