"""kstatus, by which Flux and Helm judge: Current, InProgress or Failed."""

from __future__ import annotations

from typing import Any, Literal

Object = dict[str, Any]
Verdict = Literal["Current", "InProgress", "Failed"]

_NO_DEADLINE = 2**31 - 1


def kstatus(obj: Object) -> Verdict:
    """Judge *obj*: its generation and the two general conditions first, then by its kind."""
    status = obj.get("status") or {}
    generation = obj["metadata"].get("generation")
    if generation is not None and status.get("observedGeneration", generation) != generation:
        return "InProgress"
    for condition in status.get("conditions") or ():
        if condition["status"] == "True" and condition["type"] == "Reconciling":
            return "InProgress"
        if condition["status"] == "True" and condition["type"] == "Stalled":
            return "Failed"
    judge = _KINDS.get((obj["apiVersion"].rpartition("/")[0], obj["kind"]), _by_ready)
    return judge(obj, obj.get("spec") or {}, status)


def _of(status: Object, kind: str) -> Object:
    found = (each for each in status.get("conditions") or () if each["type"] == kind)
    return next(found, {})


def _current(is_current: bool) -> Verdict:
    return "Current" if is_current else "InProgress"


def _by_ready(_: Object, __: Object, status: Object) -> Verdict:
    return _current(_of(status, "Ready").get("status", "True") == "True")


def _deployment(_: Object, spec: Object, status: Object) -> Verdict:
    progressing = _of(status, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return "Failed"
    unlimited = spec.get("progressDeadlineSeconds", _NO_DEADLINE) == _NO_DEADLINE
    rolled_out = (progressing.get("status"), progressing.get("reason")) == (
        "True",
        "NewReplicaSetAvailable",
    )
    wanted, total = spec.get("replicas", 1), status.get("replicas", 0)
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    return _current(
        total == wanted <= updated <= available
        and status.get("readyReplicas", 0) >= wanted
        and (unlimited or rolled_out)
        and _of(status, "Available").get("status") == "True"
    )


def _stateful_set(_: Object, spec: Object, status: Object) -> Verdict:
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return "Current"
    wanted = spec.get("replicas", 1)
    if status.get("replicas", 0) != wanted or status.get("readyReplicas", 0) < wanted:
        return "InProgress"
    partition = (strategy.get("rollingUpdate") or {}).get("partition", -1)
    if partition != -1:
        return _current(status.get("updatedReplicas", 0) >= wanted - partition)
    same = status.get("currentRevision", "") == status.get("updateRevision", "")
    return _current(status.get("currentReplicas", 0) >= wanted and same)


def _replica_set(_: Object, spec: Object, status: Object) -> Verdict:
    wanted = spec.get("replicas", 1)
    counted = ("fullyLabeledReplicas", "availableReplicas", "readyReplicas")
    return _current(
        _of(status, "ReplicaFailure").get("status") != "True"
        and all(status.get(name, 0) >= wanted for name in counted)
        and status.get("replicas", 0) <= wanted
    )


def _daemon_set(obj: Object, _: Object, status: Object) -> Verdict:
    if "generation" not in obj["metadata"] or "observedGeneration" not in status:
        return "InProgress"
    counted = (
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberReady",
    )
    wanted = status.get("desiredNumberScheduled", -1)
    return _current(wanted != -1 and all(status.get(name, 0) >= wanted for name in counted))


def _job(_: Object, __: Object, status: Object) -> Verdict:
    for condition in status.get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
            return "Current" if condition["type"] == "Complete" else "Failed"
    return _current(bool(status.get("startTime")))


def _claim(_: Object, __: Object, status: Object) -> Verdict:
    return _current(status.get("phase") == "Bound")


def _pod(_: Object, __: Object, status: Object) -> Verdict:
    phase = status.get("phase")
    if phase in ("Succeeded", "Failed"):
        return "Current"
    return _current(phase == "Running" and _of(status, "Ready").get("status") == "True")


_KINDS = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
}
