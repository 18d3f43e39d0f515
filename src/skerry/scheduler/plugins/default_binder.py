"""DefaultBinder: write the binding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.errors import ApiError
from skerry.runtime.transport import TransportError
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, error


class DefaultBinder:
    name = "DefaultBinder"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        try:
            await self._handle.writer.bind(pod, node)
        except (ApiError, TransportError) as problem:
            return error(str(problem), problem)
        return None
