"""What a pod's status says, computed from the states of its containers.

Pure, and in kubelet's words: phase, conditions, container statuses. A time of a condition changes
only when its status does, so computing the same again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent.refusals import REASON
from skerry.edge.agent.runtime import Exit
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import condition_of, dated


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not running, and why."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """Running since then."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Ended:
    """Over, and how."""

    exit: Exit
    identity: str = ""
    message: str = ""


State = Waiting | Running | Ended


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One container as the agent knows it."""

    name: str
    image: str
    state: State = field(default_factory=lambda: Waiting("ContainerCreating"))
    identity: str = ""
    image_identity: str = ""
    last: Ended | None = None
    restarts: int = 0
    ready: bool = False
    started: bool = False

    def but(self, **changes: Any) -> ContainerState:
        """Return this state with something changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class PodState:
    """Everything the status is computed from, besides the pod itself."""

    initial: tuple[ContainerState, ...]
    containers: tuple[ContainerState, ...]
    host_ip: str
    pod_ip: str = ""
    started: datetime | None = None
    sandboxed: bool = False
    # Set when the agent itself ends the pod: phase Failed with this reason and message.
    failure: tuple[str, str] | None = None
    # Why the node does not start the pod; empty when it does.
    refusal: str = ""
    # Nothing of the pod runs or will run again, whatever its restart policy says.
    over: bool = False
    added: tuple[ContainerState, ...] = ()


def pod_status(pod: Object, state: PodState, now: datetime) -> Object:
    """Return the status of *pod*."""
    phase = pod_phase(pod, state)
    old = (pod.get("status") or {}).get("conditions") or []
    status: Object = {
        "phase": phase,
        "conditions": _conditions(pod, state, phase, old, now),
        "hostIP": state.host_ip,
        "hostIPs": [{"ip": state.host_ip}],
    }
    if state.pod_ip:
        status |= {"podIP": state.pod_ip, "podIPs": [{"ip": state.pod_ip}]}
    if state.started is not None:
        status["startTime"] = rfc3339(state.started)
    if state.failure is not None:
        status["reason"], status["message"] = state.failure
    if state.initial:
        status["initContainerStatuses"] = [_container(item) for item in state.initial]
    status["containerStatuses"] = [_container(item) for item in state.containers]
    if state.added:
        status["ephemeralContainerStatuses"] = [_added(item) for item in state.added]
    return status


def pod_phase(pod: Object, state: PodState) -> str:
    """Return the phase, as kubelet finds it."""
    if state.failure is not None:
        return "Failed"
    if state.over:
        return "Succeeded" if all(map(_succeeded, state.containers)) else "Failed"
    policy = pod["spec"].get("restartPolicy", "Always")
    if any(_failed_for_good(pod, item) for item in state.initial):
        return "Failed"
    if not initialized(pod, state):
        return "Pending"
    states = [item.state for item in state.containers]
    if any(isinstance(item, Running) for item in states):
        return "Running"
    waiting = [c for c in state.containers if isinstance(c.state, Waiting)]
    if any(item.last is None for item in waiting):
        return "Pending"
    if waiting:
        return "Running"
    ends = [item for item in states if isinstance(item, Ended)]
    if policy == "Always":
        return "Running"
    if all(item.exit.code == 0 for item in ends):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _succeeded(item: ContainerState) -> bool:
    return isinstance(item.state, Ended) and item.state.exit.code == 0


def initialized(pod: Object, state: PodState) -> bool:
    """Tell whether every init container has done what it is for.

    Once a container that waited for them has begun they had, and that stays: a sidecar that is
    restarted, or stopped when the others have ended, does not make the pod pending again.
    """
    if any(map(_has_begun, state.containers)):
        return True
    sidecars = sidecar_names(pod)
    return all(
        item.started
        if item.name in sidecars
        else isinstance(item.state, Ended) and item.state.exit.code == 0
        for item in state.initial
    )


def _has_begun(item: ContainerState) -> bool:
    return item.last is not None or not isinstance(item.state, Waiting)


def sidecar_names(pod: Object) -> set[str]:
    """Return the init containers that go on running beside the others."""
    return {
        container["name"]
        for container in pod["spec"].get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }


