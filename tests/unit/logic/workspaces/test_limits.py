"""What a logical cluster may hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.workspaces.limits import Limits, Usage, parse_limit, refusal, with_annotations


@pytest.mark.parametrize(
    ("usage", "creates", "refused"),
    [
        (Usage(9, 99), True, ""),
        (Usage(10, 99), True, "objects=10, limited: objects=10"),
        (Usage(10, 99), False, ""),
        (Usage(9, 100), True, "used: bytes=100, limited: bytes=100"),
        (Usage(9, 100), False, "used: bytes=100, limited: bytes=100"),
    ],
)
def test_a_full_cluster_refuses_what_makes_it_larger(
    usage: Usage, creates: bool, refused: str
) -> None:
    why = refusal(Limits(10, 100), usage, creates=creates)
    assert (refused in why) == bool(refused or not why)
    assert bool(why) == bool(refused)


def test_zero_is_no_limit() -> None:
    assert refusal(Limits(), Usage(10**9, 10**15), creates=True) == ""


@given(st.integers(min_value=0, max_value=10**18 - 1))
def test_whole_numbers_are_limits(number: int) -> None:
    assert parse_limit(str(number)) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e9", "٣", "9" * 19, " 1", "0x1", "many"])
def test_anything_else_is_none(text: str) -> None:
    assert parse_limit(text) is None


def test_annotations_replace_the_default_one_by_one() -> None:
    default = Limits(10, 100)
    assert with_annotations(default, "5", "") == Limits(5, 100)
    assert with_annotations(default, "", "0") == Limits(10, 0)
    assert with_annotations(default, "x", "y") == default
