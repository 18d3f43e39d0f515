"""Sets of destinations survive being packed, and what is no packing is said to be corrupt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.history.packing import (
    SLOT_LIMIT,
    Corrupt,
    Standing,
    key_of,
    packed_keys,
    packed_slots,
    packed_state,
    unpacked_keys,
    unpacked_slots,
    unpacked_state,
)
from skerry.logic.fleet.placement.records import Destination

numbers = st.integers(0, SLOT_LIMIT - 1)
words = st.text(max_size=5)
standings = st.builds(
    Standing,
    st.builds(Destination, words, words, words, words),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 9),
)


@given(st.sets(st.integers(0, 2**64 - 1)))
def test_keys_survive(keys: set[int]) -> None:
    assert set(unpacked_keys(packed_keys(keys))) == keys


@given(st.sets(numbers))
def test_slots_survive(slots: set[int]) -> None:
    assert set(unpacked_slots(packed_slots(slots))) == slots


@given(st.lists(standings, unique_by=lambda each: each.destination))
def test_states_survive_in_the_order_of_destinations(found: list[Standing]) -> None:
    assert unpacked_state(packed_state(found)) == sorted(found, key=lambda each: each.destination)


def test_the_key_of_a_destination_is_the_same_in_every_process() -> None:
    assert key_of(Destination("c", "l", "t", "u")) == 6979418473996057563


def test_names_that_run_together_have_different_keys() -> None:
    assert key_of(Destination("a", "bc", "t", "u")) != key_of(Destination("ab", "c", "t", "u"))


def test_ten_thousand_slots_in_a_row_take_a_hundred_bytes() -> None:
    assert len(packed_slots(range(10_000))) < 100


@pytest.mark.parametrize("text", ["%", "AAAA", "////"])
def test_what_is_no_packing_is_corrupt(text: str) -> None:
    for unpacked in (unpacked_keys, unpacked_slots, unpacked_state):
        with pytest.raises(Corrupt):
            unpacked(text)


def test_no_record_has_more_destinations_than_a_page() -> None:
    one = Standing(Destination("c", "l", "s", "u"), None, None)
    assert len(unpacked_state(packed_state([one] * 10_000))) == 10_000
    with pytest.raises(Corrupt, match="10001 destinations: want at most 10000 in a record"):
        unpacked_state(packed_state([one] * 10_001))
