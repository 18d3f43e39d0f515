"""Start the Job that is due, tidy up finished ones, and say when to look again."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta

from skerry.api.objects import Object
from skerry.controllers.workload.cronjob.observe import Observed
from skerry.controllers.workload.kinds import CRON_JOBS, JOBS
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.machinery.conditions import find_condition, is_true
from skerry.logic.machinery.cron import Schedule, ScheduleError, missed_times, parse_schedule
from skerry.logic.machinery.plan import Action, Announcement, Create, Delete, Plan, Target, Update
from skerry.logic.workloads.owners import TargetOf, oldest_first, owner_reference

_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
# More missed times than this mean a clock that jumped or a controller that was away for long.
_TOO_MANY = 100
# A look slightly early would find nothing due and wait a whole round.
_SLACK_SECONDS = 0.1


class _Step:
    """One decision in the making."""

    def __init__(self, observed: Observed, now: datetime) -> None:
        self.cron_job = observed.cron_job
        self.spec = self.cron_job["spec"]
        self.now = now
        self.jobs = list(oldest_first(observed.jobs))
        self.active = [job for job in self.jobs if not _over(job)]
        self.status: Object = copy.deepcopy(self.cron_job.get("status") or {})
        self.actions: list[Action] = []
        self.announcements: list[Announcement] = []
        self.again: float | None = None

    def record_event(self, reason: str, text: str, *, warning: bool = False) -> None:
        about = self.cron_job
        self.announcements.append(
            Announcement(about, "Warning" if warning else "Normal", reason, text)
        )

    def delete(self, job: Object, reason: str) -> None:
        self.actions.append(
            Delete(
                TargetOf(JOBS)(job),
                reason=reason,
                uid=job["metadata"]["uid"],
                propagation="Background",
            )
        )
        self.record_event("SuccessfulDelete", f"Deleted job {job['metadata']['name']}")


def decide(observed: Observed, now: datetime) -> Plan:
    """Do what is due at *now*."""
    step = _Step(observed, now)
    _report_jobs(step)
    _tidy(step)
    if "deletionTimestamp" not in step.cron_job["metadata"] and not step.spec.get("suspend"):
        try:
            schedule = parse_schedule(step.spec["schedule"], step.spec.get("timeZone") or "")
        except ScheduleError as error:
            text = f"unparseable schedule: {step.spec['schedule']!r} : {error}"
            step.record_event("UnparseableSchedule", text, warning=True)
        else:
            _start_due(step, schedule)
    _finish_status(step)
    return Plan(step.actions, step.announcements, requeue_after_seconds=step.again)


def _over(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _report_jobs(step: _Step) -> None:
    """Record what became of Jobs that were active, and of active ones that nobody here started."""
    before = {item["uid"]: item["name"] for item in step.status.get("active") or ()}
    for job in step.jobs:
        metadata = job["metadata"]
        name = metadata["name"]
        if before.pop(metadata["uid"], None) is None:
            started = _SCHEDULED in (metadata.get("annotations") or {})
            if not started and not _over(job):
                text = f"Saw a job that the controller did not create or forgot: {name}"
                step.record_event("UnexpectedJob", text, warning=True)
        elif _over(job):
            ended = "Complete" if is_true(job, "Complete") else "Failed"
            step.record_event("SawCompletedJob", f"Saw completed job: {name}, condition: {ended}")
    for name in before.values():
        step.record_event("MissingJob", f"Active job went missing: {name}")


def _tidy(step: _Step) -> None:
    """Delete finished Jobs beyond the history limits, oldest first."""
    limits = (
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    )
    for kind, field, default in limits:
        ended = [job for job in step.jobs if is_true(job, kind)]
        limit = int(step.spec.get(field, default))
        for job in ended[: max(0, len(ended) - limit)]:
            if "deletionTimestamp" not in job["metadata"]:
                step.delete(job, "HistoryLimit")


def _start_due(step: _Step, schedule: Schedule) -> None:
    following = schedule.after(step.now)
    if following is None:
        # Kubernetes' own reason: to it the times that never come are all the same one.
        why = "time difference between two schedules is less than 1 second"
        text = f"invalid schedule: {step.spec['schedule']} : {why}"
        step.record_event("InvalidSchedule", text, warning=True)
        return
    step.again = (following - step.now).total_seconds() + _SLACK_SECONDS
    due = _latest_due(step, schedule)
    if due is None:
        return
    deadline = step.spec.get("startingDeadlineSeconds")
    if deadline is not None and due + timedelta(seconds=int(deadline)) < step.now:
        text = f"Missed scheduled time to start a job: {due:%a, %d %b %Y %H:%M:%S} +0000"
        step.record_event("MissSchedule", text, warning=True)
        return
    policy = step.spec.get("concurrencyPolicy", "Allow")
    if policy == "Forbid" and step.active:
        text = (
            "Not starting job because prior execution is running and concurrency policy is Forbid"
        )
        step.record_event("JobAlreadyActive", text)
        return
    if policy == "Replace":
        for job in step.active:
            step.delete(job, "Replaced")
        step.active = []
    _create(step, due)


def _latest_due(step: _Step, schedule: Schedule) -> datetime | None:
    """Return the latest time that has come and was not served."""
    since = parse_rfc3339(step.cron_job["metadata"]["creationTimestamp"])
    if last := step.status.get("lastScheduleTime"):
        since = parse_rfc3339(last)
    deadline = step.spec.get("startingDeadlineSeconds")
    if deadline is not None:
        since = max(since, step.now - timedelta(seconds=int(deadline)))
    missed = missed_times(schedule, since, step.now, _TOO_MANY + 1)
    if len(missed) > _TOO_MANY:
        step.record_event(
            "TooManyMissedTimes",
            f"too many missed start times: {len(missed)}. Set or decrease "
            ".spec.startingDeadlineSeconds or check clock skew",
            warning=True,
        )
        return _latest_before_now(schedule, step.now)
    return missed[-1] if missed else None


def _latest_before_now(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the last time not after *now*, looked for in longer and longer stretches."""
    for hours in (1, 24, 24 * 31, 24 * 366):
        found = missed_times(schedule, now - timedelta(hours=hours), now, 60 * 24)
        if found:
            return found[-1]
    return None


