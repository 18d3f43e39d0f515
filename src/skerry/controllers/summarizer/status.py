"""Make the status of an EdgePlacement tell what becomes of it, and announce each change of mind.

Others write parts of the same status, so only our fields and conditions are replaced and a change
in between is a Conflict.

Events are announced with the write, when it has succeeded: one that lost a Conflict is decided on
again, from the conditions that are there then, and announces what has changed since those. A
restart announces nothing by itself, for what was said last is in the status and not in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    HEARD_AGAIN,
    HELD,
    LEASE_LAPSED,
    NOT_DELIVERED,
    READY,
)
from skerry.api.objects import Object
from skerry.controllers.summarizer.observe import ObservedPlacement
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.summary.conditions import (
    NO_DESTINATIONS,
    PENDING,
    placement_conditions,
    unknown_destinations,
)
from skerry.logic.fleet.summary.standing import Standing
from skerry.logic.machinery.conditions import condition_of, set_conditions
from skerry.logic.machinery.plan import NOTHING, Announcement, Plan, Target, Update

# As first words these tell nobody anything: so it is with every placement that is new.
_BEGINNINGS = (NO_DESTINATIONS, NOT_DELIVERED, PENDING)


def decide_placement(observed: ObservedPlacement, now: datetime) -> Plan:
    """Update the status if it says anything else.

    What the scheduler writes comes first, since a status without it is not valid; and until it has
    spoken of the present generation nobody knows what the destinations are.
    """
    placement = observed.placement
    old = placement.get("status") or {}
    generation = placement["metadata"].get("generation")
    if observed.missing is not None or "specGeneration" not in old:
        return NOTHING
    if generation is not None and old["specGeneration"] != generation:
        return NOTHING
    known = old.get("conditions") or []
    wanted = placement_conditions(
        observed.standing, old.get("problems") or (), known, old.get("removals") or {}
    )
    conditions = set_conditions(known, wanted, rfc3339(now))
    status = {
        **old,
        **_counts(observed.standing),
        "observedGeneration": old["specGeneration"],
        "conditions": conditions,
    }
    if status == old:
        return NOTHING
    target = Target(EDGE_PLACEMENTS, observed.ref.name, cluster=observed.ref.cluster)
    obj = {**placement, "status": status}
    update = Update(target, obj, reason="StandingChanged", subresource="status")
    news = [*_news(placement, known, wanted), *_silence(placement, observed.standing)]
    return Plan([update], news)


def _counts(standing: Standing) -> Object:
    return {
        "deliveredObjects": standing.delivered_copies,
        "deliveredDestinations": standing.delivered,
        "healthyDestinations": standing.healthy,
        "unhealthyDestinations": standing.unhealthy,
        "unknownDestinations": standing.unknown,
    }


def _news(placement: Object, old: list[Object], new: Iterable[Object]) -> Iterator[Announcement]:
    """Yield an Event for each condition that changed its mind.

    ``Ready`` repeats what others say, and is worth an Event only where it is good news. First words
    are worth one only where they are bad.
    """
    for condition in new:
        kind, status, reason = condition["type"], condition["status"], condition["reason"]
        before = condition_of(old, kind)
        good = status == ("False" if kind == HELD else "True")
        bad = not good and reason not in _BEGINNINGS
        if before is None:
            announced = bad if kind != READY else good
        else:
            announced = before["status"] != status and (kind != READY or good)
        if announced:
            text = condition["message"]
            yield Announcement(placement, "Warning" if bad else "Normal", reason, text)


def _silence(placement: Object, standing: Standing) -> Iterator[Announcement]:
    """Yield an Event when more or fewer destinations are unknown than before.

    Those heard of keep the conditions as they are, so none of these would tell; where nobody is
    heard of they do.
    """
    before = placement["status"].get("unknownDestinations")
    if before is None or before == standing.unknown or not standing.known:
        return
    lost = standing.unknown > before
    reason = LEASE_LAPSED if lost else HEARD_AGAIN
    text = unknown_destinations(standing)
    yield Announcement(placement, "Warning" if lost else "Normal", reason, text)
