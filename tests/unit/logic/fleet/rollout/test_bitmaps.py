"""Sets of slots as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.rollout.bitmaps import MAX_SLOTS, decoded, encoded


@given(st.sets(st.integers(0, 100_000)))
def test_a_set_comes_back_and_equal_sets_are_equal_text(slots: set[int]) -> None:
    assert set(decoded(encoded(slots))) == slots
    assert encoded(sorted(slots)) == encoded(sorted(slots, reverse=True))


def test_ten_thousand_slots_take_a_few_kilobytes() -> None:
    assert len(encoded(range(0, 20_000, 2))) < 12_000
    assert len(encoded(range(10_000))) < 100


def test_more_slots_than_any_placement_has_are_no_set_of_slots_however_short_the_text() -> None:
    assert len(decoded(encoded(range(MAX_SLOTS)))) == MAX_SLOTS
    assert not decoded(encoded(range(MAX_SLOTS + 1)))
    everybody = BitMap().flip(0, 2**31)
    assert not decoded(encoded(everybody))


@pytest.mark.parametrize("text", [None, 7, "", "not base64!", "AAAA", "OjAAAAEAAA", "x" * 100])
def test_what_is_no_set_of_slots_is_empty(text: object) -> None:
    assert not decoded(text)
