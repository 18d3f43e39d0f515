"""How copies deviate, and what that comes to; the tables compare it with the reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.freshness import LIVE, lapsed
from skerry.logic.fleet.summary.health import (
    HEALTHY,
    NO_HEALTH,
    NOT_ENFORCED,
    NOT_REPORTED,
    Health,
)
from skerry.logic.fleet.summary.report import ABSENT, Report
from skerry.logic.fleet.summary.standing import (
    PENDING,
    UNDELIVERED,
    UNHEALTHY,
    Detail,
    Deviations,
    InOrder,
    ItemCount,
    Items,
    Standing,
    Worst,
    mark,
    reference,
)

THERE = Destination("imw", "berlin", "st", "u1")
P = edge_placement_ref("wmw", "p")
WEB = ObjectRef("", "apps", "deployments", "shop", "web")
API = ObjectRef("", "apps", "deployments", "shop", "api")
SETTINGS = ObjectRef("", "", "configmaps", "shop", "settings")
ILL = Health("False", "Unavailable")
IDLE = Health("Unknown", NOT_ENFORCED, "no network plugin")
MARKS = [PENDING, UNDELIVERED, UNHEALTHY, UNDELIVERED + PENDING, UNDELIVERED + UNHEALTHY]


@pytest.mark.parametrize(
    ("has_status", "report", "marks"),
    [
        (True, Report(delivered=True, health=HEALTHY), 0),
        (True, Report(delivered=True, health=ILL), UNHEALTHY),
        (True, Report(delivered=True, health=NOT_REPORTED), PENDING),
        (True, Report(delivered=True, health=NO_HEALTH), 0),
        (True, ABSENT, UNDELIVERED + PENDING),
        (False, ABSENT, UNDELIVERED),
        (False, Report(delivered=True), 0),
        (False, Report(health=ILL), UNDELIVERED + UNHEALTHY),
        (True, lapsed("").report, 0),
    ],
)
def test_a_mark_says_how_a_copy_deviates(has_status: bool, report: Report, marks: int) -> None:
    assert mark(has_status, Detail(THERE, report)) == marks


def test_a_destination_counts_once_however_many_of_its_copies_deviate() -> None:
    found = Deviations()

    for marks in (UNDELIVERED + UNHEALTHY, UNDELIVERED + PENDING, UNHEALTHY):
        found.add("u1", marks)
    found.add("u2", PENDING)

    assert (found.undelivered, found.unhealthy, found.deviating) == (1, 1, 2)
    found.add("u1", -2 * UNDELIVERED - 2 * UNHEALTHY)
    assert (found.undelivered, found.unhealthy, found.deviating) == (0, 0, 2)
    found.add("u1", -PENDING)
    found.add("u2", -PENDING)
    assert not found


def test_the_first_destinations_without_delivery_are_named_in_the_order_of_locations() -> None:
    found = Deviations()
    where = {f"u{n}": Destination("imw", f"loc-{9 - n}", "st", f"u{n}") for n in range(5)}
    for uid in where:
        found.add(uid, UNDELIVERED)

    assert found.names(where) == ("loc-5", "loc-6", "loc-7")


def test_unknown_destinations_count_as_nothing_else() -> None:
    where = {(P, uid): Destination("imw", uid, "st", uid) for uid in ("u1", "u2", "u3")}
    reports = {
        (WEB, "u1"): Report(delivered=True, health=HEALTHY),
        (WEB, "u2"): Report(delivered=True, health=ILL),
        (WEB, "u3"): Report(delivered=True, health=HEALTHY),
    }

    found = reference(P, {(P, WEB): True}, where, reports, {"u1": LIVE, "u2": lapsed("t")})

    assert found == Standing(destinations=3, delivered=1, healthy=1, unknown=2, objects=1)


def test_destinations_without_delivery_are_not_named_when_they_are_more_than_a_thousand() -> None:
    found = Deviations()
    where = {f"u{n}": Destination("imw", f"loc-{n:04}", "st", f"u{n}") for n in range(1001)}
    for uid in where:
        found.add(uid, UNDELIVERED)

    assert found.names(where) == ()
    found.add("u0", -UNDELIVERED)
    assert found.names(where) == ("loc-0001", "loc-0002", "loc-0003")


@given(
    st.lists(
        st.tuples(st.sampled_from(["u1", "u2", "u3"]), st.sampled_from(MARKS), st.booleans()),
        max_size=30,
    )
)
def test_deviations_count_what_was_added_and_not_taken_back(
    copies: list[tuple[str, int, bool]],
) -> None:
    found = Deviations()
    for uid, marks, _ in copies:
        found.add(uid, marks)
    for uid, marks, leaves in copies:
        if leaves:
            found.add(uid, -marks)

    left = [(uid, marks) for uid, marks, leaves in copies if not leaves]
    assert found.deviating == len({uid for uid, _ in left})
    assert found.undelivered == len({uid for uid, marks in left if marks % UNHEALTHY > PENDING})
    assert found.unhealthy == len({uid for uid, marks in left if marks >= UNHEALTHY})
    assert bool(found) == bool(left)


def test_the_first_unhealthy_object_and_the_first_without_effect_are_named_apart() -> None:
    items = Items()
    items.add((P, WEB), ItemCount(0, "berlin", ILL))
    items.add((P, API), ItemCount(0, "paris", ILL))
    items.add((P, SETTINGS), ItemCount(2, "rome", IDLE))

    assert items.worst() == Worst(API, "paris", ILL)
    assert items.inert() == Worst(SETTINGS, "rome", IDLE)
    items.remove((P, API), ItemCount(0, "paris", ILL))
    assert items.worst() == Worst(WEB, "berlin", ILL)


def test_an_object_that_is_well_again_but_without_effect_changes_sides() -> None:
    items = Items()
    items.add((P, SETTINGS), ItemCount(1, "rome", ILL))

    items.replace((P, SETTINGS), ItemCount(1, "rome", ILL), ItemCount(3, "rome", IDLE))

    assert items.worst() is None
    assert items.inert() == Worst(SETTINGS, "rome", IDLE)
    items.replace((P, SETTINGS), ItemCount(3, "rome", IDLE), ItemCount(4))
    assert (items.worst(), items.inert(), items.delivered_copies) == (None, None, 4)


def test_copies_of_every_object_are_counted_until_their_object_goes() -> None:
    items = Items()
    items.add((P, SETTINGS), ItemCount(2))
    items.add((P, WEB), ItemCount(3))

    assert items.delivered_copies == 5
    items.remove((P, WEB), ItemCount(3))
    assert items.delivered_copies == 2


def test_rows_that_are_alike_are_ordered_by_their_destination() -> None:
    rows = InOrder()
    rows.add((P, "u2"), ("berlin", "t"))
    rows.add((P, "u1"), ("berlin", "t"))
    rows.add((P, "u3"), ("athens", "t"))

    rows.remove((P, "u1"), ("berlin", "t"))

    assert rows.rows == [("athens", "t", "u3"), ("berlin", "t", "u2")]
    rows.replace((P, "u2"), ("berlin", "t"), ("aachen", "t"))
    assert rows.rows == [("aachen", "t", "u2"), ("athens", "t", "u3")]


@pytest.mark.parametrize(
    ("web", "settings", "standing"),
    [
        (Report(delivered=True, health=HEALTHY), Report(delivered=True), (1, 1, 0, 1)),
        # What a kind without status is like is not asked.
        (Report(delivered=True, health=NO_HEALTH), Report(delivered=True), (1, 1, 0, 1)),
        (Report(delivered=True, health=NOT_REPORTED), Report(delivered=True), (1, 0, 0, 1)),
        (Report(delivered=True, health=HEALTHY), None, (0, 0, 0, 0)),
        (Report(health=HEALTHY), Report(delivered=True), (0, 0, 0, 1)),
        (Report(delivered=True, health=ILL), Report(delivered=True), (1, 0, 1, 1)),
        (None, Report(delivered=True, health=ILL), (0, 0, 1, 1)),
        # Another workspace has the name: neither delivered nor well, to this one.
        (Report(delivered=True, health=HEALTHY, withheld_from=("wmw",)),
         Report(delivered=True), (0, 0, 1, 1)),
        (Report(delivered=True, health=HEALTHY, withheld_from=("other",)),
         Report(delivered=True), (1, 1, 0, 1)),
    ],
)  # fmt: skip
def test_a_destination_is_judged_by_all_that_goes_there(
    web: Report | None, settings: Report | None, standing: tuple[int, int, int, int]
) -> None:
    other = edge_placement_ref("wmw", "other")
    selected = {(P, WEB): True, (P, SETTINGS): False, (other, API): True}
    where = {(P, "u1"): THERE, (other, "u2"): Destination("imw", "paris", "st", "u2")}
    found = {(WEB, "u1"): web, (SETTINGS, "u1"): settings}
    reports = {key: report for key, report in found.items() if report is not None}

    delivered, healthy, unhealthy, copies = standing
    assert reference(P, selected, where, reports, {"u1": LIVE, "u2": LIVE}) == Standing(
        destinations=1,
        delivered=delivered,
        healthy=healthy,
        unhealthy=unhealthy,
        objects=2,
        delivered_copies=copies,
    )


def test_destinations_that_were_heard_of_are_those_that_are_not_unknown() -> None:
    assert Standing(destinations=5, unknown=2).known == 3


@given(st.lists(st.tuples(st.sampled_from(["u1", "u2"]), st.sampled_from(MARKS)), max_size=20))
def test_marks_come_to_the_same_in_whatever_order_they_are_added(
    copies: list[tuple[str, int]],
) -> None:
    one, other = Deviations(), Deviations()
    for uid, marks in copies:
        one.add(uid, marks)
    for uid, marks in sorted(copies):
        other.add(uid, marks)
    assert (one.unhealthy, one.undelivered, one.deviating) == (
        other.unhealthy, other.undelivered, other.deviating,
    )  # fmt: skip
    where = {uid: Destination("imw", f"at-{uid}", "st", uid) for uid in ("u1", "u2")}
    assert one.names(where) == other.names(where)


@pytest.mark.parametrize("copies", [1, 999_999])
def test_however_many_copies_have_one_mark_it_is_not_taken_for_another(copies: int) -> None:
    found = Deviations()
    found.add("u1", copies * PENDING)
    assert (found.deviating, found.undelivered, found.unhealthy) == (1, 0, 0)
    found.add("u1", copies * UNDELIVERED)
    assert (found.deviating, found.undelivered, found.unhealthy) == (1, 1, 0)
    found.add("u1", copies * UNHEALTHY)
    assert (found.deviating, found.undelivered, found.unhealthy) == (1, 1, 1)
    found.add("u1", -copies * UNDELIVERED)
    assert (found.deviating, found.undelivered, found.unhealthy) == (1, 0, 1)
    found.add("u1", -copies * UNHEALTHY)
    assert (found.deviating, found.undelivered, found.unhealthy) == (1, 0, 0)


def test_several_destinations_at_one_location_are_named_once() -> None:
    found = Deviations()
    where = {f"u{n}": Destination("imw", f"loc-{n // 2}", f"st-{n}", f"u{n}") for n in range(6)}
    for uid in where:
        found.add(uid, UNDELIVERED)
    assert found.names(where) == ("loc-0", "loc-1", "loc-2")
    found.add("u0", -UNDELIVERED)
    assert found.names(where) == ("loc-0", "loc-1", "loc-2"), "the other one is still without"
    found.add("u1", -UNDELIVERED)
    assert found.names(where) == ("loc-1", "loc-2")


rows = st.tuples(st.sampled_from(["u1", "u2", "u3"]), st.sampled_from(["a", "b"]))


@given(st.lists(rows, unique=True), st.lists(rows, unique=True))
def test_rows_in_order_are_those_that_were_added_and_not_removed(
    there: list[tuple[str, str]], gone: list[tuple[str, str]]
) -> None:
    found = InOrder()
    for uid, location in {*there, *gone}:
        found.add((P, uid), (location,))
    for uid, location in gone:
        found.remove((P, uid), (location,))
    assert found.rows == sorted((location, uid) for uid, location in {*there} - {*gone})
