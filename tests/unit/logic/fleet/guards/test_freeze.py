"""Freezes stop what would begin at the Locations they name, at the local times they name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.logic.fleet.guards.freeze import (
    CONTENT,
    JOINING,
    LEAVING,
    Frozen,
    Standstill,
    unknown_zones,
)
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
    assert Frozen([oslo], at(15)).stopping(JOINING, {}) == Standstill()
    found = Frozen([oslo], at(16)).stopping(JOINING, {})
    assert found.freezes == ("g/f",)
    assert found.until == datetime(2025, 6, 9, 4, tzinfo=UTC)


def test_each_location_has_the_time_zone_of_its_label_and_utc_without_one() -> None:
    frozen = Frozen([guard({"timeZone": "label:tz"})], at(16))
    assert frozen.stopping(JOINING, {"tz": "Europe.Oslo"})
    assert not frozen.stopping(JOINING, {"tz": "America.New_York"})
    assert not frozen.stopping(JOINING, {})
    assert not frozen.stopping(JOINING, {"tz": "nowhere"})
    assert Frozen([guard({"timeZone": "label:tz"})], at(18)).stopping(JOINING, {"tz": "nowhere"})


def test_only_locations_that_are_selected_are_frozen() -> None:
    frozen = Frozen([guard({"locations": {"matchLabels": {"tier": "store"}}})], at(19))
    assert frozen.stopping(JOINING, {"tier": "store"})
    assert frozen.stopping(JOINING, {"tier": "hub"}) == Standstill()


def test_a_freeze_stops_what_it_names_and_nothing_else() -> None:
    content = {"name": "content", "stops": ["Content", "Leaving"], "duration": "10h"}
    frozen = Frozen([guard({}, content)], at(19))
    monday, saturday = datetime(2025, 6, 9, 6, tzinfo=UTC), datetime(2025, 6, 7, 4, tzinfo=UTC)
    assert frozen.stopping(JOINING, {}) == (("g/f",), monday)
    assert frozen.stopping(CONTENT, {}) == (("g/content",), saturday)
    assert frozen.stopping(LEAVING, {}) == (("g/content",), saturday)


def test_of_freezes_that_overlap_the_last_to_end_ends_it() -> None:
    short = {"name": "short", "duration": "10h"}
    usual: dict[str, Any] = {}
    for first, second in ((usual, short), (short, usual)):
        found = Frozen([guard(first, second)], at(19)).stopping(JOINING, {})
        assert sorted(found.freezes) == ["g/f", "g/short"]
        assert found.until == datetime(2025, 6, 9, 6, tzinfo=UTC)


def test_a_guard_that_observes_freezes_nothing() -> None:
    frozen = Frozen([guard({}, mode="Observe")], at(19))
    assert not frozen
    assert frozen.stopping(JOINING, {}) == Standstill()


def test_a_time_zone_that_nobody_knows_is_named_once() -> None:
    places = [("a", {"tz": "Nowhere"}), ("b", {"tz": "Nowhere"}), ("c", {"tz": "Europe.Oslo"})]
    assert unknown_zones(guard({"timeZone": "label:tz"}), places) == [
        "Location a: label tz=Nowhere: unknown time zone, UTC"
    ]
    assert unknown_zones(guard({"timeZone": "UTC"}), places) == []


def test_zones_are_looked_for_only_where_a_freeze_asks_for_them() -> None:
    places = [("oslo", {"tz": "nowhere", "zone": "elsewhere"})]
    assert unknown_zones(guard({"timeZone": "Europe/Oslo"}), places) == []
    assert unknown_zones(guard({"timeZone": "label:tz"}), [("oslo", {})]) == []
    both = guard({"timeZone": "label:zone"}, {"name": "b", "timeZone": "label:tz"})
    assert [each.split(": ")[1] for each in unknown_zones(both, places)] == [
        "label tz=nowhere",
        "label zone=elsewhere",
    ]
