"""A change of slices becomes one decision for each reason, with the causes that are about it."""

from __future__ import annotations

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
