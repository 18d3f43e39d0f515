"""Within any window no more goes than the budget and what was confirmed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.guards.book import Book, Charge
from skerry.logic.fleet.guards.budget import (
    FLOOR_RULE,
    Loss,
    Rule,
    Verdict,
    judge,
    rules_of,
)
from skerry.logic.fleet.guards.spec import Budget, guard_of

_NOW = datetime(2025, 6, 6, 12, tzinfo=UTC)
_WINDOW = timedelta(minutes=10)
_TEN = Rule("fleet", Budget("DestinationsRemoved", max=3, window=_WINDOW))


def members(*numbers: int) -> frozenset[bytes]:
    return frozenset(number.to_bytes(8) for number in numbers)


def lose(
    *numbers: int,
    of: int = 100,
    rules: tuple[Rule, ...] = (_TEN,),
    book: Book | None = None,
    confirm: str = "",
    minutes: float = 0,
    **more: Any,
) -> Verdict:
    now = _NOW + timedelta(minutes=minutes)
    return judge(Loss("u", members(*numbers), of, **more), rules, book or Book(), confirm, now)


def test_a_loss_within_the_budget_goes_and_is_charged() -> None:
    found = lose(1, 2, 3)
    assert found.held == frozenset()
    assert found.book.charges == (Charge(_NOW, members(1, 2, 3)),)


def test_a_loss_above_the_budget_is_held_whole_and_says_why() -> None:
    found = lose(1, 2, 3, 4)
    assert found.held == members(1, 2, 3, 4)
    assert found.book.charges == ()
    assert found.book.hold is not None
    assert found.book.hold.removed == 4
    assert found.book.hold.guards == ("fleet",)
    assert found.book.hold.why == (
        "PlacementGuard fleet: removals would come to 4 of 100 destinations within 10m (budget 3)"
    )


def test_small_losses_add_up_within_a_window() -> None:
    book = lose(1, 2).book
    assert lose(3, 4, book=book, minutes=9).held == members(3, 4)
    assert lose(3, 4, book=book, minutes=10).held == frozenset()


def test_a_destination_counts_once_per_window_however_often_it_goes() -> None:
    book = lose(1, 2, 3).book
    assert lose(1, book=book, minutes=5).held == frozenset()
    assert lose(1, book=book, minutes=5).book.charges == book.charges
    assert lose(1, 4, book=book, minutes=5).held == members(4)


def test_a_hold_does_not_end_because_time_passes() -> None:
    book = lose(1, 2).book
    held = lose(3, 4, book=book, minutes=5).book
    assert lose(3, 4, book=held, minutes=500).held == members(3, 4)


def test_a_hold_ends_when_the_rest_fits_the_budget() -> None:
    held = lose(1, 2, 3, 4).book
    found = lose(1, 2, 3, book=held, minutes=1)
    assert found.held == frozenset()
    assert found.book.hold is None
    assert len(found.book.charges) == 1


def test_a_confirmation_is_good_for_exactly_what_was_shown() -> None:
    held = lose(1, 2, 3, 4).book
    assert held.hold is not None
    name = held.hold.name
    found = lose(1, 2, 3, 4, book=held, confirm=name, minutes=1)
    assert found.confirmed
    assert found.held == frozenset()
    for other in ((1, 2, 3, 4, 5), (1, 2, 3, 5)):
        changed = lose(*other, book=held, confirm=name, minutes=1)
        assert not changed.confirmed
        assert changed.held == members(*other)
        assert changed.book.hold is not None
        assert changed.book.hold.name != name
        assert changed.book.hold.since == _NOW


def test_what_was_confirmed_takes_nothing_from_the_budget() -> None:
    held = lose(1, 2, 3, 4).book
    assert held.hold is not None
    after = lose(1, 2, 3, 4, book=held, confirm=held.hold.name).book
    assert lose(5, 6, 7, book=after, minutes=1).held == frozenset()


def test_what_a_request_paid_for_goes() -> None:
    paid = Book((Charge(_NOW, members(1, 2, 3, 4), "Confirm"),))
    assert lose(1, 2, 3, 4, book=paid, minutes=1).held == frozenset()
    assert lose(1, 2, 3, 4, book=paid, minutes=16).held == members(1, 2, 3, 4)


def test_a_guard_that_is_gone_leaves_what_it_asked() -> None:
    held = lose(1, 2, 3, 4).book
    assert held.hold is not None
    found = lose(1, 2, 3, 4, rules=(FLOOR_RULE,), book=held, minutes=1)
    assert found.held == members(1, 2, 3, 4)
    assert found.book.hold is not None
    assert found.book.hold.guards == ("fleet",)
    assert found.book.hold.why == held.hold.why
    again = lose(1, 2, 3, 4, rules=(), book=found.book, confirm=found.book.hold.name)
    assert again.confirmed
    assert lose(1, 2, 3, rules=(), book=held, minutes=1).held == frozenset()


def test_additions_do_not_make_a_hold_smaller() -> None:
    half = (Rule("", Budget("DestinationsRemoved", max=2, percent=50)),)
    held = lose(*range(6), of=10, rules=half).book
    assert lose(*range(6), of=20, rules=half, book=held).held == members(*range(6))


def test_what_is_protected_is_held_however_small() -> None:
    found = lose(1, 2, protected={members(1).__iter__().__next__(): ("fleet", "Location hq")})
    assert found.held == members(1, 2)
    assert found.book.hold is not None
    assert found.book.hold.why == "Location hq"
    assert lose(2, protected={b"x": ("fleet", "Location hq")}).held == frozenset()


def test_what_went_and_came_back_is_held_if_it_is_protected_since() -> None:
    book = lose(1, 2).book
    [one] = members(1)
    protected = {one: ("fleet", "Location hq")}
    assert lose(1, 2, book=book, minutes=1, protected=protected).held == members(1)
    # A request that was confirmed speaks for what is protected as well.
    paid = Book((Charge(_NOW, members(1), "Confirm"),))
    assert lose(1, book=paid, minutes=1, protected=protected).held == frozenset()


def test_a_hold_lists_each_protection_once_and_in_order() -> None:
    each = dict(
        zip(sorted(members(1, 2, 3)), (("b", "Two"), ("a", "One"), ("b", "Two")), strict=True)
    )
    hold = lose(1, 2, 3, protected=each).book.hold
    assert hold is not None
    assert (hold.why, hold.guards, hold.limit) == ("One; Two", ("a", "b"), 0)


def test_a_hold_that_does_not_say_of_how_many_is_judged_by_how_many_there_are() -> None:
    half = (Rule("", Budget("DestinationsRemoved", max=1, percent=50)),)
    held = lose(*range(6), of=10, rules=half).book
    assert held.hold is not None
    old = Book(held.charges, held.hold._replace(of=0))
    assert lose(*range(6), of=20, rules=half, book=old).held == frozenset()


def test_what_has_all_been_counted_goes_without_another_charge() -> None:
    book = lose(1, 2, 3).book
    held = lose(4, book=book, minutes=1).book
    found = lose(1, 2, book=held, minutes=2)
    assert (found.held, found.book) == (frozenset(), Book(book.charges))


@pytest.mark.parametrize(
    "rule",
    [
        Rule("g", Budget("DestinationsRemoved", max=1), enforces=False),
        Rule("g", Budget("DestinationsRemoved", max=1, action="Warn")),
    ],
)
def test_who_observes_or_warns_stops_nothing_and_is_heard(rule: Rule) -> None:
    found = lose(1, 2, rules=(rule,))
    assert found.held == frozenset()
    assert [each.rule for each in found.warnings] == [rule]


def test_every_budget_must_hold() -> None:
    percent = Rule("shop", Budget("DestinationsRemoved", percent=1))
    found = lose(1, 2, rules=(_TEN, percent))
    assert found.book.hold is not None
    assert found.book.hold.guards == ("shop",)
    both = lose(1, 2, 3, 4, rules=(_TEN, percent)).book.hold
    assert both is not None
    assert both.guards == ("fleet", "shop")
    assert both.limit == 1


def test_the_floor_holds_what_is_above_fifty_and_above_half() -> None:
    assert lose(*range(50), of=60, rules=(FLOOR_RULE,)).held == frozenset()
    assert len(lose(*range(51), of=60, rules=(FLOOR_RULE,)).held) == 51
    assert lose(*range(100), of=200, rules=(FLOOR_RULE,)).held == frozenset()
    assert len(lose(*range(101), of=200, rules=(FLOOR_RULE,)).held) == 101


def test_rules_are_those_of_one_measure() -> None:
    spec = {"budgets": [{"of": "ObjectsRemoved", "max": 1}, {"of": "ContentChanged", "max": 2}]}
    guard = guard_of({"metadata": {"name": "g"}, "spec": spec})
    [rule] = rules_of([guard], "ObjectsRemoved", floor=False)
    assert rule.budget.max == 1
    assert rules_of([guard], "DestinationsRemoved", floor=True) == (FLOOR_RULE,)


_STEP = st.tuples(
    st.floats(0, 6),  # minutes that pass
    st.frozensets(st.integers(0, 11), max_size=7),  # who is wanted no more
    st.booleans(),  # a person confirms what is held
    st.booleans(),  # the process dies between the book and the removal
)


@given(st.lists(_STEP, max_size=12))
def test_within_any_window_no_more_goes_than_the_budget_and_what_was_confirmed(
    steps: list[tuple[float, frozenset[int], bool, bool]],
) -> None:
    book, minutes = Book(), 0.0
    present = set(members(*range(12)))
    gone: list[tuple[float, bytes]] = []
    for passed, unwanted, confirms, dies in steps:
        minutes += passed
        removed = members(*unwanted) & present
        name = book.hold.name if confirms and book.hold is not None else ""
        now = _NOW + timedelta(minutes=minutes)
        found = judge(Loss("u", removed, len(present)), (_TEN,), book, name, now)
        assert found.held <= removed
        if found.confirmed:
            assert book.hold is not None
            assert book.hold.removed == len(removed - book.charged(book.hold.since - _WINDOW))
        book = found.book
        if dies:
            continue
        counted = [] if found.confirmed else sorted(removed - found.held)
        gone += [(minutes, each) for each in counted]
        present = set(members(*range(12))) - (removed - found.held)
    for start, _ in gone:
        within = {each for time, each in gone if start <= time < start + 10}
        assert len(within) <= 3
