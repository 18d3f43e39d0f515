"""The book of a placement survives being written and read, and forgets what no window needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.guards.book import Book, Charge, Hold, book_of, hold_of, removals_with

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
