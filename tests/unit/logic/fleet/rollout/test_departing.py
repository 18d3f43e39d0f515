"""Who leaves now, of those that nobody wants any more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.rollout.departing import depart
from skerry.logic.fleet.rollout.spec import Portion

SLOTS = st.sets(st.integers(1, 40))


def test_as_many_leave_as_there_is_room_and_the_first_go_first() -> None:
    present = BitMap(range(1, 11))
    unwanted, nobody = BitMap([2, 3, 5, 7]), BitMap()
    found = depart(Portion(2), nobody, present, unwanted, nobody, nobody)
    assert (list(found.stays), list(found.departing)) == ([5, 7], [2, 3, 5, 7])
    # They have gone from the slices, and one of their mailboxes is empty.
    present -= BitMap([2, 3])
    found = depart(Portion(2), found.departing, present, BitMap([5, 7]), nobody, BitMap([2]))
    assert (list(found.stays), list(found.departing)) == ([7], [3, 5, 7])


def test_who_waits_for_nobody_takes_no_room() -> None:
    present = BitMap(range(1, 6))
    found = depart(Portion(1), BitMap(), present, BitMap([1, 2, 3]), BitMap([1, 2]), BitMap())
    assert (list(found.stays), list(found.departing)) == ([], [3])


@given(SLOTS, SLOTS, SLOTS, st.integers(1, 5))
def test_never_more_leave_at_once_and_everybody_does(
    present: set[int], unwanted: set[int], left: set[int], pace: int
) -> None:
    there = BitMap(present)
    unwanted_there = BitMap(unwanted) & there
    departing = BitMap()
    for _ in range(60):
        stays, departing = depart(
            Portion(pace), departing, there, unwanted_there, BitMap(), BitMap(left)
        )
        there -= unwanted_there - stays
        unwanted_there &= there
        assert len(departing - there - BitMap(left)) <= pace
        left |= set(list(departing - there)[:1])
    assert not there & BitMap(unwanted)
    assert not departing - BitMap(left)
