"""What is written of a placement, and what is announced."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.api.edge import edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.summarizer.observe import ObservedPlacement
from skerry.controllers.summarizer.status import decide_placement
from skerry.controllers.summarizer.watches import EVERY_KIND
from skerry.logic.fleet.summary.standing import Named, Standing
from skerry.logic.fleet.tables.completeness import Scope
from skerry.logic.machinery.plan import Plan, Update

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = datetime(2030, 1, 2, tzinfo=UTC)
P = edge_placement_ref("c", "p")
THEN = "2029-01-01T00:00:00Z"
OTHERS = [
    {"type": kind, "status": "True", "reason": "Fine", "lastTransitionTime": THEN}
    for kind in ("Scheduled", "ConflictFree")
]
WELL = Standing(destinations=1, delivered=1, healthy=1, objects=1, delivered_copies=4)
ILL = Standing(destinations=1, delivered=1, unhealthy=1, objects=1)
LOST = Standing(destinations=1, unknown=1, objects=1)


def placement(generation: int = 1, **status: Any) -> Object:
    full = {"specGeneration": 1, "matchingLocationCount": 1, "conditions": OTHERS, **status}
    return {"metadata": {"name": "p", "generation": generation}, "status": full}


def decided(obj: Object, standing: Standing = WELL, now: datetime = NOW) -> Plan:
    return decide_placement(ObservedPlacement(P, obj, standing), now)


def written(plan: Plan) -> Object:
    (update,) = plan
    assert isinstance(update, Update)
    assert update.subresource == "status"
    return dict(update.object)


def events(plan: Plan) -> list[tuple[str, str]]:
    return [(each.type, each.reason) for each in plan.announcements]


def test_counts_and_conditions_are_written_beside_what_others_say() -> None:
    status = written(decided(placement()))["status"]

    assert status["deliveredObjects"] == 4
    assert [
        status[f"{name}Destinations"] for name in ("delivered", "healthy", "unhealthy", "unknown")
    ] == [1, 1, 0, 0]
    assert status["matchingLocationCount"] == 1
    found = {each["type"]: each["status"] for each in status["conditions"]}
    assert found == {
        "Scheduled": "True",
        "ConflictFree": "True",
        "Delivered": "True",
        "Healthy": "True",
        "Held": "False",
        "Ready": "True",
    }


def test_what_is_written_already_needs_nothing() -> None:
    assert not decided(written(decided(placement())), now=LATER)


def test_a_status_of_an_earlier_version_is_completed() -> None:
    obj = placement(deliveredObjects=2, destinationCount=1)

    status = written(decided(obj))["status"]

    assert (status["deliveredObjects"], status["destinationCount"]) == (4, 1)


def test_tools_see_the_generation_together_with_what_is_said_of_it() -> None:
    assert written(decided(placement()))["status"]["observedGeneration"] == 1
    assert not decided(placement(generation=2))
    scheduled = placement(generation=2, specGeneration=2, observedGeneration=1)
    assert written(decided(scheduled))["status"]["observedGeneration"] == 2


def test_nothing_is_written_before_the_scheduler_has_written_its_part() -> None:
    assert not decided({"metadata": {"name": "p"}})


def test_nothing_is_written_before_everything_was_read() -> None:
    unread = ObservedPlacement(P, placement(), WELL, Scope("c", EVERY_KIND))

    assert not decide_placement(unread, NOW)


def test_a_change_of_mind_is_dated_and_announced() -> None:
    first = written(decided(placement()))

    plan = decided(first, ILL, LATER)

    found = {each["type"]: each for each in written(plan)["status"]["conditions"]}
    assert found["Healthy"]["lastTransitionTime"] == "2030-01-02T00:00:00Z"
    assert found["Delivered"]["lastTransitionTime"] == "2030-01-01T00:00:00Z"
    assert events(plan) == [("Warning", "Unhealthy")]
    assert events(decided(written(plan), WELL)) == [("Normal", "Healthy"), ("Normal", "Ready")]


def test_an_edge_that_is_lost_is_announced() -> None:
    plan = decided(written(decided(placement())), LOST)

    assert events(plan) == [("Warning", "NoneReachable"), ("Warning", "NoneReachable")]


def test_that_a_new_placement_is_not_delivered_yet_is_no_news_but_that_it_is_ready_is() -> None:
    fresh = Standing(destinations=1, objects=1)

    first = decided(placement(), fresh)

    assert events(first) == []
    assert events(decided(written(first))) == [
        ("Normal", "Delivered"),
        ("Normal", "Healthy"),
        ("Normal", "Ready"),
    ]


def test_an_edge_of_several_that_is_lost_is_announced_though_no_condition_changes_its_status() -> (
    None
):
    both = Standing(destinations=2, delivered=2, healthy=2, objects=1)
    unheard = (Named("south", "last heard of 2030-01-01T00:00:00Z"),)
    one = Standing(destinations=2, delivered=1, healthy=1, unknown=1, objects=1, unheard=unheard)
    first = written(decided(placement(), both))

    lost = decided(first, one)

    assert events(lost) == [("Warning", "LeaseLapsed")]
    (announcement,) = lost.announcements
    assert announcement.message == (
        "1 of 2 destinations unknown: south last heard of 2030-01-01T00:00:00Z"
    )
    assert events(decided(written(lost), one, LATER)) == []
    back = decided(written(lost), both)
    assert events(back) == [("Normal", "HeardAgain")]
    assert back.announcements[0].message == "0 of 2 destinations unknown"


def test_that_a_new_placement_has_destinations_never_heard_of_is_no_news() -> None:
    one = Standing(destinations=2, delivered=1, healthy=1, unknown=1, objects=1)

    assert ("Warning", "LeaseLapsed") not in events(decided(placement(), one))
