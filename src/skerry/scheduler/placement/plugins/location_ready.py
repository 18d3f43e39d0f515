"""LocationReady: with ``onlyReady`` a Location needs a live SyncTarget; else it is preferred."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from skerry.logic.fleet.placement.strategy import Candidate
from skerry.scheduler.framework.plugin import MAX_SCORE, Scope, Scores, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, unresolvable
from skerry.scheduler.placement.table import LocationTable
from skerry.scheduler.placement.wish import Wish
from skerry.scheduler.table import Rows

_REFUSED = unresolvable("location(s) had no ready and schedulable SyncTarget")


class LocationReady:
    name = "LocationReady"
    scope = Scope.TARGET

    def __init__(self, args: Mapping[str, Any], table: LocationTable) -> None:
        self._table = table

    def signature(self, wish: Wish) -> Hashable:
        return wish.strategy.only_ready

    def filter(self, state: CycleState, wish: Wish, location: Candidate) -> Status | None:
        return _REFUSED if wish.strategy.only_ready and not location.available else None

    def filter_all(self, state: CycleState, wish: Wish, rows: Rows) -> Verdicts | None:
        if not wish.strategy.only_ready:
            return None
        return Verdicts((~self._table.available[rows]).astype(np.int16), [_REFUSED])

    def score(self, state: CycleState, wish: Wish, location: Candidate) -> int:
        return MAX_SCORE if location.available else 0

    def score_all(self, state: CycleState, wish: Wish, rows: Rows) -> Scores:
        return self._table.available[rows].astype(np.int64) * MAX_SCORE
