"""LocationTaints: repelling taints refuse, discouraging ones cost score.

``NoSchedule`` keeps newcomers away, ``NoExecute`` also drives out who is there, and
``PreferNoSchedule`` makes a Location the last resort; unless tolerated, each.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from skerry.logic.fleet.placement.strategy import Candidate
from skerry.logic.machinery.taints import (
    NO_EXECUTE,
    PREFER_NO_SCHEDULE,
    REPELLING,
    Taint,
    first_untolerated,
    untolerated,
)
from skerry.scheduler.framework.normalize import proportional
from skerry.scheduler.framework.plugin import Scope, Scores, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, unresolvable
from skerry.scheduler.placement.table import LocationTable
from skerry.scheduler.placement.wish import Wish
from skerry.scheduler.table import Rows


class LocationTaints:
    name = "LocationTaints"
    scope = Scope.TARGET

    def __init__(self, args: Mapping[str, Any], table: LocationTable) -> None:
        self._table = table

    def signature(self, wish: Wish) -> Hashable:
        return wish.strategy.tolerations, wish.held

    def filter(self, state: CycleState, wish: Wish, location: Candidate) -> Status | None:
        return _refusal(wish, location.taints)

    def filter_all(self, state: CycleState, wish: Wish, rows: Rows) -> Verdicts | None:
        codes, statuses = [0] * len(self._table.taint_lists), list[Status]()
        for number, taints in enumerate(self._table.taint_lists):
            status = _refusal(wish, taints)
            if status is not None:
                statuses.append(status)
                codes[number] = len(statuses)
        if not statuses:
            return None
        return Verdicts(np.array(codes, np.int16)[self._table.taint_list[rows]], statuses)

    def score(self, state: CycleState, wish: Wish, location: Candidate) -> int:
        return _disliked(wish, location.taints)

    def score_all(self, state: CycleState, wish: Wish, rows: Rows) -> Scores:
        disliked = [_disliked(wish, taints) for taints in self._table.taint_lists]
        found: Scores = np.array(disliked, np.int64)[self._table.taint_list[rows]]
        return found

    def normalize(self, state: CycleState, wish: Wish, scores: Scores, rows: Rows) -> Scores:
        return proportional(scores, reverse=True)


def _refusal(wish: Wish, taints: tuple[Taint, ...]) -> Status | None:
    repelling = {NO_EXECUTE} if wish.held else REPELLING
    taint = first_untolerated(taints, wish.strategy.tolerations, repelling)
    if taint is None:
        return None
    return unresolvable(f"location(s) had untolerated taint {{{taint.text}}}")


def _disliked(wish: Wish, taints: tuple[Taint, ...]) -> int:
    """Count discouraging taints that nothing tolerates."""
    return len(list(untolerated(taints, wish.strategy.tolerations, {PREFER_NO_SCHEDULE})))
