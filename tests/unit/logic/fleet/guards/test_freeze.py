"""Freezes stop what would begin at the Locations they name, at the local times they name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.logic.fleet.guards.freeze import MOVING, Frozen, unknown_zones
from skerry.logic.fleet.guards.spec import Guard, guard_of

# A Friday.
_NOON = datetime(2025, 6, 6, 12, tzinfo=UTC)


def guard(*freezes: dict[str, Any], mode: str = "Enforce", name: str = "g") -> Guard:
    usual = {"name": "f", "schedule": "0 18 * * 5", "duration": "60h", "stops": ["Joining"]}
    listed = [{**usual, **each} for each in freezes]
    return guard_of({"metadata": {"name": name}, "spec": {"mode": mode, "freezes": listed}})


def at(hour: int) -> datetime:
    return _NOON.replace(hour=hour)


def test_a_freeze_begins_at_its_local_time_and_says_when_it_ends() -> None:
    oslo = guard({"timeZone": "Europe/Oslo"})
    assert Frozen([oslo], at(15)).at({}) == MOVING
    found = Frozen([oslo], at(16)).at({})
    assert found.stops == {"Joining"}
    assert found.freezes == ("g/f",)
    assert found.until == datetime(2025, 6, 9, 4, tzinfo=UTC)


def test_each_location_has_the_time_zone_of_its_label_and_utc_without_one() -> None:
    frozen = Frozen([guard({"timeZone": "label:tz"})], at(16))
    assert frozen.at({"tz": "Europe.Oslo"}).stops
    assert not frozen.at({"tz": "America.New_York"}).stops
    assert not frozen.at({}).stops
    assert not frozen.at({"tz": "nowhere"}).stops
    assert Frozen([guard({"timeZone": "label:tz"})], at(18)).at({"tz": "nowhere"}).stops


def test_only_locations_that_are_selected_are_frozen() -> None:
    frozen = Frozen([guard({"locations": {"matchLabels": {"tier": "store"}}})], at(19))
    assert frozen.at({"tier": "store"}).stops
    assert frozen.at({"tier": "hub"}) == MOVING


def test_overlapping_freezes_stop_what_any_of_them_stops() -> None:
    other = {"name": "other", "stops": ["Leaving"], "duration": "10h"}
    found = Frozen([guard({}, other)], at(19)).at({})
    assert found.stops == {"Joining", "Leaving"}
    assert found.until == datetime(2025, 6, 7, 4, tzinfo=UTC)


def test_a_guard_that_observes_freezes_nothing() -> None:
    frozen = Frozen([guard({}, mode="Observe")], at(19))
    assert not frozen
    assert frozen.at({}) == MOVING


def test_a_time_zone_that_nobody_knows_is_named_once() -> None:
    places = [("a", {"tz": "Nowhere"}), ("b", {"tz": "Nowhere"}), ("c", {"tz": "Europe.Oslo"})]
    assert unknown_zones(guard({"timeZone": "label:tz"}), places) == [
        "Location a: label tz=Nowhere: unknown time zone, UTC"
    ]
    assert unknown_zones(guard({"timeZone": "UTC"}), places) == []
