from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.text import shortened


def test_long_text_is_cut_and_says_how_much_is_left_out() -> None:
    assert shortened("abcdef", 4) == "abcd... (2 more characters)"


@given(st.text(max_size=50), st.integers(0, 60))
def test_text_within_the_limit_is_kept_and_nothing_grows_without_bound(text: str, n: int) -> None:
    made = shortened(text, n)
    assert made == text if len(text) <= n else len(made) <= n + 30
