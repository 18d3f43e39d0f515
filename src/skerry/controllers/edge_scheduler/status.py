"""What a placement's status says of the search for destinations.

Others write parts of the same status, so only our fields and conditions are replaced and a change
in between is a Conflict.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from skerry.controllers.edge_scheduler.observe import Observer, Result
from skerry.kit.clock import rfc3339
from skerry.logic.placement.records import Place, is_leaving
from skerry.logic.placement.slices import EDGE_PLACEMENTS
from skerry.logic.plan import NOTHING, Plan, Target, Update
from skerry.logic.resource import Object

SCHEDULED = "Scheduled"
SATISFIABLE = "SelectorsSatisfiable"


class Said(NamedTuple):
    """A condition without its time."""

    kind: str
    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ObservedStatus:
    """A placement, and what was found for it."""

    place: Place
    placement: Object
    result: Result


class StatusObserver:
    """Looks at placements whose slices have been looked at, when no others need that first."""

    def __init__(self, observer: Observer, quiet: Callable[[], Awaitable[None]]) -> None:
        self._observer = observer
        self._quiet = quiet

    async def observe(self, place: Place) -> ObservedStatus | None:
        await self._quiet()
        placement, result = self._observer.placement(place), self._observer.results.get(place)
        if placement is None or result is None or is_leaving(placement):
            return None
        return ObservedStatus(place, placement, result)


def decide_status(observed: ObservedStatus, now: datetime) -> Plan:
    """Update the status if it says anything else."""
    old = observed.placement.get("status") or {}
    result = observed.result
    wanted: dict[str, Any] = {
        **copy.deepcopy(old),
        "specGeneration": result.generation,
        "matchingLocationCount": result.matching,
        "destinationCount": result.destinations,
    }
    if result.errors:
        # The slices were left as they are, and so is what was said of them.
        for field in ("matchingLocationCount", "destinationCount"):
            wanted[field] = old.get(field, 0)
    wanted["conditions"] = merged(old.get("conditions") or [], conditions(result), now)
    if wanted == old:
        return NOTHING
    obj = {**observed.placement, "status": wanted}
    target = Target(EDGE_PLACEMENTS, observed.place.name, cluster=observed.place.cluster)
    return Plan([Update(target, obj, reason="ResultChanged", subresource="status")])


def conditions(result: Result) -> list[Said]:
    """Return what is to be said of a result."""
    impossible = "; ".join(result.unsatisfiable)
    return [
        _scheduled(result),
        Said(SATISFIABLE, False, "Contradiction", impossible)
        if impossible
        else Said(SATISFIABLE, True, "NoContradiction", ""),
    ]


def _scheduled(result: Result) -> Said:
    if result.errors:
        return Said(SCHEDULED, False, "InvalidSelector", "; ".join(result.errors))
    if not result.matching:
        return Said(SCHEDULED, False, "NoLocationMatches", "No Location matches the selectors")
    counted = f"{result.destinations} destinations at {result.chosen} locations"
    if result.broken_locations:
        listed = "; ".join(result.broken_locations)
        return Said(SCHEDULED, False, "InvalidInstanceSelector", f"{counted}, but {listed}")
    if not result.destinations:
        text = f"{result.matching} Locations match, but no SyncTarget is an instance of any chosen"
        return Said(SCHEDULED, False, "NoInstances", text)
    wanted = result.wanted_locations
    if wanted is not None and result.chosen < wanted:
        why = f": {result.shortage}" if result.shortage else ""
        text = f"{counted}; {wanted} were asked for{why}"
        return Said(SCHEDULED, False, "TooFewLocations", text)
    return Said(SCHEDULED, True, "DestinationsChosen", counted)


def merged(old: list[dict[str, Any]], wanted: list[Said], now: datetime) -> list[dict[str, Any]]:
    """Return *old* with *wanted* in it; a time changes only when the status does."""
    found = {condition["type"]: condition for condition in old}
    for kind, status, reason, message in wanted:
        told = found.get(kind, {})
        text = "True" if status else "False"
        since = told.get("lastTransitionTime") if told.get("status") == text else None
        found[kind] = {
            "type": kind,
            "status": text,
            "lastTransitionTime": since or rfc3339(now),
            "reason": reason,
            "message": message,
        }
    return list(found.values())
