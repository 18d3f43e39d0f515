"""SchedulingGates: a pod with any gate stays out of the queue until its last gate is lifted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import POD, Action, ClusterEvent, Hint, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.status import Status, unresolvable


class SchedulingGates:
    name = "SchedulingGates"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        pass

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        if not pod.gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]")

    def events_to_register(self) -> Sequence[Registration]:
        event = ClusterEvent(POD, Action.UPDATE_POD_GATES_ELIMINATED)
        return [Registration(event, self._after_pod_change)]

    def _after_pod_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        own = isinstance(new, PodInfo) and new.uid == pod.uid
        return Hint.QUEUE if own else Hint.SKIP
