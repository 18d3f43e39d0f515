"""What an attempt leads to: a placement on its way, or a refusal to be reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skerry.logic.machinery.conditions import dated, find_condition
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cycle import Profile
from skerry.scheduler.framework.plugin import Diagnosis
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status
from skerry.scheduler.queue import QueuedPod


@dataclass(slots=True)
class Placed:
    """A pod with a node, reserved and on its way to being bound."""

    queued: QueuedPod
    pod: PodInfo
    profile: Profile
    node: str
    state: CycleState
    began: float
    waiting: tuple[tuple[str, float], ...] = ()


@dataclass(slots=True)
class Refused:
    """An attempt that led nowhere."""

    queued: QueuedPod
    profile: Profile
    status: Status
    message: str
    began: float
    diagnosis: Diagnosis | None = None
    state: CycleState | None = None
    # As PostFilterResult's: None leaves the nomination alone, empty withdraws it.
    nominated: str | None = ""


def pod_status_change(pod: PodInfo, reason: str, refused: Refused, now: str) -> dict[str, Any]:
    """Return what to change in the pod's status; nothing when it says so already."""
    change: dict[str, Any] = {}
    old = find_condition(pod.pod, "PodScheduled") or {}
    wanted = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": refused.message,
    }
    if any(old.get(key) != value for key, value in wanted.items()):
        change["conditions"] = [dated(wanted, old, now)]
    if refused.nominated is not None and refused.nominated != pod.nominated_node:
        change["nominatedNodeName"] = refused.nominated or None
    return change
