"""CronJobs."""

from __future__ import annotations

import re
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.batch import job_spec_errors
from skerry.logic.machinery.builtin.pod_defaults import default_template
from skerry.logic.machinery.builtin.pod_warnings import name_warnings, template_warnings
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    member,
    one_of,
    unsupported,
)
from skerry.logic.machinery.builtin.workload_parts import (
    count_errors,
)
from skerry.logic.machinery.cron import ScheduleError, check_schedule

_CONCURRENCY = ("Allow", "Forbid", "Replace")
# A job's name ends with the eleven characters of its time.
_MAX_CRON_JOB_NAME_LENGTH = 52


def _default_cron_job(cron_job: Object) -> None:
    spec = child(cron_job, "spec")
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    absent(spec, "suspend", False)
    absent(spec, "successfulJobsHistoryLimit", 3)
    absent(spec, "failedJobsHistoryLimit", 1)
    # A template is not a Job: only its pods are defaulted, the rest when a Job is made of it.
    default_template(child(child(spec, "jobTemplate"), "spec"))


def _schedule_errors(spec: Object, former: Object | None) -> Errors:
    schedule, path = spec.get("schedule") or "", "spec.schedule"
    if not schedule:
        return [FieldError.required(path)]
    errors: Errors = []
    try:
        check_schedule(schedule)
    except ScheduleError as error:
        errors.append(FieldError.invalid(path, schedule, str(error)))
    # Zones in schedules were accepted once; an old object may keep its own.
    tolerated = former is not None and "TZ" in (former.get("schedule") or "")
    if "TZ" in schedule and not tolerated:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(FieldError.invalid(path, schedule, text))
    elif "TZ" in schedule and spec.get("timeZone") is not None:
        text = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(FieldError.invalid(path, schedule, text))
    return errors


_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def _zone_errors(zone: str | None) -> Errors:
    path = "spec.timeZone"
    if zone is None:
        return []
    if not zone:
        return [FieldError.invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or _ZONE_PART(part) is None:
            return [FieldError.invalid(path, zone, f"unknown time zone {zone}")]
    if zone.lower() == "local":
        text = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        return [FieldError.invalid(path, zone, text)]
    if not _zone_exists(zone):
        return [FieldError.invalid(path, zone, f"unknown time zone {zone}")]
    return []


@lru_cache(maxsize=256)
def _zone_exists(zone: str) -> bool:
    """Tell whether the machine's zone database knows *zone*; without one, believe the client."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return not available_timezones()
    return True


def _cron_job_errors(cron_job: Object, former: Object | None) -> Errors:
    spec = cron_job.get("spec") or {}
    errors = _schedule_errors(spec, former)
    if former is None or former.get("timeZone") != spec.get("timeZone"):
        errors += _zone_errors(spec.get("timeZone"))
    errors += one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", _CONCURRENCY)
    errors += _job_template_errors(member(spec, "jobTemplate", "spec") or {})
    counts = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    return errors + count_errors(spec, counts)


def _job_template_errors(spec: Object) -> Errors:
    path = "spec.jobTemplate.spec"
    errors = job_spec_errors(spec, path)
    if spec.get("selector") is not None:
        text = "`selector` will be auto-generated"
        errors.append(FieldError.invalid(f"{path}.selector", spec["selector"], text))
    if spec.get("manualSelector"):
        errors.append(unsupported(f"{path}.manualSelector", True, ("nil", "false")))
    return errors


def _validate_cron_job(cron_job: Object) -> Errors:
    errors = _cron_job_errors(cron_job, None)
    name = member(cron_job, "metadata", "name") or ""
    if len(name) > _MAX_CRON_JOB_NAME_LENGTH:
        text = f"must be no more than {_MAX_CRON_JOB_NAME_LENGTH} characters"
        errors.append(FieldError.invalid("metadata.name", name, text))
    return errors


def _prepare_cron_job(cron_job: Object) -> None:
    cron_job["status"] = {}


def _cron_job_warnings(cron_job: Object) -> list[str]:
    template = member(cron_job, "spec", "jobTemplate", "spec", "template") or {}
    warnings = template_warnings(template, "spec.jobTemplate.spec.template")
    return [*name_warnings(cron_job), *warnings]


RULES: RuleTable = {
    GroupResource("batch", "cronjobs"): Rules(
        default=_default_cron_job,
        prepare_create=_prepare_cron_job,
        validate_create=_validate_cron_job,
        validate_update=lambda new, old: _cron_job_errors(new, old.get("spec") or {}),
        warnings=_cron_job_warnings,
    ),
}
