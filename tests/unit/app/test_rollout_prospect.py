"""What a rollout would start from, as a hub's objects say it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.app.rollout_prospect import prospect
from skerry.logic.fleet.explanation.standing import standing_of
from skerry.logic.fleet.guards.freeze import Frozen
from skerry.logic.fleet.guards.spec import guard_of
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.rollout.bitmaps import encoded

NOON = datetime(2025, 6, 6, 12, tzinfo=UTC)
PLACES = tuple(Destination("i", f"l{n}", f"t{n}", f"u{n}") for n in (1, 2, 3))
FREEZE = {
    "name": "noon",
    "schedule": "0 11 * * *",
    "duration": "2h",
    "stops": ["Content"],
    "locations": {"matchLabels": {"site": "a"}},
}


def frozen(*freezes: Any) -> Frozen:
    spec = {"metadata": {"name": "g"}, "spec": {"freezes": list(freezes)}}
    return Frozen([guard_of(spec)], NOON)


def test_slots_labels_silence_and_freezes_are_taken_as_they_are() -> None:
    rollout = {
        "metadata": {"name": "web"},
        "spec": {"settle": {"quiet": "3s", "mode": "Manual"}},
        "status": {"phase": "Completed", "stable": 4, "verdicts": {"absent": encoded([7])}},
    }
    entry = {**PLACES[0].as_object(), "slot": 7, "revision": 4}
    known = standing_of([{"destinations": [entry]}]).assigned
    locations = {PLACES[1].location_ref: {"metadata": {"labels": {"site": "a"}}}}
    going = (*PLACES, PLACES[0]._replace(location="l9"))
    found = prospect(rollout, going, known, locations, frozen(FREEZE))
    [everybody] = found.waves
    assert (everybody.added, everybody.names) == (3, ("l1", "l2", "l3"))
    assert (found.stable, found.settle, found.absent) == (4, 3.0, 1)
    manual, freeze = found.holds
    assert "edge.kcp.io/cut" in manual
    assert freeze.endswith("/noon freezes content at 1 of 3 destinations")
