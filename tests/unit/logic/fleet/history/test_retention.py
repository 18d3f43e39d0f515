"""Retention drops what is too much, and no answer younger than what is kept changes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import HISTORY_RETENTION
from skerry.logic.fleet.history.record import Order, Place
from skerry.logic.fleet.history.retention import (
    InvalidRetention,
    Kept,
    Limits,
    Plan,
    is_kept,
    limits_of,
    plan,
)
from tests.kit.decisions import NOW

DAY = timedelta(days=1)


def kept(age: timedelta, number: int, size: int = 100, checkpoint: int = 0, pages: int = 1) -> Kept:
    place = Place("u", number, 0, folded=True)
    return Kept(Order(number, 0, checkpoint, ""), NOW - age, size, pages, place)


def test_what_is_within_the_limits_stays() -> None:
    records = [kept(timedelta(hours=3), 1), kept(timedelta(hours=2), 2)]
    assert plan(records, Limits(), NOW) == Plan()


def test_a_day_after_the_last_checkpoint_another_is_due_if_anything_changed() -> None:
    records = [kept(2 * DAY, 1, checkpoint=1), kept(DAY, 2)]
    assert plan(records, Limits(), NOW) == Plan(2, 0)
    assert plan(records[:1], Limits(), NOW) == Plan()


def test_what_is_too_old_goes_behind_a_checkpoint() -> None:
    records = [kept(40 * DAY, 1), kept(35 * DAY, 2), kept(2 * DAY, 3)]
    assert plan(records, Limits(), NOW) == Plan(2, 2)


def test_a_checkpoint_that_stands_already_is_enough() -> None:
    records = [kept(40 * DAY, 1), kept(40 * DAY, 1, checkpoint=1), kept(2 * DAY, 3)]
    assert plan(records, Limits(), NOW) == Plan(None, 1)


def test_the_only_checkpoint_of_a_quiet_placement_stays_for_ever() -> None:
    pages = [kept(400 * DAY, 1, checkpoint=number, pages=2) for number in (1, 2)]
    assert plan(pages, Limits(), NOW) == Plan()


@pytest.mark.parametrize("written", [(1,), (2,), (1, 3)])
def test_a_checkpoint_that_lacks_a_page_is_written_again_before_anything_goes(
    written: tuple[int, ...],
) -> None:
    pages = [kept(40 * DAY, 1, checkpoint=number, pages=3) for number in written]
    records = [kept(40 * DAY, 1), *pages, kept(2 * DAY, 3)]
    assert plan(records, Limits(), NOW) == Plan(1, 1)
    # And it does not count as the one of the day.
    assert plan([kept(DAY, 1), *pages], Limits(), NOW).checkpoint is not None


def test_pages_of_two_checkpoints_do_not_make_one() -> None:
    pages = [kept(40 * DAY, number, checkpoint=number, pages=2) for number in (1, 2)]
    assert plan([kept(40 * DAY, 0), *pages, kept(DAY / 2, 3)], Limits(), NOW) == Plan(1, 1)


def test_a_checkpoint_that_begins_a_chain_stands_for_what_came_before() -> None:
    place = Place("u", 2, 0, folded=False)
    pages = [
        Kept(Order(2, number, number + 1, ""), NOW - 40 * DAY, 100, 2, place) for number in (0, 1)
    ]
    assert plan([kept(40 * DAY, 1), *pages, kept(DAY / 2, 3)], Limits(), NOW) == Plan(None, 1)


def test_too_many_and_too_much_go() -> None:
    records = [kept(timedelta(hours=1), n) for n in range(100)]
    assert plan(records, Limits(records=50), NOW) == Plan(55, 55)
    found = plan(records, Limits(size=5000), NOW)
    assert found.drop == found.checkpoint == 55


def test_no_retention_drops_everything() -> None:
    records = [kept(DAY, 1), kept(timedelta(0), 2)]
    assert plan(records, limits_of("0", Limits()), NOW) == Plan(None, 2)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=30),
    st.integers(1, 90),
    st.integers(1, 20),
)
def test_a_second_look_finds_nothing_to_drop(
    ages: list[tuple[int, bool]], days: int, limit: int
) -> None:
    limits = Limits(age=timedelta(days=days), records=limit)
    records = [
        kept(timedelta(days=age), number, checkpoint=int(is_checkpoint))
        for number, (age, is_checkpoint) in enumerate(sorted(ages, reverse=True))
    ]
    found = plan(records, limits, NOW)
    rest = records[found.drop :]
    if found.checkpoint is not None and found.drop:
        last = records[found.checkpoint - 1]
        rest = [last._replace(order=last.order._replace(checkpoint=1)), *rest]
    assert plan(rest, limits, NOW).drop <= len(rest)
    if rest:
        assert found.drop == 0 or rest[0].order.checkpoint
        assert plan(rest, limits, NOW).drop == 0 or len(rest) > limits.records


@pytest.mark.parametrize(
    ("text", "age"), [("0", 0), ("0d", 0), ("12h", 0.5), ("90d", 90), (" 1d ", 1)]
)
def test_an_annotation_says_how_long(text: str, age: float) -> None:
    assert limits_of(text, Limits()).age == timedelta(days=age)


@pytest.mark.parametrize("text", ["", "30", "-1d", "1w", "999999999d9", "forever"])
def test_another_annotation_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InvalidRetention, match="want days or hours"):
        limits_of(text, Limits())


def test_a_time_beyond_all_times_is_refused() -> None:
    with pytest.raises(InvalidRetention, match="longer than"):
        limits_of("999999999d", Limits(age=DAY))


@pytest.mark.parametrize(
    "text", ["90", "d", "1w", "-1d", "1.5d", "٣d", "9" * 5000 + "d", "1 d", ""]
)
def test_what_says_no_retention_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InvalidRetention):
        limits_of(text, Limits())


@pytest.mark.parametrize("text", ["999999999d", "36600d", "999999999h"])
def test_nobody_keeps_anything_for_more_than_a_hundred_years(text: str) -> None:
    with pytest.raises(InvalidRetention, match="longer than"):
        limits_of(text, Limits())


@pytest.mark.parametrize(
    ("text", "usual", "kept_at_all"),
    [
        (None, Limits(), True),
        (None, Limits(age=timedelta(0)), False),
        ("0", Limits(), False),
        ("12h", Limits(age=timedelta(0)), True),
        # An annotation amiss says nothing, neither on nor off.
        ("soon", Limits(), True),
        ("soon", Limits(age=timedelta(0)), False),
        ("9" * 5000 + "d", Limits(), True),
    ],
)
def test_whether_anything_is_recorded(text: str | None, usual: Limits, kept_at_all: bool) -> None:
    annotations = {} if text is None else {HISTORY_RETENTION: text}
    assert is_kept({"metadata": {"name": "p", "annotations": annotations}}, usual) is kept_at_all
