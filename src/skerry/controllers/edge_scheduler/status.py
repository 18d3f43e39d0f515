"""What a placement's status says of the search for destinations.

Others write parts of the same status, so only our fields and conditions are replaced and a change
in between is a Conflict.

Statuses follow slices. They have a queue of their own, are enqueued in batches, and wait while any
slice is to be written, up to some seconds: a label of a Location that touches a thousand placements
would else make two thousand writes race, and nobody waits for a status but people and those who
write other parts of it. What is written is what the last reconcile found, not what its slices hold
by now: a reconcile that fails has enqueued the status all the same.

    result                                  Scheduled
    errors                                  False, InvalidSelector; counts stay as they were
    nothing matches                         False, NoLocationMatches
    a chosen Location's selector is broken  False, InvalidInstanceSelector; the others are placed
    grants refuse all of them               False, NotGranted
    no SyncTarget at any of them            False, NoInstances
    fewer than the strategy wants           False, TooFewLocations
    else                                    True, DestinationsChosen
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS, SCHEDULED
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.observed import Consent, Result
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.logic.machinery.conditions import condition, set_conditions
from skerry.logic.machinery.plan import NOTHING, Announcement, Plan, Target, Update

SATISFIABLE = "SelectorsSatisfiable"
# Present only where grants of an inventory workspace concern the placement.
GRANTED = "Granted"
NOT_GRANTED = "NotGranted"


@dataclass(frozen=True, slots=True)
class ObservedStatus:
    """A placement, and what was found for it."""

    ref: ObjectRef
    placement: Object
    result: Result


class StatusObserver:
    """Observes placements whose slices are up to date, when no others need that first."""

    def __init__(
        self,
        placement: Callable[[ObjectRef], Object | None],
        result: Callable[[ObjectRef], Result | None],
        quiet: Callable[[], Awaitable[None]],
    ) -> None:
        self._placement = placement
        self._result = result
        self._quiet = quiet

    async def observe(self, ref: ObjectRef) -> ObservedStatus | None:
        """Return None before the first result, whose plan enqueues the status again."""
        await self._quiet()
        placement, result = self._placement(ref), self._result(ref)
        if placement is None or result is None or is_being_deleted(placement):
            return None
        return ObservedStatus(ref, placement, result)


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
    dropped = () if result.consent is not None or result.errors else (GRANTED,)
    known = old.get("conditions") or []
    wanted["conditions"] = set_conditions(known, conditions(result), rfc3339(now), dropped=dropped)
    if wanted == old:
        return NOTHING
    obj = {**observed.placement, "status": wanted}
    target = Target(EDGE_PLACEMENTS, observed.ref.name, cluster=observed.ref.cluster)
    update = Update(target, obj, reason="ResultChanged", subresource="status")
    return Plan([update], list(_news(observed.placement, known, wanted["conditions"])))


def _news(placement: Object, old: list[Object], new: list[Object]) -> Iterator[Announcement]:
    """Yield an Event when grants refuse a placement more, less or other than before."""
    before = next((each for each in old if each["type"] == GRANTED), {})
    for each in new:
        if each["type"] == GRANTED and each["status"] == "False" and each != before:
            yield Announcement(placement, "Warning", each["reason"], each["message"])


def conditions(result: Result) -> list[Object]:
    """Return what is to be said of a result."""
    impossible = "; ".join(result.unsatisfiable)
    return [
        _scheduled(result),
        *([_granted(result, result.consent)] if result.consent is not None else ()),
        condition(SATISFIABLE, False, "Contradiction", impossible)
        if impossible
        else condition(SATISFIABLE, True, "NoContradiction", ""),
    ]


def _scheduled(result: Result) -> Object:
    if result.errors:
        return condition(SCHEDULED, False, "InvalidSelector", "; ".join(result.errors))
    if not result.matching:
        return condition(SCHEDULED, False, "NoLocationMatches", "No Location matches the selectors")
    counted = f"{result.destinations} destinations at {result.chosen} locations"
    if result.broken_locations:
        listed = "; ".join(result.broken_locations)
        return condition(SCHEDULED, False, "InvalidInstanceSelector", f"{counted}, but {listed}")
    if not result.chosen and result.consent is not None and result.consent.refused:
        return condition(SCHEDULED, False, NOT_GRANTED, _granted(result, result.consent)["message"])
    if not result.destinations:
        text = f"{result.matching} Locations match, but no SyncTarget is an instance of any chosen"
        return condition(SCHEDULED, False, "NoInstances", text)
    wanted = result.wanted_locations
    if wanted is not None and result.chosen < wanted:
        why = f": {result.shortage}" if result.shortage else ""
        text = f"{counted}; {wanted} were asked for{why}"
        return condition(SCHEDULED, False, "TooFewLocations", text)
    return condition(SCHEDULED, True, "DestinationsChosen", counted)


def _granted(result: Result, consent: Consent) -> Object:
    """Return what grants of inventory workspaces have to do with a placement."""
    by = ", ".join(consent.refusing)
    if consent.refused:
        text = f"{consent.refused} of {result.matching} matching Locations: not granted by {by}"
        if not consent.held:
            return condition(GRANTED, False, NOT_GRANTED, text)
        stay = f"{consent.held} of them keep what runs there until its removal is confirmed"
        reason = "Held" if consent.held == consent.refused else NOT_GRANTED
        return condition(GRANTED, False, reason, f"{text}; {stay}")
    if consent.observed:
        text = f"{consent.observed} of {result.matching} matching Locations would not be granted"
        return condition(GRANTED, True, "WouldBeRefused", f"{text} by {by}, which only observes")
    return condition(GRANTED, True, GRANTED, "")
