"""When nothing moves: freezes of guards, at a Location, at a moment.

Freezes overlap as they like; what any of them stops is stopped, until the last of those that stop
it ends. They stop what would begin, and nothing that has begun: a rollout that is interrupted half
way would leave an edge with neither the old nor the new. Content, joining and leaving are asked for
one by one, since a shop that takes no new version on a weekend may still be closed down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from skerry.api.kcp.guards import LABEL_ZONE
from skerry.logic.fleet.guards.schedule import current, zone_named
from skerry.logic.fleet.guards.spec import Freeze, Guard

CONTENT, JOINING, LEAVING = "Content", "Joining", "Leaving"


class Standstill(NamedTuple):
    """By which freezes something does not begin, and when the last of them ends; else nothing."""

    freezes: tuple[str, ...] = ()
    until: datetime | None = None

    def __bool__(self) -> bool:
        return self.until is not None


class Frozen:
    """What freezes of some guards stop at one moment; ask it Location by Location.

    Thousands of Locations share a few time zones: each freeze is computed once per zone.
    """

    def __init__(self, guards: Iterable[Guard], now: datetime) -> None:
        """Guards that only observe freeze nothing."""
        self._freezes = [
            (guard.name, freeze) for guard in guards if guard.enforces for freeze in guard.freezes
        ]
        self._now = now
        self._zones: dict[str, tzinfo] = {}
        self._ends: dict[tuple[int, str], datetime | None] = {}

    def __bool__(self) -> bool:
        """Tell whether there is any freeze to ask for."""
        return bool(self._freezes)

    def stopping(self, what: str, labels: Mapping[str, str]) -> Standstill:
        """Return by what *what* does not begin at a Location with these labels."""
        names: list[str] = []
        until: datetime | None = None
        for number, (guard, freeze) in enumerate(self._freezes):
            if what not in freeze.stops:
                continue
            if freeze.locations is not None and not freeze.locations.matches(labels):
                continue
            end = self._end(number, freeze, zone_name(freeze, labels))
            if end is not None:
                names.append(f"{guard}/{freeze.name}")
                until = end if until is None else max(until, end)
        return Standstill(tuple(names), until)

    def _end(self, number: int, freeze: Freeze, zone: str) -> datetime | None:
        key = number, zone
        if key not in self._ends:
            if zone not in self._zones:
                self._zones[zone] = zone_named(zone) or UTC
            found = current(freeze.schedule, freeze.duration, self._zones[zone], self._now)
            self._ends[key] = None if found is None else found[1]
        return self._ends[key]


def zone_name(freeze: Freeze, labels: Mapping[str, str]) -> str:
    """Return the time zone of a freeze at a Location, as it is called there.

    Values of labels have no slash: ``Europe.Oslo`` stands for ``Europe/Oslo``.
    """
    if not freeze.zone.startswith(LABEL_ZONE):
        return freeze.zone
    return labels.get(freeze.zone.removeprefix(LABEL_ZONE), "UTC").replace(".", "/")


def unknown_zones(guard: Guard, locations: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return a sentence per time zone that Locations name and nobody knows; UTC is used there."""
    keys = {
        freeze.zone.removeprefix(LABEL_ZONE)
        for freeze in guard.freezes
        if freeze.zone.startswith(LABEL_ZONE)
    }
    known: dict[str, bool] = {}
    found: list[str] = []
    for name, labels in locations if keys else ():
        for key in sorted(keys & labels.keys()):
            value = labels[key]
            if value not in known:
                known[value] = zone_named(value.replace(".", "/")) is not None
                if not known[value]:
                    found.append(f"Location {name}: label {key}={value}: unknown time zone, UTC")
    return found
