"""Whose turn it is, compared with a list that is looked through each time."""

from __future__ import annotations

import socket
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.server.http.arrivals import Arrivals

# What waits is never looked at.
SOCKET = cast(socket.socket, None)


class Simple:
    """The same, without a thought for how long it takes."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, str]] = []
        self.under_way: Counter[str] = Counter()
        self._number = 0

    def add(self, address: str) -> None:
        self._number += 1
        self.waiting.append((self._number, address))

    def next(self) -> tuple[int, str]:
        return min(self.waiting, key=lambda each: (self.under_way[each[1]], -each[0]))


def arrivals(waiting: str = "", under_way: dict[str, int] | None = None) -> Arrivals:
    made = Arrivals()
    for address, count in (under_way or {}).items():
        for _ in range(count):
            made.begin(address)
    for address in waiting:
        made.add(SOCKET, address, 0.0)
    return made


def order(waiting: Arrivals) -> str:
    """Return the addresses in the order in which their handshakes begin; none of them ends."""
    found = ""
    while len(waiting):
        address = waiting.pop().address
        waiting.begin(address)
        found += address
    return found


@pytest.mark.parametrize(
    ("came", "served"),
    [
        ("abc", "cba"),
        ("aaab", "baaa"),
        ("baaa", "abaa"),
        ("aaabbb", "bababa"),
        ("abaaacaaa", "acbaaaaaa"),
    ],
)
def test_addresses_take_turns_and_the_newest_is_first(came: str, served: str) -> None:
    assert order(arrivals(came)) == served


def test_of_one_address_the_newest_is_next() -> None:
    waiting = arrivals("aaaa")
    assert [waiting.pop().number for _ in range(4)] == [4, 3, 2, 1]


def test_whose_handshake_ended_has_a_turn_again() -> None:
    waiting = arrivals("aabb", {"a": 1, "b": 2})
    waiting.end("b")
    waiting.end("b")
    assert waiting.pop().address == "b"


@given(st.data())
def test_turns_are_those_of_a_list_that_is_looked_through(data: Any) -> None:
    real, simple = Arrivals(), Simple()
    steps = st.lists(
        st.tuples(st.sampled_from(["add", "add", "pop", "drop", "end"]), st.sampled_from("abc")),
        max_size=60,
    )
    for step, address in data.draw(steps):
        if step == "add":
            real.add(SOCKET, address, 0.0)
            simple.add(address)
        elif step == "pop" and simple.waiting:
            wanted = simple.next()
            found = real.pop()
            assert (found.number, found.address) == wanted
            simple.waiting.remove(wanted)
            real.begin(found.address)
            simple.under_way[found.address] += 1
        elif step == "drop" and simple.waiting:
            at = data.draw(st.integers(0, len(simple.waiting) - 1))
            real.remove(real.oldest(at + 1)[at])
            del simple.waiting[at]
        elif step == "end" and simple.under_way[address]:
            real.end(address)
            simple.under_way[address] -= 1
        assert [(each.number, each.address) for each in real] == simple.waiting
        assert len(real._turns) <= 2 * len(real) + 65


@pytest.mark.parametrize(
    ("under_way", "waiting", "begins"),
    [
        # Nobody waits.
        ({}, "", False),
        # An address alone has all, and no more.
        ({"a": 7}, "a", True),
        ({"a": 8}, "a", False),
        # Half of it was never meant for one; another address has room at once.
        ({"a": 8}, "b", True),
        ({"a": 8, "b": 1}, "b", True),
        ({"a": 8, "b": 2}, "b", False),
        # And so has a third one, whatever those two hold.
        ({"a": 8, "b": 2}, "c", True),
        ({"a": 8, "b": 8}, "c", True),
        ({"a": 8, "b": 4, "c": 2}, "d", True),
        # Addresses that have one each have none too much.
        (dict.fromkeys("abcdefgh", 1), "i", False),
        (dict.fromkeys("abcdefg", 1), "i", True),
        # Where one is first in turn, the others wait for it.
        ({"a": 8}, "ba", True),
        # Fewer are allowed than are under way.
        ({"a": 20}, "b", True),
        ({"a": 20}, "a", False),
    ],
)
def test_who_may_begin_where_eight_are_allowed(
    under_way: dict[str, int], waiting: str, begins: bool
) -> None:
    assert arrivals(waiting, under_way).may_begin(8) is begins


def test_one_slot_is_for_one() -> None:
    assert arrivals("a").may_begin(1)
    assert not arrivals("b", {"a": 1}).may_begin(1)


@pytest.mark.parametrize("allowed", [2, 12, 64])
def test_one_address_after_another_that_takes_all_it_can_leaves_room_for_the_next(
    allowed: int,
) -> None:
    waiting, begun = Arrivals(), 0
    for number in range(allowed):
        for _ in range(allowed + 1):
            waiting.add(SOCKET, f"10.0.0.{number}", 0.0)
        before = begun
        while waiting.may_begin(allowed):
            waiting.begin(waiting.pop().address)
            begun += 1
        assert begun > before, "whoever is new begins at once"
    # A sum of shares: the whole, a third, a fourth, and so on.
    assert begun <= 5 * allowed
