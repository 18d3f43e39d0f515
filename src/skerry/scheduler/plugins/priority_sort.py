"""PrioritySort: higher priority first; among equals, whoever has waited longest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.handle import Handle


class Queued(Protocol):
    """A pod in the queue."""

    pod: PodInfo
    timestamp: float


class PrioritySort:
    name = "PrioritySort"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        pass

    def sort_key(self, item: Queued) -> tuple[int, float]:
        return (-item.pod.spec.priority, item.timestamp)
