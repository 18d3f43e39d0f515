"""A change of slices becomes one decision for each reason, with the causes that are about it."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.history.difference import (
    SEVERAL,
    Because,
    Causes,
    Difference,
    Move,
    decisions,
)
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import Cause, Decision, Reason
from skerry.logic.fleet.placement.records import Destination
from tests.kit.decisions import destination


def standings(*numbers: int, revision: int | None = None) -> tuple[Standing, ...]:
    return tuple(Standing(destination(n), n if revision else None, revision) for n in numbers)


def decided(
    difference: Difference, causes: Causes | None = None, *, reasons: int = 1
) -> list[Decision]:
    def why(each: Destination) -> Reason:
        return Reason("R", str(int(each.location[1:]) % reasons))

    return decisions(difference, causes or Causes(), why, why, Because(Reason("WaveOpened")))


def test_nothing_changed_is_nothing_decided() -> None:
    assert not Difference()
    assert decided(Difference()) == []


def test_a_decision_for_each_reason_and_those_that_leave_before_those_that_come() -> None:
    found = decided(Difference(standings(1, 2), standings(3, 4, 5)), reasons=2)
    assert [(each.change, each.reason.text, len(each.standings)) for each in found] == [
        ("Left", "1", 2),
        ("Left", "0", 1),
        ("Joined", "1", 1),
        ("Joined", "0", 1),
    ]


def test_beyond_a_few_reasons_the_rest_has_several() -> None:
    found = decided(Difference(standings(*range(100))), reasons=50)
    assert len(found) == 9
    assert found[-1].reason == SEVERAL
    assert sum(len(each.standings) for each in found) == 100


def test_ten_thousand_with_one_reason_are_one_decision() -> None:
    [found] = decided(Difference(standings(*range(10_000))))
    assert found.reason == Reason("R", "0")


def test_revisions_are_kept_apart() -> None:
    before, after = standings(1, 2, revision=41), standings(1, 2, revision=42)
    moved = tuple(map(Move, before, after))
    left = standings(3, revision=41)
    gone, revised = decided(Difference((), left, moved))
    assert (gone.start, gone.to) == (41, None)
    assert (revised.change, revised.start, revised.to) == ("Revised", 41, 42)


def test_a_record_names_the_causes_that_are_about_its_destinations() -> None:
    oslo = Cause("Location", "l1", "inv")
    rome = Cause("SyncTarget", "t2", "inv")
    edit = Cause("EdgePlacement", "web")
    found = decided(Difference(standings(1), standings(2)), Causes((oslo, rome, edit), 40))
    assert [(each.causes, each.cause_count) for each in found] == [
        ((rome, edit), 39),
        ((oslo, edit), 39),
    ]


@pytest.mark.parametrize(
    "difference",
    [
        Difference(joined=standings(1)),
        Difference(left=standings(1)),
        Difference(moved=(Move(*standings(1, 1, revision=2)),)),
    ],
)
def test_any_change_is_something(difference: Difference) -> None:
    assert difference


def test_one_cause_is_the_cause_of_everything() -> None:
    only = Causes((Cause("Location", "elsewhere", "inv"),), 7)
    assert only.about([destination(1)]) is only


def test_where_no_cause_is_about_them_all_are_named() -> None:
    several = Causes((Cause("Location", "l8", "inv"), Cause("SyncTarget", "t9", "inv")), 5)
    assert several.about([destination(1)]) is several
    # Another workspace may have a Location of the same name.
    other = Causes((Cause("Location", "l1", "elsewhere"), Cause("Location", "l1", "inv")), 5)
    assert other.about([destination(1)]) == Causes((Cause("Location", "l1", "inv"),), 4)


def test_beyond_a_thousand_nobody_is_asked_any_more() -> None:
    asked: list[Destination] = []

    def why(each: Destination) -> Reason:
        asked.append(each)
        return Reason("R", str(len(asked) % 2))

    found = decisions(
        Difference(standings(*range(1200))), Causes(), why, why, Because(Reason("WaveOpened"))
    )
    assert len(asked) == 1000
    assert [(each.reason.text, len(each.standings)) for each in found] == [
        ("1", 500),
        ("0", 500),
        (SEVERAL.text, 200),
    ]


def test_a_reason_that_is_known_is_kept_when_there_are_many() -> None:
    reasons = iter([*range(8), 0, 1, 99])

    def why(_: Destination) -> Reason:
        return Reason("R", str(next(reasons)))

    found = decisions(
        Difference(standings(*range(11))), Causes(), why, why, Because(Reason("WaveOpened"))
    )
    assert [len(each.standings) for each in found] == [2, 2, 1, 1, 1, 1, 1, 1, 1]
    assert found[-1].reason == SEVERAL


def test_who_comes_has_a_revision_to_go_to_and_who_leaves_one_to_come_from() -> None:
    left, joined = decided(Difference(standings(1, revision=3), standings(2, revision=2)))
    assert (left.start, left.to) == (2, None)
    assert (joined.start, joined.to) == (None, 3)


def test_who_gets_a_slot_comes_from_no_revision() -> None:
    [before], [after] = standings(1), standings(1, revision=2)
    [found] = decided(Difference(moved=(Move(before._replace(revision=1), after),)))
    assert (found.start, found.to) == (None, 2)
