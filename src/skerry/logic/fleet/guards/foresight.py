"""What guards would hold of a change that nobody has made yet.

The answer is that of ``judge``, with the book as it stands and nothing charged: asking is free, and
two who ask see the same. It is true of the moment: what others remove before the change is made
counts against the same windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.guards.book import book_of
from skerry.logic.fleet.guards.budget import Loss, judge, rules_of
from skerry.logic.fleet.guards.index import GuardIndex
from skerry.logic.fleet.guards.spec import REMOVED
from skerry.logic.fleet.guards.token import member
from skerry.logic.fleet.placement.whatif import Difference


def would_hold(
    differences: Iterable[Difference],
    guards: GuardIndex,
    placements: Mapping[ObjectRef, Object],
    workspace_labels: Callable[[str], Mapping[str, str]],
    total: Callable[[ObjectRef], int],
    now: datetime,
) -> list[tuple[ObjectRef, str]]:
    """Return the placements of which removals would be held, each with the reason.

    *total* returns how many destinations a placement has. The built-in floor counts.
    """
    found = []
    for each in differences:
        placement = placements.get(each.placement)
        if placement is None or not each.removed:
            continue
        labels = placement["metadata"].get("labels") or {}
        concerned = guards.of(each.placement, workspace_labels(each.placement.cluster), labels)
        rules = rules_of(concerned, REMOVED, floor=True)
        removed = frozenset(map(member, each.removed))
        loss = Loss(placement["metadata"]["uid"], removed, total(each.placement))
        hold = judge(loss, rules, book_of(placement.get("status")), "", now).book.hold
        if hold is not None:
            found.append((each.placement, hold.why))
    return found