def _failed_for_good(pod: Object, item: ContainerState) -> bool:
    return (
        pod["spec"].get("restartPolicy") == "Never"
        and item.name not in sidecar_names(pod)
        and isinstance(item.state, Ended)
        and item.state.exit.code != 0
    )


def _conditions(
    pod: Object, state: PodState, phase: str, old: Sequence[Mapping[str, Any]], now: datetime
) -> list[Object]:
    ended = phase in ("Succeeded", "Failed")
    unready = [item.name for item in state.containers if not item.ready]
    ready = _readiness(phase, unready)
    gates = _open_gates(pod, old)
    overall = ready
    if ready[0] == "True" and gates:
        missing = " ".join(f'corresponding condition of pod readiness gate "{g}"' for g in gates)
        text = f"the status of pod readiness gate is not True: {missing}"
        overall = ("False", "ReadinessGatesNotReady", text)
    incomplete = [
        item.name
        for item in state.initial
        if not (isinstance(item.state, Ended) and item.state.exit.code == 0) and not item.started
    ]
    begun = ("True", "", "") if initialized(pod, state) else _uninitialized(incomplete)
    if phase == "Succeeded":
        begun = ("True", "PodCompleted", "")
    sandboxed = ("True", "", "") if state.sandboxed and not ended else ("False", "", "")
    if state.refusal and not state.sandboxed:
        sandboxed = ("False", REASON, state.refusal)
    found = [
        ("PodReadyToStartContainers", *sandboxed),
        ("Initialized", *begun),
        ("Ready", *overall),
        ("ContainersReady", *ready),
    ]
    return [_condition(old, *item, now) for item in found]


def _readiness(phase: str, unready: list[str]) -> tuple[str, str, str]:
    if phase == "Succeeded":
        return ("False", "PodCompleted", "")
    if phase == "Failed":
        return ("False", "PodFailed", "")
    if unready:
        text = f"containers with unready status: [{' '.join(unready)}]"
        return ("False", "ContainersNotReady", text)
    return ("True", "", "")


def _uninitialized(names: list[str]) -> tuple[str, str, str]:
    text = f"containers with incomplete status: [{' '.join(names)}]"
    return ("False", "ContainersNotInitialized", text)


def _open_gates(pod: Object, conditions: Sequence[Mapping[str, Any]]) -> list[str]:
    wanted = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    return [
        kind for kind in wanted if (condition_of(conditions, kind) or {}).get("status") != "True"
    ]


def _condition(
    old: Sequence[Mapping[str, Any]],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
) -> Object:
    before = condition_of(old, kind) or {}
    condition = {"type": kind, "status": status, "lastProbeTime": None}
    found = dated(condition, before, rfc3339(now))
    # Null takes a former reason away; a patch would keep it otherwise.
    found["reason"] = reason or (None if before.get("reason") else "")
    found["message"] = message or (None if before.get("message") else "")
    return {name: value for name, value in found.items() if value != ""}


def _container(item: ContainerState) -> Object:
    found: Object = {
        "name": item.name,
        "state": _state(item.state),
        "lastState": {} if item.last is None else _state(item.last),
        "ready": item.ready,
        "restartCount": item.restarts,
        "image": item.image,
        "imageID": item.image_identity,
        "started": item.started,
    }
    if item.identity:
        found["containerID"] = item.identity
    return found


def _added(item: ContainerState) -> Object:
    """Return the status of an added container, of which nobody asks whether it is ready."""
    return {**_container(item), "ready": False, "started": None}


def _state(state: State) -> Object:
    match state:
        case Waiting():
            found: Object = {"reason": state.reason}
            if state.message:
                found["message"] = state.message
            return {"waiting": found}
        case Running():
            return {"running": {"startedAt": rfc3339(state.since)}}
        case Ended():
            return {"terminated": _terminated(state)}


def _terminated(ended: Ended) -> Object:
    result = ended.exit
    found: Object = {
        "exitCode": result.code,
        "reason": result.reason or ("Completed" if result.code == 0 else "Error"),
        "startedAt": rfc3339(result.began),
        "finishedAt": rfc3339(result.ended),
    }
    # As kubelet: the exit code carries the signal, which is reported only where there is no code.
    if message := ended.message or result.message:
        found["message"] = message
    if ended.identity:
        found["containerID"] = ended.identity
    return found
