from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.text import one_line, shortened


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
