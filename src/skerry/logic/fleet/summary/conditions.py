"""What the status of an EdgePlacement says of all its destinations together.

``Delivered``, ``Healthy`` and ``Held`` speak of the destinations that were heard of; those that
were not are counted in every message, and hold nothing back. With none heard of the first two are
Unknown; but what the translator withholds is not delivered, whoever was heard of. ``Ready`` is the
conjunction of these with what the edge scheduler and the placement translator say: the first of
them that fails lends it status, reason and message.

A message is for people and stays as it is while nothing happens: it tells the time an edge was last
heard of, not how long ago that is.

    destinations  unknown  delivered  healthy    Delivered  Healthy
    4             0        4          4          True       True
    4             1        3          3          True       True: the fourth is only counted
    4             0        4          3          True       False: Unhealthy, or else Pending
    4             0        3          3          False      False: what is not there is not healthy
    4             4        0          0          Unknown    Unknown: NoneReachable
    0             0        0          0          Unknown    Unknown: NoDestinations
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from skerry.api.edge import (
    CONFIRM,
    CONFLICT_FREE,
    DELIVERED,
    HEALTHY,
    HELD,
    NOT_DELIVERED,
    READY,
    REMOVALS_HELD,
    SCHEDULED,
    UNHEALTHY,
)
from skerry.api.objects import Object
from skerry.logic.fleet.summary.standing import MAX_NAMED, Standing, Worst
from skerry.logic.machinery.conditions import condition_of

# In this order, which is that in which things happen; the last is bad when it is True.
_CONJUNCTION = (SCHEDULED, DELIVERED, HEALTHY, CONFLICT_FREE, HELD)

NO_DESTINATIONS: Final = "NoDestinations"
NONE_REACHABLE: Final = "NoneReachable"
PENDING: Final = "Pending"
NOTHING_HELD: Final = "NothingHeld"

Problem = Mapping[str, Any]


def placement_conditions(
    standing: Standing,
    problems: Sequence[Problem],
    others: Iterable[Object],
    removals: Mapping[str, Any] | None = None,
) -> list[Object]:
    """Return the conditions that are the summarizer's.

    *problems* are those the translator lists in the status, *others* the conditions there are,
    *removals* what guards hold.
    """
    found = [
        _delivered(standing, problems),
        _healthy(standing),
        _held(standing, removals or {}),
    ]
    return [*found, _ready(standing, [*found, *others])]


def _delivered(standing: Standing, problems: Sequence[Problem]) -> Object:
    """Return Delivered; what the hub withholds will not arrive by waiting, so it comes first."""
    counted = _counted(standing, standing.delivered, "delivered")
    if problems:
        text = "; ".join(map(_problem, problems[:MAX_NAMED])) + _more(len(problems) - MAX_NAMED)
        return _condition(DELIVERED, "False", str(problems[0]["reason"]), f"{text}; {counted}")
    if not standing.known:
        return _unreachable(DELIVERED, standing)
    if standing.delivered == standing.known:
        return _condition(DELIVERED, "True", DELIVERED, counted)
    names = ", ".join(standing.undelivered)
    missing = standing.known - standing.delivered
    where = f"; not yet at {names}{_more(missing - MAX_NAMED)}" if names else ""
    return _condition(DELIVERED, "False", NOT_DELIVERED, f"{counted}{where}")


def _problem(problem: Problem) -> str:
    count = problem.get("destinations") or 0
    return f"{problem['message']} (at {count} destinations)" if count > 1 else problem["message"]


def _healthy(standing: Standing) -> Object:
    """Return Healthy: one unhealthy destination is named before any that are only pending."""
    counted = _counted(standing, standing.healthy, "healthy")
    if not standing.known:
        return _unreachable(HEALTHY, standing)
    if standing.unhealthy:
        ill = f"{standing.unhealthy} unhealthy"
        worst = "" if standing.worst is None else f": {_worst(standing.worst)}"
        return _condition(HEALTHY, "False", UNHEALTHY, f"{counted}; {ill}{worst}")
    if standing.healthy == standing.known:
        inert = "" if standing.inert is None else f"; {_worst(standing.inert)}"
        return _condition(HEALTHY, "True", HEALTHY, f"{counted}{inert}")
    pending = standing.known - standing.healthy
    return _condition(HEALTHY, "False", PENDING, f"{counted}; {pending} pending")


def _held(standing: Standing, removals: Mapping[str, Any]) -> Object:
    """Return Held: first what guards hold on the hub, with the name that confirms it.

    What edges hold back is reported after that, by the first of them.
    """
    guarded = [removals[each] for each in ("held", "heldObjects") if each in removals]
    if guarded:
        asked = [f"{hold['why']}; {CONFIRM}={hold['name']} lets them go" for hold in guarded]
        return _condition(HELD, "True", REMOVALS_HELD, "; ".join(asked))
    if not standing.held:
        return _condition(HELD, "False", NOTHING_HELD, "no destination holds anything back")
    named = [f"{held.location}: {held.hold.message}" for held in standing.held[:MAX_NAMED]]
    text = "; ".join(named) + _more(len(standing.held) - MAX_NAMED)
    return _condition(HELD, "True", standing.held[0].hold.reason, text)


def _ready(standing: Standing, others: Sequence[Object]) -> Object:
    """Return Ready; what is not there yet makes it Unknown, unless one before it fails."""
    for kind in _CONJUNCTION:
        found = condition_of(others, kind)
        if found is None:
            return _condition(READY, "Unknown", PENDING, f"nothing is said of {kind} yet")
        good = "False" if kind == HELD else "True"
        if found["status"] != good:
            status = "Unknown" if found["status"] == "Unknown" else "False"
            reason, text = found.get("reason") or kind, found.get("message") or kind
            return _condition(READY, status, reason, text)
    return _condition(READY, "True", READY, _counted(standing, standing.healthy, "ready"))


def _unreachable(kind: str, standing: Standing) -> Object:
    if not standing.destinations:
        return _condition(kind, "Unknown", NO_DESTINATIONS, "there is no destination")
    return _condition(kind, "Unknown", NONE_REACHABLE, _counted(standing, 0, kind.lower()))


def _counted(standing: Standing, count: int, what: str) -> str:
    """Return the count every message begins with, and whom nothing was heard of."""
    text = f"{count} of {standing.destinations} destinations {what}"
    if not standing.objects:
        text += " (nothing is selected)"
    return f"{text}, {standing.unknown} unknown{_unheard(standing)}" if standing.unknown else text


def unknown_destinations(standing: Standing) -> str:
    """Return how many destinations are unknown, and since when the first of them are."""
    counted = f"{standing.unknown} of {standing.destinations} destinations unknown"
    return f"{counted}{_unheard(standing)}"


def _unheard(standing: Standing) -> str:
    if not standing.unheard:
        return ""
    names = ", ".join(f"{named.location} {named.text}" for named in standing.unheard)
    return f": {names}{_more(standing.unknown - MAX_NAMED)}"


def _worst(worst: Worst) -> str:
    item, location, health = worst
    name = f"{item.namespace}/{item.name}" if item.namespace else item.name
    said = f"{health.reason}: {health.message}" if health.message else health.reason
    return f"{location} {item.resource} {name} {said}"


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}
