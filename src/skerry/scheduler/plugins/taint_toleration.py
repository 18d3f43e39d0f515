"""TaintToleration: repelling taints refuse, discouraging ones cost score.

Nodes have few distinct lists of taints, so verdicts are worked out per list and gathered.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from skerry.logic.machinery.taints import (
    PREFER_NO_SCHEDULE,
    REPELLING,
    Taint,
    Toleration,
    first_untolerated,
)
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.normalize import proportional
from skerry.scheduler.framework.plugin import Scope, Scores, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, unresolvable
from skerry.scheduler.table import Rows


class TaintToleration:
    name = "TaintToleration"
    scope = Scope.TARGET

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.spec.tolerations

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if not node.taints:
            return None
        taint = first_untolerated(node.taints, pod.spec.tolerations, REPELLING)
        return None if taint is None else _refusal(taint)

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        codes, statuses = [0] * len(self._table.taint_lists), list[Status]()
        for number, taints in enumerate(self._table.taint_lists):
            taint = first_untolerated(taints, pod.spec.tolerations, REPELLING)
            if taint is not None:
                statuses.append(_refusal(taint))
                codes[number] = len(statuses)
        if not statuses:
            return None
        return Verdicts(np.array(codes, np.int16)[self._table.taint_list[rows]], statuses)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return _disliked(node.taints, pod.spec.tolerations)

    def score_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        disliked = [_disliked(taints, pod.spec.tolerations) for taints in self._table.taint_lists]
        found: Scores = np.array(disliked, np.int64)[self._table.taint_list[rows]]
        return found

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores, rows: Rows) -> Scores:
        return proportional(scores, reverse=True)

    def events_to_register(self) -> Sequence[Registration]:
        node = ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        pod = ClusterEvent(POD, Action.UPDATE_POD_TOLERATIONS)
        return [
            Registration(node, self._after_node_change),
            Registration(pod, self._after_toleration_change),
        ]

    def _after_node_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        tolerations = pod.spec.tolerations
        repelled = old is None or first_untolerated(old.taints, tolerations, REPELLING) is not None
        welcome = new is not None and first_untolerated(new.taints, tolerations, REPELLING) is None
        return Hint.QUEUE if repelled and welcome else Hint.SKIP

    def _after_toleration_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        own = isinstance(new, PodInfo) and new.uid == pod.uid
        return Hint.QUEUE if own else Hint.SKIP


def _refusal(taint: Taint) -> Status:
    return unresolvable(f"node(s) had untolerated taint {taint}")


def _disliked(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int:
    """Count discouraging taints that nothing tolerates."""
    relevant = [t for t in tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not any(t.tolerates(taint) for t in relevant)
        for taint in taints
    )
