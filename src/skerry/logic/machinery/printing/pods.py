"""How a pod is summed up in one line.

The STATUS word is the most useful thing kubectl shows and the least obvious: it starts as the
phase, yields to a reason given for the pod, then to the first init container that has not done
its work (``Init:0/2``, ``Init:CrashLoopBackOff``), then to what the containers wait or ended for,
the first container having the last word; deletion overrides all of these. Restartable init
containers (sidecars) count as containers in READY.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.printing.cells import (
    AGE,
    NAME,
    NONE,
    computed,
    is_terminating,
    is_true,
    items,
    number,
    read,
    text,
    timed,
)
from skerry.logic.machinery.printing.durations import human_duration, parse_time
from skerry.logic.machinery.resource import Column

_TERMINAL_PHASES = ("Succeeded", "Failed")


@dataclass(slots=True)
class Restarts:
    """How often containers were restarted, and when the last one ended before its restart."""

    count: int = 0
    last: datetime | None = None

    def add(self, status: Mapping[str, Any]) -> None:
        self.count += number(status, "restartCount")
        ended = parse_time(read(status, "lastState", "terminated", "finishedAt"))
        if ended is not None and (self.last is None or self.last < ended):
            self.last = ended

    def text(self, now: datetime) -> str:
        if not self.count or self.last is None:
            return str(self.count)
        return f"{self.count} ({human_duration(now - self.last)} ago)"


@dataclass(slots=True)
class PodSummary:
    """What the READY, STATUS and RESTARTS columns say."""

    status: str
    ready: int
    total: int
    restarts: Restarts


def pod_summary(pod: Object) -> PodSummary:
    """Return a pod in the three words of its table row."""
    sidecars = {
        text(container, "name")
        for container in items(pod, "spec", "initContainers")
        if read(container, "restartPolicy") == "Always"
    }
    summary = PodSummary(
        status=_overall_reason(pod),
        ready=0,
        total=len(items(pod, "spec", "containers")) + len(sidecars),
        restarts=Restarts(),
    )
    sidecar_restarts = Restarts()
    initializing = _sum_up_init_containers(pod, summary, sidecars, sidecar_restarts)
    if not initializing or is_true(pod, "Initialized"):
        # Restarts during initialization are history once the pod runs; sidecars' are not.
        summary.restarts = sidecar_restarts
        _sum_up_containers(pod, summary)
    if is_terminating(pod):
        _sum_up_deletion(pod, summary)
    return summary


def _overall_reason(pod: Object) -> str:
    reason = text(pod, "status", "reason") or text(pod, "status", "phase")
    for found in items(pod, "status", "conditions"):
        if (read(found, "type"), read(found, "reason")) == ("PodScheduled", "SchedulingGated"):
            reason = "SchedulingGated"
    return reason


def _sum_up_init_containers(
    pod: Object, summary: PodSummary, sidecars: set[str], sidecar_restarts: Restarts
) -> bool:
    """Tell whether some init container has yet to finish, and put its reason in the summary."""
    for index, status in enumerate(items(pod, "status", "initContainerStatuses")):
        is_sidecar = text(status, "name") in sidecars
        summary.restarts.add(status)
        if is_sidecar:
            sidecar_restarts.add(status)
        if _exited_well(status):
            continue
        if is_sidecar and read(status, "started"):
            summary.ready += bool(read(status, "ready"))
            continue
        total = len(items(pod, "spec", "initContainers"))
        summary.status = _init_reason(status) or f"Init:{index}/{total}"
        return True
    return False


def _exited_well(status: Mapping[str, Any]) -> bool:
    ended = read(status, "state", "terminated")
    return ended is not None and number(ended, "exitCode") == 0


def _init_reason(status: Mapping[str, Any]) -> str:
    ended = read(status, "state", "terminated")
    if ended is not None:
        return f"Init:{_end_reason(ended)}"
    waiting = text(status, "state", "waiting", "reason")
    return f"Init:{waiting}" if waiting not in ("", "PodInitializing") else ""


def _end_reason(ended: Mapping[str, Any]) -> str:
    if reason := text(ended, "reason"):
        return reason
    if signal := number(ended, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(ended, 'exitCode')}"


def _sum_up_containers(pod: Object, summary: PodSummary) -> None:
    any_running = False
    for status in reversed(items(pod, "status", "containerStatuses")):
        summary.restarts.add(status)
        waiting = text(status, "state", "waiting", "reason")
        ended = read(status, "state", "terminated")
        if waiting:
            summary.status = waiting
        elif ended is not None:
            summary.status = _end_reason(ended)
        elif read(status, "ready") and read(status, "state", "running") is not None:
            any_running = True
            summary.ready += 1
    if any_running and summary.status == "Completed":
        summary.status = "Running" if is_true(pod, "Ready") else "NotReady"


def _sum_up_deletion(pod: Object, summary: PodSummary) -> None:
    if text(pod, "status", "reason") == "NodeLost":
        summary.status = "Unknown"
    elif text(pod, "status", "phase") not in _TERMINAL_PHASES:
        summary.status = "Terminating"


def _ready(pod: Object) -> str:
    summary = pod_summary(pod)
    return f"{summary.ready}/{summary.total}"


def _first_ip(pod: Object) -> str:
    # The older field wins over the list where the two differ.
    if address := text(pod, "status", "podIP"):
        return address
    addresses = items(pod, "status", "podIPs")
    return text(addresses[0], "ip") or NONE if addresses else NONE


def _readiness_gates(pod: Object) -> str:
    gates = items(pod, "spec", "readinessGates")
    if not gates:
        return NONE
    opened = sum(is_true(pod, text(gate, "conditionType")) for gate in gates)
    return f"{opened}/{len(gates)}"


_ROW_MESSAGES = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def pod_row_conditions(pod: Object) -> list[dict[str, str]]:
    """Return the conditions of a pod's table row: whether it has run to its end."""
    phase = text(pod, "status", "phase")
    message = _ROW_MESSAGES.get(phase)
    if message is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


POD_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed("Ready", _ready, "Ready containers of all containers."),
    computed("Status", lambda pod: pod_summary(pod).status, "The pod's state in one word."),
    timed(
        "Restarts",
        lambda pod, now: pod_summary(pod).restarts.text(now),
        "How often containers were restarted, and how long ago the last time was.",
    ),
    AGE,
    computed("IP", _first_ip, "The pod's first address.", priority=1),
    computed("Node", lambda pod: text(pod, "spec", "nodeName") or NONE, "Its node.", priority=1),
    computed(
        "Nominated Node",
        lambda pod: text(pod, "status", "nominatedNodeName") or NONE,
        "The node where room is being made for the pod.",
        priority=1,
    ),
    computed("Readiness Gates", _readiness_gates, "Open gates of all gates.", priority=1),
)
