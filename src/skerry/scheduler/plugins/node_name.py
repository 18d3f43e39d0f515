"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import NODE, Action, ClusterEvent, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import Scope, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, unresolvable
from skerry.scheduler.table import Rows

_REFUSED = unresolvable("node(s) didn't match the requested node name")


class NodeName:
    name = "NodeName"
    scope = Scope.TARGET

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.node_name

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return _REFUSED if pod.node_name and pod.node_name != node.name else None

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        if not pod.node_name:
            return None
        row = self._table.row(pod.node_name)
        return Verdicts((rows != (-1 if row is None else row)).astype(np.int16), [_REFUSED])

    def events_to_register(self) -> Sequence[Registration]:
        return [Registration(ClusterEvent(NODE, Action.ADD))]
