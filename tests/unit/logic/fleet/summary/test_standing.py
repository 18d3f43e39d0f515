"""How copies deviate, and what that comes to; the tables compare it with the reference."""

from __future__ import annotations

import pytest

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.freshness import LIVE, lapsed
from skerry.logic.fleet.summary.health import HEALTHY, NO_HEALTH, NOT_REPORTED, Health
from skerry.logic.fleet.summary.report import ABSENT, Report
from skerry.logic.fleet.summary.standing import (
    PENDING,
    UNDELIVERED,
    UNHEALTHY,
    Detail,
    Deviations,
    Standing,
    mark,
    reference,
)

THERE = Destination("imw", "berlin", "st", "u1")
P = edge_placement_ref("wmw", "p")
WEB = ObjectRef("", "apps", "deployments", "shop", "web")
ILL = Health("False", "Unavailable")


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
