from __future__ import annotations

import json
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.text import float_text, inert, inert_json, inert_line, one_line, shortened


def test_long_text_is_cut_and_says_how_much_is_left_out() -> None:
    assert shortened("abcdef", 4) == "abcd... (2 more characters)"


@given(st.text(max_size=50), st.integers(0, 60))
def test_text_within_the_limit_is_kept_and_nothing_grows_without_bound(text: str, n: int) -> None:
    made = shortened(text, n)
    assert made == text if len(text) <= n else len(made) <= n + 30


@given(st.text())
def test_one_line_has_no_control_characters_and_single_spaces(text: str) -> None:
    made = one_line(text)
    assert made.isprintable()
    assert "  " not in made
    assert one_line(made) == made


@given(st.text())
def test_inert_text_has_nothing_that_a_terminal_obeys(text: str) -> None:
    made = inert(text)
    assert len(made) == len(text)
    assert [c for c in made if category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t"] == []
    assert inert(made) == made
    assert inert_line(text) == made.replace("\n", " ").replace("\t", " ")
    assert made.encode().decode() == made


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_inert_json_is_one_line_and_reads_as_the_same_value(value: object) -> None:
    made = inert_json(json.dumps(value, ensure_ascii=False))
    assert inert_line(made) == made
    assert json.loads(made) == value
    assert inert_json(made) == made


@pytest.mark.parametrize(
    "text", ["", "plain", "sm\u00f8rg\u00e5s \u65e5\u672c", "a\u00a0b\u200db", "\U0001f600"]
)
def test_what_is_only_read_is_inert_as_it_is(text: str) -> None:
    assert inert(text) == inert_line(text) == text


def test_what_moves_the_writing_about_is_replaced() -> None:
    assert inert("\x1b[2J\x7f\x9b1m\x00\u202e\u2066\ud800") == "?[2J??1m????"
    assert inert("a\r\n\tb\u2028c") == "a \n\tb c"
    assert inert_line("a\r\n\tb\u2028c") == "a   b c"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-2.0, "-2"),
        (1.5, "1.5"),
        (1 / 3, "0.3333333333333333"),
        (100000.0, "100000"),
        (999999.5, "999999.5"),
        (1000000.0, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (1e15, "1e+15"),
        (1e21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
        (0.0001, "0.0001"),
        (0.000123, "0.000123"),
        (0.00001, "1e-05"),
        (5e-324, "5e-324"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
        (10, "10"),
        (1000000, "1e+06"),
    ],
)
def test_floats_are_written_as_go_writes_them(value: float, text: str) -> None:
    assert float_text(value) == text


@given(st.floats(allow_nan=False))
def test_what_is_written_reads_as_the_same_number(value: float) -> None:
    assert float(float_text(value)) == value
