"""The next step of a Job: count what ended, judge, start or stop pods, tell."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime, timedelta

from skerry.api.objects import Object
from skerry.controllers.workload.job.observe import Observed
from skerry.controllers.workload.kinds import JOBS, PODS
from skerry.kit.text import whole_number
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.machinery.conditions import find_condition, is_true, set_conditions
from skerry.logic.machinery.plan import (
    NOTHING,
    Action,
    Announcement,
    Create,
    Delete,
    Patch,
    Plan,
    Target,
    Update,
)
from skerry.logic.machinery.selectors import Selector
from skerry.logic.workloads.indexes import format_indexes, parse_indexes
from skerry.logic.workloads.job_policies import (
    FAIL_JOB,
    IGNORE,
    failure_counts,
    failures_before,
    index_failed,
    success_of,
    verdict_of,
)
from skerry.logic.workloads.owners import (
    TargetOf,
    claim,
    claim_actions,
    controller_of,
    owner_reference,
)
from skerry.logic.workloads.pods import (
    deletion_order,
    is_finished,
    is_ready,
    is_terminating,
    phase,
    pod_from_template,
)

_POD = TargetOf(PODS)
FINALIZER = "batch.kubernetes.io/job-tracking"
_INDEX = "batch.kubernetes.io/job-completion-index"
# Pods are replaced more and more slowly: 10 s, 20 s, ... as kube-controller-manager.
_BACKOFF_SECONDS = 10.0
_MAX_BACKOFF_SECONDS = 600.0


class _Step:
    """One decision in the making."""

    def __init__(self, observed: Observed, job: Object, now: datetime) -> None:
        self.now = now
        self.job = job
        self.spec = job["spec"]
        self.status: Object = copy.deepcopy(job.get("status") or {})
        self.reference = owner_reference(job, "batch/v1", "Job")
        selector = Selector.from_label_selector(self.spec.get("selector"))
        self.claimed = claim(job, selector, observed.pods)
        self.pods = [*self.claimed.owned, *self.claimed.adopted]
        self.active = [pod for pod in self.pods if not is_finished(pod) and not is_terminating(pod)]
        self.indexed = self.spec.get("completionMode") == "Indexed"
        self.per_index = self.indexed and self.spec.get("backoffLimitPerIndex") is not None
        self.suffixes = list(observed.suffixes)
        self.actions: list[Action] = claim_actions(self.claimed, self.reference, _POD)
        # What is not of the Job any more must not wait to be counted by it.
        self.actions += [_released(pod) for pod in self.claimed.released if _tracked(pod)]
        self.announcements: list[Announcement] = []
        self.again: list[float] = []

    def record_event(self, reason: str, text: str, *, warning: bool = False) -> None:
        self.announcements.append(
            Announcement(self.job, "Warning" if warning else "Normal", reason, text)
        )

    def delete(self, pod: Object, reason: str) -> None:
        self.actions.append(Delete(_POD(pod), reason=reason, uid=pod["metadata"]["uid"]))
        self.record_event("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


def decide(observed: Observed, now: datetime) -> Plan:
    """Take the next step of a Job."""
    if observed.job is None:
        return Plan([_released(pod) for pod in observed.pods if _tracked(pod)])
    if not _ours(observed.job):
        return NOTHING
    step = _Step(observed, observed.job, now)
    if finished(observed.job):
        return _after_the_end(step)
    if "deletionTimestamp" in observed.job["metadata"]:
        # Those that the garbage collector has orphaned already too: nobody else would let them go.
        pods = [*step.pods, *(p for p in observed.pods if controller_of(p) is None)]
        return Plan([*step.actions, *(_released(p) for p in pods if _tracked(p))])
    _begin(step)
    _count(step)
    failure = _failure(step)
    if failure is not None:
        _end(step, "Failed", *failure)
    elif success := _success(step):
        _end(step, "Complete", *success)
    elif step.spec.get("suspend"):
        _suspend(step)
    else:
        _resize(step)
    return _finished_plan(step)


def _ours(job: Object) -> bool:
    managed = job["spec"].get("managedBy")
    return managed in (None, "kubernetes.io/job-controller")


def finished(job: Object) -> bool:
    """Tell whether a Job is over, well or not."""
    return is_true(job, "Complete") or is_true(job, "Failed")


# Counting.


def _begin(step: _Step) -> None:
    if "startTime" not in step.status and not step.spec.get("suspend"):
        step.status["startTime"] = rfc3339(step.now)


def _count(step: _Step) -> None:
    """Move ends from pods to the status, by way of the list of those being counted."""
    uncounted = step.status.get("uncountedTerminatedPods") or {}
    counting = {kind: list(uncounted.get(kind) or ()) for kind in ("succeeded", "failed")}
    tracked = {pod["metadata"]["uid"] for pod in step.pods if _tracked(pod)}
    for kind, uids in counting.items():
        settled = [uid for uid in uids if uid not in tracked]
        step.status[kind] = int(step.status.get(kind, 0)) + len(settled)
        counting[kind] = [uid for uid in uids if uid in tracked]
    done = _indexes(step, "completedIndexes")
    for pod in step.pods:
        ended = _end_of(pod)
        if ended is None or not _tracked(pod):
            continue
        uid = pod["metadata"]["uid"]
        passed_over = ended == "failed" and verdict_of(step.spec, pod).action == IGNORE
        if uid not in counting[ended] and not passed_over:
            counting[ended].append(uid)
        if ended == "succeeded" and step.indexed and (index := _index_of(pod)) is not None:
            done.add(index)
        step.actions.append(_released(pod))
    kept = {kind: uids for kind, uids in counting.items() if uids}
    step.status["uncountedTerminatedPods"] = kept
    if step.indexed:
        step.status["completedIndexes"] = format_indexes(done)
        if not done:
            del step.status["completedIndexes"]
    if step.per_index:
        _count_failed_indexes(step)


def _count_failed_indexes(step: _Step) -> None:
    failed = _indexes(step, "failedIndexes")
    for pod in step.pods:
        index = _index_of(pod)
        if index is not None and _end_of(pod) == "failed" and index_failed(step.spec, pod):
            failed.add(index)
    step.status["failedIndexes"] = format_indexes(failed)


def _indexes(step: _Step, field: str) -> set[int]:
    return parse_indexes(str(step.status.get(field) or ""))


def _end_of(pod: Object) -> str | None:
    """Return how a pod's end counts; one that is deleted before its end counts as failed."""
    if phase(pod) == "Succeeded":
        return "succeeded"
    if phase(pod) == "Failed":
        return "failed"
    gone = is_terminating(pod) and not pod["spec"].get("nodeName")
    return "failed" if gone else None


