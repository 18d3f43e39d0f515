"""Destinations keep their pages, and none that stays is ever in no page."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import Mailbox, location_ref
from skerry.logic.fleet.placement.pages import MAX_DESTINATIONS, PageWrite, pages
from skerry.logic.fleet.translation.route import destinations_of

NAMES = tuple(f"p{number}" for number in range(1, 20))
State = dict[str, tuple[int, ...]]

_destinations = st.integers(0, 15)
_wanted = st.lists(_destinations, unique=True).map(sorted)
# Any state at all: full, overfull and empty pages, destinations that stand twice, foreign pages.
_states = st.dictionaries(
    st.sampled_from([*NAMES[:5], "foreign"]),
    st.lists(_destinations, unique=True, max_size=6).map(tuple),
    max_size=5,
)
_limits = st.integers(1, 4)


def union(state: Mapping[str, Sequence[int]]) -> set[int]:
    return {each for page in state.values() for each in page}


def written(state: State, write: PageWrite[int]) -> State:
    rest = {name: page for name, page in state.items() if name != write.name}
    return rest if write.members is None else {**rest, write.name: write.members}


def history(
    state: State, wanted: Sequence[int], limit: int, rng: random.Random | None = None
) -> list[State]:
    """Return the state after each single write, receivers in any order, givers in theirs."""
    found = pages(state, wanted, NAMES, limit)
    receivers, givers = list(found.receivers), list(found.givers)
    if rng is not None:
        rng.shuffle(receivers)
    states = [state]
    for write in (*receivers, *givers):
        states.append(written(states[-1], write))
    return states


@given(_states, _wanted, _limits, st.randoms(use_true_random=False))
def test_what_stays_is_in_the_union_after_every_single_write(
    state: State, wanted: list[int], limit: int, rng: random.Random
) -> None:
    staying = union(state) & set(wanted)
    for each in history(state, wanted, limit, rng):
        assert staying <= union(each)


@given(_states, _wanted, _limits, st.sampled_from(NAMES[:5]), st.randoms(use_true_random=False))
def test_nothing_is_given_up_to_a_page_that_is_not_there_any_more(
    state: State, wanted: list[int], limit: int, gone: str, rng: random.Random
) -> None:
    """A page was removed and nobody knows: its removal's answer was lost."""
    there = {name: page for name, page in state.items() if name != gone}
    staying = union(there) & set(wanted)
    found = pages(state, wanted, NAMES, limit)
    receivers = list(found.receivers)
    rng.shuffle(receivers)
    refused = False
    for write in receivers:  # all are tried
        if write.name == gone and gone in state:
            refused = True
            continue
        there = written(there, write)
        assert staying <= union(there)
    for write in () if refused else found.givers:
        if write.name == gone and gone in state and write.members is not None:
            break
        there = written(there, write)
        assert staying <= union(there)


@given(_states, _wanted, _limits)
def test_the_writes_reach_the_goal_and_then_there_are_none(
    state: State, wanted: list[int], limit: int
) -> None:
    after = history(state, wanted, limit)[-1]
    everything = [each for page in after.values() for each in page]
    assert sorted(everything) == wanted, "each once"
    assert all(list(page) == sorted(page) for page in after.values())
    assert NAMES[0] in after
    assert "foreign" not in after
    assert not any(pages(after, wanted, NAMES, limit))


@given(_states, _wanted, _limits, st.integers(0, 20), st.randoms(use_true_random=False))
def test_a_process_that_ends_between_writes_leaves_what_the_next_one_mends(
    state: State, wanted: list[int], limit: int, at: int, rng: random.Random
) -> None:
    states = history(state, wanted, limit, rng)
    left = states[min(at, len(states) - 1)]
    mended = history(left, wanted, limit)[-1]
    assert sorted(each for page in mended.values() for each in page) == wanted


@given(_states, _wanted, _limits)
def test_no_page_grows_beyond_the_limit(state: State, wanted: list[int], limit: int) -> None:
    after = history(state, wanted, limit)[-1]
    for name, page in after.items():
        assert len(page) <= max(limit, len(state.get(name, ())))


@given(_states, _wanted, _limits, _destinations)
def test_one_newcomer_is_written_to_one_page(
    state: State, wanted: list[int], limit: int, newcomer: int
) -> None:
    before = history(state, wanted, limit)[-1]
    found = pages(before, sorted({*wanted, newcomer}), NAMES, limit)
    assert len(found.receivers) == (newcomer not in wanted)
    assert not found.givers


@given(_states, _wanted, _limits, _destinations)
def test_one_that_leaves_is_dropped_from_one_page_and_moves_nobody(
    state: State, wanted: list[int], limit: int, leaver: int
) -> None:
    before = history(state, wanted, limit)[-1]
    after = history(before, [each for each in wanted if each != leaver], limit)[-1]
    for name, page in after.items():
        assert page == tuple(each for each in before[name] if each != leaver)


def test_newcomers_take_the_fullest_page_with_room_and_then_new_pages() -> None:
    state: State = {"p1": (1,), "p2": (2, 3), "p3": (4, 5, 6)}
    after = history(state, [*range(1, 12)], 3)[-1]
    assert after == {"p1": (1, 8, 9), "p2": (2, 3, 7), "p3": (4, 5, 6), "p4": (10, 11)}


def test_a_page_whose_name_is_lost_goes_after_its_destinations_are_elsewhere() -> None:
    found = pages({"p1": (1, 2), "foreign": (3, 4)}, [1, 2, 3, 4], NAMES, 2)
    assert found.receivers == (PageWrite("p2", (3, 4)),)
    assert found.givers == (PageWrite("foreign", None),)


def test_a_large_page_of_a_previous_version_is_left_as_it_is() -> None:
    large = tuple(range(10 * MAX_DESTINATIONS))
    assert not any(pages({"p1": large}, large, NAMES))
    found = pages({"p1": large}, [-1, *large], NAMES)
    assert found.receivers == (PageWrite("p2", (-1,)),)


def test_of_what_stands_twice_the_first_page_keeps_it() -> None:
    found = pages({"p1": (1, 2), "p2": (2, 3)}, [1, 2, 3], NAMES, 2)
    assert found.receivers == (PageWrite("p1", (1, 2)),), "written first, to know that it is there"
    assert found.givers == (PageWrite("p2", (3,)),)


def test_a_page_that_gives_and_keeps_is_written_before_it_is_relied_on() -> None:
    found = pages({"p1": (1,), "p2": (1, 2), "p3": (2, 3)}, [1, 2, 3], NAMES, 2)
    assert found.receivers == (PageWrite("p1", (1,)),)
    assert found.givers == (PageWrite("p2", (2,)), PageWrite("p3", (3,)))


def test_a_page_goes_only_after_the_one_that_has_its_destinations_has_been_written() -> None:
    found = pages({"p1": (1, 2), "foreign": (1,)}, [1, 2], NAMES, 2)
    assert found.receivers == (PageWrite("p1", (1, 2)),)
    assert found.givers == (PageWrite("foreign", None),)
    without = pages({"p1": (1, 2), "foreign": (3,)}, [1, 2], NAMES, 2)
    assert without.receivers == (), "what leaves is on no other page"


def test_the_translator_takes_what_stands_twice_for_one() -> None:
    piece = {
        "destinations": [
            {"cluster": "imw", "locationName": "l", "syncTargetName": "t", "syncTargetUID": "u"}
        ]
    }
    once = {Mailbox("imw", "u"): (location_ref("imw", "l"),)}
    assert destinations_of([piece]) == destinations_of([piece, piece]) == once
