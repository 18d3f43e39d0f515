"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from skerry.logic.machinery.taints import NO_SCHEDULE, Taint
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import Scope, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, unresolvable
from skerry.scheduler.table import Rows

_REFUSED = unresolvable("node(s) were unschedulable")
_CORDON = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)


def _tolerates(pod: PodInfo) -> bool:
    return any(toleration.tolerates(_CORDON) for toleration in pod.spec.tolerations)


class NodeUnschedulable:
    name = "NodeUnschedulable"
    scope = Scope.TARGET

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table

    def signature(self, pod: PodInfo) -> Hashable:
        return _tolerates(pod)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return _REFUSED if node.unschedulable and not _tolerates(pod) else None

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        cordoned = self._table.unschedulable[rows]
        if not cordoned.any() or _tolerates(pod):
            return None
        return Verdicts(cordoned.astype(np.int16), [_REFUSED])

    def events_to_register(self) -> Sequence[Registration]:
        node = ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_TAINT)
        pod = ClusterEvent(POD, Action.UPDATE_POD_TOLERATIONS)
        return [
            Registration(node, self._after_node_change),
            Registration(pod, self._after_toleration_change),
        ]

    def _after_node_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if new is None or new.unschedulable:
            return Hint.SKIP
        changed = old is None or old.unschedulable
        return Hint.QUEUE if changed else Hint.SKIP

    def _after_toleration_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        own = isinstance(new, PodInfo) and new.uid == pod.uid
        return Hint.QUEUE if own and _tolerates(new) else Hint.SKIP
