"""NodePorts: two pods cannot hold one host port on one node."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import PreFilterResult, Scope, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, unschedulable
from skerry.scheduler.table import Rows

_REFUSED = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts:
    name = "NodePorts"
    scope = Scope.PLACED

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.spec.ports

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        return None, None if pod.spec.ports else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return None if _free(pod, node) else _REFUSED

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        taken = self._table.rows_with_ports
        if not taken:
            return None
        clashing = [row for row in taken if not _free(pod, self._table.target(row))]
        return Verdicts(np.isin(rows, clashing).astype(np.int16), [_REFUSED])

    def events_to_register(self) -> Sequence[Registration]:
        return [
            Registration(ClusterEvent(POD, Action.DELETE), self._after_pod_deleted),
            Registration(ClusterEvent(NODE, Action.ADD)),
        ]

    def _after_pod_deleted(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if not isinstance(old, PodInfo) or not old.node_name:
            return Hint.SKIP
        clash = any(mine.conflicts(its) for mine in pod.spec.ports for its in old.spec.ports)
        return Hint.QUEUE if clash else Hint.SKIP


def _free(pod: PodInfo, node: NodeInfo) -> bool:
    return not any(mine.conflicts(held) for held in node.ports for mine in pod.spec.ports)
