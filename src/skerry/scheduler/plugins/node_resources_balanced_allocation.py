"""NodeResourcesBalancedAllocation: prefer nodes whose resources would be used evenly.

Looks at true requests, not the made-up ones scoring of room uses.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.resources import CPU, MEMORY, is_scalar
from skerry.scheduler.framework.allocation import Amounts, evenness, evenness_all
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import Scope, Scores
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status
from skerry.scheduler.table import Rows


class NodeResourcesBalancedAllocation:
    name = "NodeResourcesBalancedAllocation"
    scope = Scope.PLACED

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table
        listed = args.get("resources") or [{"name": CPU}, {"name": MEMORY}]
        self._resources = [item["name"] for item in listed]

    def signature(self, pod: PodInfo) -> Hashable:
        return tuple(self._wanted(pod))

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return evenness(
            [
                (node.allocatable.get(name, 0), node.requested.get(name, 0) + wanted)
                for name, wanted in self._wanted(pod)
            ]
        )

    def score_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        table = self._table
        amounts: list[Amounts] = []
        for name, wanted in self._wanted(pod):
            allocatable = table.resource(table.allocatable, name)[rows]
            amounts.append((allocatable, table.resource(table.requested, name)[rows] + wanted))
        return evenness_all(amounts, len(rows)) if amounts else np.full(len(rows), 100, np.int64)

    def _wanted(self, pod: PodInfo) -> list[tuple[str, int]]:
        """Return what to weigh; a scalar resource the pod does not want says nothing."""
        requests = pod.spec.requests
        return [
            (name, requests.get(name, 0))
            for name in self._resources
            if requests.get(name, 0) or not is_scalar(name)
        ]
