"""What the status of a PlacementGuard says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.api.edge import edge_placement_ref
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.edge_scheduler.guard_status import (
    GuardReports,
    ObservedGuard,
    decide_guard,
)
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.logic.fleet.guards.book import Hold
from skerry.logic.fleet.guards.spec import guard_of
from skerry.logic.fleet.placement.destination import DestinationTable

NOW = datetime(2025, 6, 6, tzinfo=UTC)
HOLD = Hold("7f21c0", 51, 0, 100, NOW, "too many", ("fleet",))


def made(cluster: str = "espw", name: str = "fleet", **spec: Any) -> Object:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}, "generation": 2}
    return {"metadata": metadata, "spec": spec}


def status(obj: Object, *held: tuple[str, Hold], **more: Any) -> Object:
    [update] = decide_guard(ObservedGuard(guard_of(obj), obj, held, **more), NOW).actions
    found: Object = update.object["status"]  # type: ignore[union-attr]
    return found


def said(found: Object) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in found["conditions"]}


def test_what_is_held_is_listed_by_the_names_people_know() -> None:
    found = status(made(), ("root:shop|web", HOLD))
    assert found["held"] == [
        {
            "placement": "root:shop|web",
            "name": "7f21c0",
            "removed": 51,
            "added": 0,
            "since": "2025-06-06T00:00:00Z",
            "why": "too many",
        }
    ]
    assert said(found) == {"Valid": ("True", "Valid"), "Holding": ("True", "RemovalsHeld")}
    again = {**made(), "status": found}
    assert not decide_guard(
        ObservedGuard(guard_of(again), again, (("root:shop|web", HOLD),)), NOW
    ).actions


def test_many_entries_are_counted() -> None:
    found = status(made(), *((f"root:shop|w{n}", HOLD) for n in range(60)))
    assert (len(found["held"]), found["heldOmitted"]) == (50, 10)
    assert "and 55 more" in found["conditions"][1]["message"]


def test_a_guard_that_cannot_do_what_it_says_is_not_valid() -> None:
    wrong = made(budgets=[{"of": "DestinationsRemoved"}])
    assert said(status(wrong))["Valid"] == ("False", "Invalid")
    unrolled = status(made(), without_rollout=("root:shop|web",))
    assert said(unrolled)["Valid"] == ("False", "NeedsRollout")
    assert "root:shop|web" in unrolled["conditions"][0]["message"]
    assert status(made(), unknown_zones=("x",))["conditions"][0]["message"] == "x"


def test_guards_hear_of_what_placements_say_they_hold() -> None:
    enqueued: list[ObjectRef] = []
    state = GuardState(DestinationTable(), lambda: NOW, "espw")
    reports = GuardReports(state, enqueued.append)
    fleet, other = guard_of(made()), guard_of(made("blog", "own"))
    state.guards.put(fleet)
    state.guards.put(other)
    web = edge_placement_ref("shop", "web")
    reports.placement_changed(web, {"status": {}})
    assert enqueued == []
    reports.placement_changed(web, {"status": {"removals": {"held": HOLD.written()}}})
    assert enqueued == [fleet.ref]
    assert reports.of(fleet) == [(web, HOLD)]
    assert reports.of(other) == []
    reports.placement_changed(web, None)
    assert enqueued == [fleet.ref] * 2
    assert reports.of(fleet) == []
