"""Every placement as the console shows it: its row, its conditions, and what its objects came to.

Rows are those of ``skerry fleet``. How a placement fares at one destination is what StatusSummaries
say: they name the destinations that are not well first, up to a number, and count the rest.

So what a summary does not name follows from what it names. Where a well destination is named, there
was room for one, and all that are not well came before it: whoever is missing is well. Where every
name is of one that is not well, there may be more of them than there was room for, and whoever is
missing is unknown, which is what the map shows; green by default would be a lie about exactly the
fleet in which nearly everything is wrong.

    destinations 300, named: 100, all unhealthy    the other 200 are unknown
    destinations 300, named: 40 unhealthy, 60 well the other 200 are well
    destinations 40,  named: 40, all unhealthy     there are no others
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skerry.api.edge import LEASE_LAPSED, NEVER_HEARD_OF
from skerry.logic.fleet.console.edges import EdgeIndex, EdgeKey, PlacementKey
from skerry.logic.fleet.overview.rows import PlacementRow, placement_row, row_key
from skerry.logic.fleet.summary.health import WITHOUT_HEALTH

HEALTHY, PROGRESSING, DEGRADED, UNHEALTHY, AWAY, UNKNOWN = range(6)
# Which of two states of the same destination is shown.
_WORSE = (0, 2, 3, 5, 4, 1)
_SILENT = frozenset((LEASE_LAPSED, NEVER_HEARD_OF))
# Not healthy yet, and nobody has to do anything.
_UNDER_WAY = frozenset(("RollingOut", "Progressing"))
# More than any controller of ours writes; others may write to an EdgePlacement's status, too.
_MAX_CONDITIONS = 32


class Fared(NamedTuple):
    """How one object fares at one destination."""

    edge: EdgeKey
    state: int
    delivered: bool
    healthy: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Stage:
    """What became of one object of a placement."""

    object: Mapping[str, str]
    wanted: int
    delivered: int
    reported: int
    healthy: int
    fared: tuple[Fared, ...]
    # Whether every destination that is not well is among them.
    complete: bool


@dataclass(slots=True)
class Placed:
    """One placement."""

    row: PlacementRow
    conditions: list[Mapping[str, Any]] = field(default_factory=list)


class PlacementIndex:
    """All placements; ``version`` counts changes."""

    def __init__(self) -> None:
        self.version = 0
        self.placements: dict[PlacementKey, Placed] = {}
        self._stages: dict[PlacementKey, dict[tuple[str, str], Stage]] = {}

    def put_placement(self, obj: Mapping[str, Any]) -> None:
        """Take an EdgePlacement, new or changed."""
        row = placement_row(obj)
        conditions = list((obj.get("status") or {}).get("conditions") or ())[:_MAX_CONDITIONS]
        self.placements[row.key] = Placed(row, conditions)
        self.version += 1

    def remove_placement(self, obj: Mapping[str, Any]) -> None:
        """Take that an EdgePlacement is gone."""
        self.placements.pop(row_key(obj), None)
        self.version += 1

    def put_summary(self, obj: Mapping[str, Any]) -> None:
        """Take a StatusSummary, new or changed."""
        cluster, name = row_key(obj)
        at = (str(obj["metadata"].get("namespace", "")), name)
        placement = (cluster, str(obj.get("placement", "")))
        self._stages.setdefault(placement, {})[at] = stage_of(obj)
        self.version += 1

    def remove_summary(self, obj: Mapping[str, Any]) -> None:
        """Take that a StatusSummary is gone."""
        cluster, name = row_key(obj)
        placement = (cluster, str(obj.get("placement", "")))
        known = self._stages.get(placement, {})
        known.pop((str(obj["metadata"].get("namespace", "")), name), None)
        if not known:
            self._stages.pop(placement, None)
        self.version += 1

    def stages(
        self, placement: PlacementKey, *, namespaced: bool = True, cluster_scoped: bool = True
    ) -> list[Stage]:
        """Return what became of each object of a placement, in the order of their names.

        Those with a namespace and those without are in two kinds of summaries.
        """
        known = self._stages.get(placement, {})
        return [known[at] for at in sorted(known) if (namespaced if at[0] else cluster_scoped)]


def states_at(stages: Sequence[Stage], edges: EdgeIndex) -> NDArray[np.uint8]:
    """Return, by number of the edge, how a placement fares there; for its destinations.

    There is a value at every number, of edges that are no destinations too: the caller looks at
    the destinations only. Without any summary nothing is known, rather than well.
    """
    settled = bool(stages) and all(stage.complete for stage in stages)
    states = np.full(len(edges.states), HEALTHY if settled else UNKNOWN, np.uint8)
    for edge, fared in worst_by_edge(stages).items():
        number = edges.number_of(edge)
        if number is not None:
            states[number] = fared.state
    return states


def worst_by_edge(stages: Iterable[Stage]) -> dict[EdgeKey, Fared]:
    """Return the object that fares worst at each destination that is named."""
    found: dict[EdgeKey, Fared] = {}
    for stage in stages:
        for fared in stage.fared:
            known = found.get(fared.edge)
            if known is None or _WORSE[fared.state] > _WORSE[known.state]:
                found[fared.edge] = fared
    return found


def placement_state(row: PlacementRow) -> int:
    """Return how a placement as a whole stands: the worst that is certain comes first.

    What is unhealthy is known to be so. Destinations that are not heard of come before readiness,
    since a placement may be ready that part of the fleet says nothing of.
    """
    if row.unhealthy:
        return UNHEALTHY
    if row.unknown:
        return AWAY
    if row.ready == "True":
        return HEALTHY
    if row.ready == "Unknown":
        return UNKNOWN
    return DEGRADED if row.held else PROGRESSING


def stage_of(obj: Mapping[str, Any]) -> Stage:
    """Read a StatusSummary."""
    fared = tuple(_fared(each) for each in obj.get("details") or ())
    unwell = sum(1 for each in fared if each.state != HEALTHY)
    wanted = _count(obj, "destinations")
    # Those not named are well while well ones are named, or all are accounted for.
    complete = unwell < len(fared) or len(fared) == wanted
    return Stage(
        {str(key): str(value) for key, value in (obj.get("object") or {}).items()},
        wanted,
        _count(obj, "delivered"),
        _count(obj, "reported"),
        _count(obj, "healthy"),
        fared,
        complete,
    )


def _fared(detail: Mapping[str, Any]) -> Fared:
    """Read how an object fares at a destination that a summary names.

    An edge that is silent is away whatever else its last report said. What is delivered counts as
    well where its kind has no health to wait for.
    """
    edge = (str(detail.get("cluster", "")), str(detail.get("syncTarget", "")))
    delivered, healthy = bool(detail.get("delivered")), str(detail.get("healthy", "Unknown"))
    reason = str(detail.get("reason", ""))
    if healthy == "False":
        state = PROGRESSING if reason in _UNDER_WAY else UNHEALTHY
    elif reason in _SILENT:
        state = AWAY
    elif delivered and (healthy == "True" or reason in WITHOUT_HEALTH):
        state = HEALTHY
    else:
        state = PROGRESSING
    return Fared(edge, state, delivered, healthy, reason, str(detail.get("message", "")))


def _count(obj: Mapping[str, Any], name: str) -> int:
    """Return a count; a summary that lacks one is new, and has counted nothing yet."""
    found = obj.get(name)
    return found if isinstance(found, int) else 0
