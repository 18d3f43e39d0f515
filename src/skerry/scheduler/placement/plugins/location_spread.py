"""LocationSpread: who lacks a label that is spread over is in no domain, so it is passed over.

As pods do with such nodes; and only where some are chosen of many, since else nothing is spread.
Who holds the workload already keeps it. How evenly domains are filled is a matter of the choice
itself, which sees all that pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from skerry.logic.fleet.placement.strategy import Candidate
from skerry.scheduler.framework.plugin import PreFilterResult, Scope
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, unresolvable
from skerry.scheduler.placement.table import LocationTable
from skerry.scheduler.placement.wish import Wish


class LocationSpread:
    name = "LocationSpread"
    scope = Scope.TARGET

    def __init__(self, args: Mapping[str, Any], table: LocationTable) -> None:
        return

    def signature(self, wish: Wish) -> Hashable:
        return _keys(wish)

    def pre_filter(
        self, state: CycleState, wish: Wish
    ) -> tuple[PreFilterResult | None, Status | None]:
        return None, None if _keys(wish) else SKIP

    def filter(self, state: CycleState, wish: Wish, location: Candidate) -> Status | None:
        for key in _keys(wish):
            if key not in location.labels:
                return unresolvable(f"location(s) had no label {key}")
        return None


def _keys(wish: Wish) -> tuple[str, ...]:
    strategy = wish.strategy
    if wish.held or strategy.number is None:
        return ()
    return tuple(spread.topology_key for spread in strategy.spread)
