"""Argo CD's judgement of workloads: Healthy, Progressing, Degraded or Suspended."""

from __future__ import annotations

from typing import Any, Literal

Object = dict[str, Any]
Verdict = Literal["Healthy", "Progressing", "Degraded", "Suspended"]


def argo_health(obj: Object) -> Verdict:
    """Judge *obj*, a workload; other kinds have no health there unless a script gives them one."""
    return _KINDS[obj["kind"]](obj, obj.get("spec") or {}, obj.get("status") or {})


def _of(status: Object, kind: str) -> Object:
    found = (each for each in status.get("conditions") or () if each["type"] == kind)
    return next(found, {})


def _healthy(is_healthy: bool) -> Verdict:
    return "Healthy" if is_healthy else "Progressing"


def _is_observed(obj: Object, status: Object) -> bool:
    return bool(obj["metadata"].get("generation", 0) <= status.get("observedGeneration", 0))


def _deployment(obj: Object, spec: Object, status: Object) -> Verdict:
    if spec.get("paused"):
        return "Suspended"
    if not _is_observed(obj, status):
        return "Progressing"
    if _of(status, "Progressing").get("reason") == "ProgressDeadlineExceeded":
        return "Degraded"
    updated = status.get("updatedReplicas", 0)
    lagging = "replicas" in spec and updated < spec["replicas"]
    return _healthy(
        not lagging
        and status.get("replicas", 0) <= updated
        and status.get("availableReplicas", 0) >= updated
    )


def _stateful_set(obj: Object, spec: Object, status: Object) -> Verdict:
    if not status.get("observedGeneration") or not _is_observed(obj, status):
        return "Progressing"
    if "replicas" in spec and status.get("readyReplicas", 0) < spec["replicas"]:
        return "Progressing"
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "RollingUpdate" and rolling is not None:
        goal = spec.get("replicas", 0) - rolling.get("partition", spec.get("replicas", 0))
        return _healthy(status.get("updatedReplicas", 0) >= goal)
    if strategy.get("type") == "OnDelete":
        return "Healthy"
    return _healthy(status.get("updateRevision", "") == status.get("currentRevision", ""))


def _replica_set(obj: Object, spec: Object, status: Object) -> Verdict:
    if not _is_observed(obj, status):
        return "Progressing"
    if _of(status, "ReplicaFailure").get("status") == "True":
        return "Degraded"
    return _healthy(status.get("availableReplicas", 0) >= spec.get("replicas", 0))


def _daemon_set(obj: Object, spec: Object, status: Object) -> Verdict:
    if not _is_observed(obj, status):
        return "Progressing"
    if (spec.get("updateStrategy") or {}).get("type") == "OnDelete":
        return "Healthy"
    wanted = status.get("desiredNumberScheduled", 0)
    found = (status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0))
    return _healthy(min(found) >= wanted)


def _job(_: Object, __: Object, status: Object) -> Verdict:
    """Judge by which conditions there are; what they say is not looked at."""
    if _of(status, "Failed"):
        return "Degraded"
    return _healthy(bool(_of(status, "Complete")))


_KINDS = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "ReplicaSet": _replica_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
}
