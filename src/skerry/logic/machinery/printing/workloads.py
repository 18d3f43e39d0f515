"""Columns of the kinds that keep pods running: deployments, sets, jobs and their kin."""

from __future__ import annotations

from datetime import datetime

from skerry.api.objects import Object
from skerry.logic.machinery.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    computed,
    container_columns,
    field,
    integer,
    is_terminating,
    is_true,
    items,
    labels_text,
    name_of,
    number,
    read,
    selector_column,
    selector_terms,
    size,
    text,
    timed,
)
from skerry.logic.machinery.printing.durations import human_duration, parse_time, since
from skerry.logic.machinery.printing.pods import POD_COLUMNS
from skerry.logic.machinery.resource import Column

_TEMPLATE = ("spec", "template")


def _ready_of_desired(obj: Object) -> str:
    return f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"


def _deployment_selector(deployment: Object) -> str:
    try:
        return selector_terms(read(deployment, "spec", "selector"))
    except ValueError:
        return "<invalid>"


DEPLOYMENT_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed("Ready", _ready_of_desired, "Ready pods of desired pods."),
    field("Up-to-date", "status", "updatedReplicas", default=0),
    field("Available", "status", "availableReplicas", default=0),
    AGE,
    *container_columns(*_TEMPLATE),
    computed("Selector", _deployment_selector, "Which pods are meant.", priority=1),
)

REPLICA_SET_COLUMNS: tuple[Column, ...] = (
    NAME,
    integer("Desired", "spec", "replicas"),
    integer("Current", "status", "replicas"),
    integer("Ready", "status", "readyReplicas"),
    AGE,
    *container_columns(*_TEMPLATE),
    selector_column("spec", "selector"),
)

REPLICATION_CONTROLLER_COLUMNS: tuple[Column, ...] = (
    *REPLICA_SET_COLUMNS[:-1],
    computed(
        "Selector",
        lambda obj: labels_text(read(obj, "spec", "selector")),
        "Labels of the pods that are meant.",
        priority=1,
    ),
)

STATEFUL_SET_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed("Ready", _ready_of_desired, "Ready pods of desired pods."),
    AGE,
    *container_columns(*_TEMPLATE),
)

DAEMON_SET_COLUMNS: tuple[Column, ...] = (
    NAME,
    integer("Desired", "status", "desiredNumberScheduled"),
    integer("Current", "status", "currentNumberScheduled"),
    integer("Ready", "status", "numberReady"),
    integer("Up-to-date", "status", "updatedNumberScheduled"),
    integer("Available", "status", "numberAvailable"),
    computed(
        "Node Selector",
        lambda obj: labels_text(read(obj, *_TEMPLATE, "spec", "nodeSelector")),
        "Labels a node must have to run a pod of this set.",
    ),
    AGE,
    *container_columns(*_TEMPLATE),
    selector_column("spec", "selector"),
)

# In order of precedence; deletion is asked between the ends and the pauses.
_JOB_ENDS = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_PAUSES = (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget"))


def _job_status(job: Object) -> str:
    for kind, word in _JOB_ENDS:
        if is_true(job, kind):
            return word
    if is_terminating(job):
        return "Terminating"
    for kind, word in _JOB_PAUSES:
        if is_true(job, kind):
            return word
    return "Running"


def _completions(job: Object) -> str:
    succeeded = number(job, "status", "succeeded")
    wanted = read(job, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = number(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Object, now: datetime) -> str:
    start = parse_time(read(job, "status", "startTime"))
    if start is None:
        return ""
    return human_duration((parse_time(read(job, "status", "completionTime")) or now) - start)


JOB_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed("Status", _job_status, "How the job stands."),
    computed("Completions", _completions, "Successful pods of wanted ones."),
    timed("Duration", _job_duration, "How long the job took, or has taken so far."),
    AGE,
    *container_columns(*_TEMPLATE),
    selector_column("spec", "selector"),
)


def _suspend(job: Object) -> str:
    suspended = read(job, "spec", "suspend")
    return UNSET if suspended is None else str(bool(suspended))


def _last_schedule(job: Object, now: datetime) -> str:
    last = read(job, "status", "lastScheduleTime")
    return NONE if last is None else since(last, now)


_JOB_TEMPLATE = ("spec", "jobTemplate", "spec")

CRON_JOB_COLUMNS: tuple[Column, ...] = (
    NAME,
    field("Schedule", "spec", "schedule"),
    field("Timezone", "spec", "timeZone", default=NONE),
    computed("Suspend", _suspend, "Whether new jobs are held back.", type="boolean"),
    size("Active", "status", "active", type="integer"),
    timed("Last Schedule", _last_schedule, "How long ago a job was last started."),
    AGE,
    *container_columns(*_JOB_TEMPLATE, "template"),
    selector_column(*_JOB_TEMPLATE, "selector"),
)

POD_TEMPLATE_COLUMNS: tuple[Column, ...] = (
    NAME,
    *container_columns("template", priority=0),
    computed(
        "Pod Labels",
        lambda obj: labels_text(read(obj, "template", "metadata", "labels")),
        "Labels of pods made from the template.",
    ),
)


def _controller(obj: Object) -> str:
    """Return the controlling owner as ``kind.group/name``."""
    for owner in items(obj, "metadata", "ownerReferences"):
        if read(owner, "controller"):
            group = text(owner, "apiVersion").rpartition("/")[0]
            kind = text(owner, "kind") + (f".{group}" if group else "")
            return f"{kind.lower()}/{text(owner, 'name')}"
    return NONE


CONTROLLER_REVISION_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed("Controller", _controller, "The object whose revision this is."),
    field("Revision", "revision", default=0),
    AGE,
)

SCALE_COLUMNS: tuple[Column, ...] = (
    Column("Name", "string", lambda obj, _: name_of(obj), "", NAME.description),
    integer("Desired", "spec", "replicas"),
    integer("Available", "status", "replicas"),
    AGE,
)

WORKLOAD_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "Pod"): POD_COLUMNS,
    ("", "PodTemplate"): POD_TEMPLATE_COLUMNS,
    ("", "ReplicationController"): REPLICATION_CONTROLLER_COLUMNS,
    ("apps", "ControllerRevision"): CONTROLLER_REVISION_COLUMNS,
    ("apps", "DaemonSet"): DAEMON_SET_COLUMNS,
    ("apps", "Deployment"): DEPLOYMENT_COLUMNS,
    ("apps", "ReplicaSet"): REPLICA_SET_COLUMNS,
    ("apps", "StatefulSet"): STATEFUL_SET_COLUMNS,
    ("autoscaling", "Scale"): SCALE_COLUMNS,
    ("batch", "CronJob"): CRON_JOB_COLUMNS,
    ("batch", "Job"): JOB_COLUMNS,
}