def _counted(step: _Step, kind: str) -> int:
    """Return how many ended so, those still being counted included."""
    uncounted = step.status.get("uncountedTerminatedPods") or {}
    return int(step.status.get(kind, 0)) + len(uncounted.get(kind) or ())


def _succeeded(step: _Step) -> int:
    if step.indexed:
        return len(_indexes(step, "completedIndexes"))
    return _counted(step, "succeeded")


def _tracked(pod: Object) -> bool:
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def _released(pod: Object) -> Patch:
    # By name: a list as it was seen would undo what others did to it since.
    gone = {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    patch = {"metadata": {"uid": pod["metadata"]["uid"], **gone}}
    return Patch(_POD(pod), patch, reason="EndCounted", kind="strategic", absent_is_fine=True)


def _index_of(pod: Object) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(_INDEX, "")
    return whole_number(text)


# Judging.


def _failure(step: _Step) -> tuple[str, str] | None:
    """Return why the Job has failed: reason and message."""
    if is_true(step.job, "SuccessCriteriaMet"):
        return None  # that was decided before
    condition = find_condition(step.job, "FailureTarget")
    if condition is not None and condition.get("status") == "True":
        return str(condition["reason"]), str(condition["message"])
    for pod in step.pods:
        if phase(pod) == "Failed" and (found := verdict_of(step.spec, pod)).action == FAIL_JOB:
            return "PodFailurePolicy", found.message
    deadline = step.spec.get("activeDeadlineSeconds")
    if deadline is not None and "startTime" in step.status and not step.spec.get("suspend"):
        due = parse_rfc3339(step.status["startTime"]) + timedelta(seconds=int(deadline))
        if step.now >= due:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        step.again.append((due - step.now).total_seconds())
    limit = int(step.spec.get("backoffLimit", 6))
    restarts = 0
    if step.spec["template"]["spec"].get("restartPolicy") == "OnFailure":
        restarts = sum(_restarts(pod) for pod in step.active)
    if _counted(step, "failed") > limit or restarts > limit:
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return _failure_of_indexes(step) if step.per_index else None


def _failure_of_indexes(step: _Step) -> tuple[str, str] | None:
    failed, limit = len(_indexes(step, "failedIndexes")), step.spec.get("maxFailedIndexes")
    if limit is not None and failed > int(limit):
        text = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", text
    if failed and failed + _succeeded(step) >= int(step.spec.get("completions") or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def _restarts(pod: Object) -> int:
    status = pod.get("status") or {}
    groups = ("initContainerStatuses", "containerStatuses")
    return sum(int(c.get("restartCount", 0)) for g in groups for c in status.get(g) or ())


def _success(step: _Step) -> tuple[str, str] | None:
    """Return why the Job has succeeded: reason and message."""
    condition = find_condition(step.job, "SuccessCriteriaMet")
    if condition is not None and condition.get("status") == "True":
        return str(condition["reason"]), str(condition["message"])
    rule = success_of(step.spec, _indexes(step, "completedIndexes")) if step.indexed else None
    if rule is not None:
        return "SuccessPolicy", rule
    if _complete(step):
        return "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _complete(step: _Step) -> bool:
    """Tell whether enough has succeeded; without a number, one success and nothing active."""
    wanted = step.spec.get("completions")
    if wanted is None:
        return _succeeded(step) > 0 and not step.active
    return _succeeded(step) >= int(wanted)


def _end(step: _Step, kind: str, reason: str, message: str) -> None:
    """Stop what is active; with everything counted and gone, the Job is over."""
    for pod in step.active:
        step.delete(pod, "JobEnded")
    target = "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget"
    if find_condition({"status": step.status}, target) is None:
        _condition(step, target, reason, message)
    uncounted = step.status.get("uncountedTerminatedPods") or {}
    if step.active or uncounted or any(is_terminating(p) and not is_finished(p) for p in step.pods):
        return
    _condition(step, kind, reason, message)
    if kind == "Complete":
        step.status["completionTime"] = rfc3339(step.now)
        step.record_event("Completed", "Job completed")
    else:
        step.record_event(reason, message, warning=True)


def _condition(step: _Step, kind: str, reason: str, message: str, status: str = "True") -> None:
    stamp = rfc3339(step.now)
    condition = {"type": kind, "status": status, "lastProbeTime": stamp}
    wanted = {**condition, "reason": reason, "message": message}
    step.status["conditions"] = set_conditions(step.status.get("conditions") or (), [wanted], stamp)


def _suspend(step: _Step) -> None:
    for pod in step.active:
        step.delete(pod, "JobSuspended")
    if not is_true({"status": step.status}, "Suspended"):
        _condition(step, "Suspended", "JobSuspended", "Job suspended")
        step.status.pop("startTime", None)
        step.record_event("Suspended", "Job suspended")


# Starting and stopping.


def _resize(step: _Step) -> None:
    """Have as many active pods as parallelism and what is left to do allow."""
    if is_true({"status": step.status}, "Suspended"):
        _condition(step, "Suspended", "JobResumed", "Job resumed", "False")
        step.status["startTime"] = rfc3339(step.now)
        step.record_event("Resumed", "Job resumed")
    wanted = _wanted(step)
    if len(step.active) > wanted:
        for pod in deletion_order(step.active)[: len(step.active) - wanted]:
            step.delete(pod, "TooManyActive")
        return
    indexes = _free_indexes(step)
    if not step.per_index:
        delay = _backoff(step, step.pods)
        if delay > 0 and len(step.active) < wanted:
            step.again.append(delay)
            return
    for _ in range(min(wanted - len(step.active), len(step.suffixes))):
        if step.indexed and not indexes:
            return
        _create(step, indexes.pop(0) if step.indexed else None)


def _wanted(step: _Step) -> int:
    parallelism = int(step.spec.get("parallelism", 1))
    completions = step.spec.get("completions")
    if completions is None:
        # After the first success nobody new begins; who is at work may finish.
        return len(step.active) if _succeeded(step) else parallelism
    # Terminating pods may still succeed; what they do is not started twice.
    terminating = sum(is_terminating(pod) and not is_finished(pod) for pod in step.pods)
    left = int(completions) - _succeeded(step) - len(_indexes(step, "failedIndexes"))
    return max(0, min(parallelism, left) - terminating)


def _free_indexes(step: _Step) -> list[int]:
    if not step.indexed:
        return []
    taken = _indexes(step, "completedIndexes") | _indexes(step, "failedIndexes")
    busy = [pod for pod in step.pods if not is_finished(pod)]
    taken |= {index for pod in busy if (index := _index_of(pod)) is not None}
    free = [n for n in range(int(step.spec.get("completions") or 0)) if n not in taken]
    return [n for n in free if _may_begin(step, n)] if step.per_index else free


def _may_begin(step: _Step, index: int) -> bool:
    """Tell whether an index may be tried now: each waits for its own failures alone."""
    delay = _backoff(step, [pod for pod in step.pods if _index_of(pod) == index])
    if delay > 0:
        step.again.append(delay)
    return delay <= 0


def _backoff(step: _Step, pods: Sequence[Object]) -> float:
    """Return how long to wait before the next of *pods*, after failures."""
    ends = sorted(
        moment for pod in pods if phase(pod) == "Failed" and (moment := _ended_at(pod)) is not None
    )
    if not ends:
        return 0.0
    since_success = max(
        (m for pod in pods if phase(pod) == "Succeeded" and (m := _ended_at(pod))),
        default=None,
    )
    recent = [m for m in ends if since_success is None or m > since_success]
    if not recent:
        return 0.0
    delay = min(_MAX_BACKOFF_SECONDS, _BACKOFF_SECONDS * 2.0 ** min(len(recent) - 1, 10))
    return delay - (step.now - recent[-1]).total_seconds()


def _ended_at(pod: Object) -> datetime | None:
    moments = [
        parse_rfc3339(ended["finishedAt"])
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
        if (ended := (status.get("state") or {}).get("terminated")) and ended.get("finishedAt")
    ]
    return max(moments, default=None)


def _create(step: _Step, index: int | None) -> None:
    metadata = step.job["metadata"]
    suffix = step.suffixes.pop()
    base = metadata["name"][:57] if index is None else f"{metadata['name'][:50]}-{index}"
    name = f"{base}-{suffix}"
    pod = pod_from_template(step.spec["template"], metadata["namespace"], name, step.reference)
    pod["metadata"].setdefault("finalizers", []).append(FINALIZER)
    if index is not None:
        _number(pod, index, metadata["name"])
    if step.per_index:
        failed = [p for p in step.pods if _index_of(p) == index and _end_of(p) == "failed"]
        replaced = max(failed, key=failures_before, default=None)
        pod["metadata"]["annotations"] |= failure_counts(step.spec, replaced)
    target = Target(PODS, name, metadata["namespace"])
    step.actions.append(Create(target, pod, reason="WorkLeft", exclusive=True))
    step.active.append(pod)
    step.record_event("SuccessfulCreate", f"Created pod: {name}")


def _number(pod: Object, index: int, job: str) -> None:
    """Tell a pod which index it works on: annotation, label, host name and environment."""
    pod["metadata"].setdefault("annotations", {})[_INDEX] = str(index)
    pod["metadata"].setdefault("labels", {})[_INDEX] = str(index)
    pod["spec"]["hostname"] = f"{job}-{index}"
    reference = {"fieldRef": {"fieldPath": f"metadata.annotations['{_INDEX}']"}}
    for group in ("initContainers", "containers"):
        for container in pod["spec"].get(group) or ():
            environment = container.setdefault("env", [])
            if all(item["name"] != "JOB_COMPLETION_INDEX" for item in environment):
                environment.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": reference})


# Events and status.


def _finished_plan(step: _Step) -> Plan:
    step.status["active"] = len(step.active)
    step.status["ready"] = sum(map(is_ready, step.active))
    step.status["terminating"] = sum(
        is_terminating(pod) and not is_finished(pod) for pod in step.pods
    )
    status = {
        name: value
        for name, value in step.status.items()
        if value not in (0, [], "") or name in ("ready", "terminating", "failedIndexes")
    }
    if status != (step.job.get("status") or {}):
        wanted = copy.deepcopy(step.job)
        wanted["status"] = status
        # Before pods are let go: an end must stand here first.
        update = Update(TargetOf(JOBS)(wanted), wanted, "StatusChanged", subresource="status")
        step.actions.insert(0, update)
    again = min(step.again, default=None)
    return Plan(step.actions, step.announcements, requeue_after_seconds=again)


def _after_the_end(step: _Step) -> Plan:
    """Delete a finished Job once its time to live is over."""
    actions: list[Action] = [_released(pod) for pod in step.pods if _tracked(pod)]
    limit = step.spec.get("ttlSecondsAfterFinished")
    if limit is None or "deletionTimestamp" in step.job["metadata"]:
        return Plan(actions)
    ended = next(
        (c["lastTransitionTime"] for kind in ("Complete", "Failed") if (c := _true(step, kind))),
        rfc3339(step.now),
    )
    due = parse_rfc3339(ended) + timedelta(seconds=int(limit))
    if step.now < due:
        return Plan(actions, requeue_after_seconds=(due - step.now).total_seconds())
    metadata = step.job["metadata"]
    target = TargetOf(JOBS)(step.job)
    actions.append(
        Delete(
            target,
            reason="TimeToLiveOver",
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
            propagation="Foreground",
        )
    )
    return Plan(actions)


def _true(step: _Step, kind: str) -> Object | None:
    condition = find_condition(step.job, kind)
    if condition is None or condition.get("status") != "True":
        return None
    return dict(condition)
