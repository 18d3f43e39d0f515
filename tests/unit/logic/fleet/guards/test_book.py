"""The book of a placement survives being written and read, and forgets what no window needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import GUARD_FINALIZER
from skerry.logic.fleet.guards.book import (
    DESTINATIONS,
    OBJECTS,
    Book,
    Charge,
    Hold,
    book_entries,
    book_of,
    has_finalizer,
    hold_of,
    removals_with,
    status_with,
)

_NOW = datetime(2025, 6, 6, 12, 0, 0, 250_000, tzinfo=UTC)
_MEMBER = st.binary(min_size=8, max_size=8)
_CHARGE = st.builds(
    Charge,
    st.datetimes(datetime(2024, 1, 1), datetime(2026, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),  # noqa: DTZ001 - made UTC
    st.frozensets(_MEMBER, min_size=1, max_size=4),
    st.sampled_from(["", "Confirm", "Bypass"]),
)
_HOLD = Hold("7f21c0", 51, 50, 9_900, _NOW, "why", ("fleet",))


def members(*numbers: int) -> frozenset[bytes]:
    return frozenset(number.to_bytes(8) for number in numbers)


@given(st.lists(_CHARGE, max_size=4).map(tuple), st.sampled_from([None, _HOLD]))
def test_a_book_is_read_as_it_was_written(charges: tuple[Charge, ...], hold: Hold | None) -> None:
    book = Book(charges, hold)
    assert book_of({"removals": removals_with({}, book)}) == book


def test_what_others_hold_stays_in_the_status() -> None:
    objects = _HOLD.written()
    status = {"removals": {"heldObjects": objects, "held": _HOLD.written()}}
    assert removals_with(status, Book()) == {"heldObjects": objects}
    assert book_of(status).hold == _HOLD
    assert hold_of(None) is None


def test_what_is_no_charge_is_none() -> None:
    broken = [{"time": "soon", "destinations": ""}, {"destinations": "AA=="}, {"time": "x"}]
    assert book_of({"removals": {"charges": broken}}) == Book()
    assert book_of(None) == Book()


def test_charges_count_within_a_window_and_paid_ones_for_themselves() -> None:
    book = Book(
        (
            Charge(_NOW - timedelta(minutes=20), members(1)),
            Charge(_NOW - timedelta(minutes=5), members(2)),
            Charge(_NOW - timedelta(minutes=5), members(3), "Confirm"),
            Charge(_NOW - timedelta(minutes=16), members(4), "Bypass"),
        )
    )
    assert book.charged(_NOW - timedelta(minutes=10)) == members(2)
    assert book.charged(_NOW - timedelta(minutes=30)) == members(1, 2)
    assert book.paid(_NOW) == members(3)


def test_old_charges_go_with_the_next_one_unless_something_is_held() -> None:
    old = Charge(_NOW - timedelta(hours=1), members(1))
    new = Charge(_NOW, members(2))
    window = timedelta(minutes=10)
    assert Book((old,)).with_charge(new, window).charges == (new,)
    held = _HOLD._replace(since=old.time + timedelta(minutes=1))
    assert Book((old,), held).with_charge(new, window).charges == (old, new)
    assert Book((old,)).with_charge(Charge(_NOW, frozenset()), window).charges == (old,)


def test_a_charge_is_kept_for_its_window_or_for_as_long_as_a_confirmation_counts() -> None:
    new = Charge(_NOW, members(2))
    for minutes, window, stays in ((14, 1, True), (15, 1, False), (19, 20, True), (20, 20, False)):
        old = Charge(_NOW - timedelta(minutes=minutes), members(1))
        found = Book((old,)).with_charge(new, timedelta(minutes=window)).charges
        assert (old in found) is stays, minutes


@given(st.lists(_CHARGE, max_size=3).map(tuple), st.lists(_CHARGE, max_size=3).map(tuple))
def test_the_parts_of_a_book_do_not_touch_each_other(
    destinations: tuple[Charge, ...], objects: tuple[Charge, ...]
) -> None:
    status = {"matchingLocationCount": 3}
    status = status_with(status, Book(destinations, _HOLD), DESTINATIONS)
    status = status_with(status, Book(objects), OBJECTS)
    assert book_of(status, DESTINATIONS) == Book(destinations, _HOLD)
    assert book_of(status, OBJECTS) == Book(objects)
    assert status["matchingLocationCount"] == 3
    empty = status_with(status_with(status, Book(), DESTINATIONS), Book(), OBJECTS)
    assert empty == {"matchingLocationCount": 3}


def test_a_status_that_is_not_there_yet_gets_the_fields_it_must_have() -> None:
    found = status_with(None, Book((), _HOLD))
    assert (found["specGeneration"], found["matchingLocationCount"]) == (0, 0)


def test_whoever_changes_any_of_a_book_is_seen() -> None:
    placement = {"metadata": {}, "status": {"removals": {"held": {"name": "a", "of": 1}}}}
    same = {"metadata": {}, "status": {"removals": {"held": {"of": 1, "name": "a"}}}}
    other = {"metadata": {}, "status": {"removals": {"held": {"of": 2, "name": "a"}}}}
    assert book_entries(placement) == book_entries(same) != book_entries(other)
    assert book_entries({"metadata": {}}) == book_entries({"status": {}}) == frozenset()


def test_a_deletion_waits_while_the_finalizer_of_guards_is_there() -> None:
    assert has_finalizer({"metadata": {"finalizers": ["x", GUARD_FINALIZER]}})
    assert not has_finalizer({"metadata": {"finalizers": ["x"]}})
    assert not has_finalizer({"metadata": {}})


@pytest.mark.parametrize(
    "change",
    [
        {"since": "0001-01-01T00:00:00+14:00"},
        {"since": "0001-01-01T00:00:00Z"},
        {"since": "9999-12-31T23:59:59Z"},
        {"since": "soon"},
        {"since": None},
        {"removed": "many"},
        {"limit": None},
        {"guards": 5},
    ],
)
def test_what_is_no_hold_is_none(change: dict[str, object]) -> None:
    """The owner of a placement may write its status, and every event of it is read."""
    assert hold_of({**_HOLD.written(), **change}) is None
    assert hold_of({"name": "a"}) is None


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z", 5, None])
def test_a_charge_at_a_time_that_cannot_be_reckoned_with_is_none(time: object) -> None:
    charges = [{"time": time, "destinations": "AAAAAAAAAAA="}]
    assert book_of({"removals": {"charges": charges}}) == Book()
