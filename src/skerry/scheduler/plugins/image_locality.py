"""ImageLocality: prefer nodes that already hold the pod's images.

An image counts by its size, scaled down by how few nodes have it, so that one warm node does not
draw every pod to itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import MAX_SCORE, Scope, Scores
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.table import Rows

_MEBIBYTE = 1024 * 1024
# Below the first nothing is gained by not pulling; above the second nothing more is.
_MIN_SIZE = 23 * _MEBIBYTE
_MAX_PER_CONTAINER = 1000 * _MEBIBYTE


class ImageLocality:
    name = "ImageLocality"
    scope = Scope.TARGETS

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table

    def signature(self, pod: PodInfo) -> Hashable:
        return (pod.spec.images, pod.spec.containers)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        total = len(self._table)
        scaled = 0
        for image in pod.spec.images:
            size = node.images.get(image)
            if size is not None:
                spread = len(self._table.images.get(image, ())) / total
                scaled += int(size * spread)
        return _priority(scaled, pod.spec.containers)

    def score_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        total = len(self._table)
        max_size = _MAX_PER_CONTAINER * pod.spec.containers
        scaled = np.zeros(self._table.capacity, np.int64)
        for image in pod.spec.images:
            holders = self._table.images.get(image, {})
            spread = len(holders) / total
            for row, size in holders.items():
                scaled[row] += int(size * spread)
        if max_size <= _MIN_SIZE:
            return np.zeros(len(rows), np.int64)
        within = np.clip(scaled[rows], _MIN_SIZE, max_size)
        return MAX_SCORE * (within - _MIN_SIZE) // (max_size - _MIN_SIZE)


def _priority(scaled: int, containers: int) -> int:
    max_size = _MAX_PER_CONTAINER * containers
    if max_size <= _MIN_SIZE:
        return 0
    within = min(max(scaled, _MIN_SIZE), max_size)
    return MAX_SCORE * (within - _MIN_SIZE) // (max_size - _MIN_SIZE)