def _create(step: _Step, due: datetime) -> None:
    metadata = step.cron_job["metadata"]
    name = f"{metadata['name']}-{int(due.timestamp()) // 60}"
    template = step.spec["jobTemplate"]
    inner = copy.deepcopy(template.get("metadata") or {})
    annotations = {**(inner.get("annotations") or {}), _SCHEDULED: rfc3339(due)}
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": inner.get("labels") or {},
            "annotations": annotations,
            "ownerReferences": [owner_reference(step.cron_job, "batch/v1", "CronJob")],
        },
        "spec": copy.deepcopy(template["spec"]),
    }
    target = Target(JOBS, name, metadata["namespace"])
    step.actions.append(Create(target, job, reason="Due"))
    step.record_event("SuccessfulCreate", f"Created job {name}")
    step.status["lastScheduleTime"] = rfc3339(due)


def _finish_status(step: _Step) -> None:
    """Tell of active Jobs and of the last success."""
    deleted = {a.target.name for a in step.actions if isinstance(a, Delete)}
    step.status["active"] = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job["metadata"]["name"],
            "namespace": job["metadata"]["namespace"],
            "uid": job["metadata"]["uid"],
            "resourceVersion": job["metadata"]["resourceVersion"],
        }
        for job in step.active
        if job["metadata"]["name"] not in deleted
    ]
    ends = [
        str((job.get("status") or {}).get("completionTime"))
        for job in step.jobs
        if find_condition(job, "Complete") and (job.get("status") or {}).get("completionTime")
    ]
    if ends:
        step.status["lastSuccessfulTime"] = max(
            [*ends, str(step.status.get("lastSuccessfulTime") or "")]
        )
    status = {name: value for name, value in step.status.items() if value}
    old = {k: v for k, v in (step.cron_job.get("status") or {}).items() if v}
    if _without_versions(status) == _without_versions(old):
        return
    wanted = copy.deepcopy(step.cron_job)
    wanted["status"] = status
    step.actions.append(
        Update(TargetOf(CRON_JOBS)(wanted), wanted, "StatusChanged", subresource="status")
    )


def _without_versions(status: Object) -> Object:
    """Return *status* without what changes with every change of a Job."""
    active = [
        {k: v for k, v in item.items() if k != "resourceVersion"}
        for item in status.get("active") or ()
    ]
    return {**status, "active": active}
