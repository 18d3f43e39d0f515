"""CronJobs: schedules, zones, limits, and the Jobs they are to make."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from tests.kit.machinery.objects import (
    POD_SPEC,
    created,
    errors_of,
    merged,
    named,
    resource,
    update_errors,
)

CRON_JOBS = resource("cronjobs", "batch")
TEMPLATE: Object = {"spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}}


def cron_job(**spec: Any) -> Object:
    whole = merged({"schedule": "*/5 * * * *", "jobTemplate": TEMPLATE}, spec)
    return named(CRON_JOBS, spec=whole)


def fields(**spec: Any) -> list[str]:
    return [text.split(": ")[0] for text in errors_of(CRON_JOBS, cron_job(**spec))]


def test_a_cron_job_is_filled_in_but_its_jobs_are_not() -> None:
    spec = created(CRON_JOBS, cron_job())["spec"]
    assert {key: spec[key] for key in spec if key not in ("jobTemplate", "schedule")} == {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
    job = spec["jobTemplate"]["spec"]
    assert "backoffLimit" not in job
    assert job["template"]["spec"]["dnsPolicy"] == "ClusterFirst"


def test_a_client_claims_no_status() -> None:
    assert created(CRON_JOBS, {**cron_job(), "status": {"active": []}})["status"] == {}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"schedule": "@daily"}, []),
        ({"schedule": None}, ["spec.schedule"]),
        ({"schedule": "every day"}, ["spec.schedule"]),
        ({"schedule": "CRON_TZ=UTC 0 0 * * *"}, ["spec.schedule"]),
        ({"concurrencyPolicy": "Queue"}, ["spec.concurrencyPolicy"]),
        ({"startingDeadlineSeconds": -1}, ["spec.startingDeadlineSeconds"]),
        ({"successfulJobsHistoryLimit": -1}, ["spec.successfulJobsHistoryLimit"]),
        ({"failedJobsHistoryLimit": 0}, []),
        (
            {"jobTemplate": {"spec": {"selector": {"matchLabels": {"a": "b"}}}}},
            ["spec.jobTemplate.spec.selector"],
        ),
        (
            {"jobTemplate": {"spec": {"manualSelector": True}}},
            ["spec.jobTemplate.spec.manualSelector"],
        ),
    ],
)
def test_each_field_has_its_form(spec: Object, found: list[str]) -> None:
    assert fields(**spec) == found


@pytest.mark.parametrize(
    ("zone", "good"),
    [
        ("Etc/UTC", True),
        ("Europe/Berlin", True),
        ("", False),
        ("Local", False),
        ("Mars/Olympus", False),
        ("../etc/passwd", False),
        ("-a", False),
        ("a b", False),
        ("x" * 5000, False),
    ],
)
def test_a_zone_is_one_of_the_database(zone: str, good: bool) -> None:
    assert fields(timeZone=zone) == ([] if good else ["spec.timeZone"])


def test_a_zone_in_the_schedule_is_kept_where_it_was_before() -> None:
    old = {"spec": {**cron_job()["spec"], "schedule": "TZ=UTC 0 0 * * *"}}
    new = created(CRON_JOBS, cron_job())
    new["spec"]["schedule"] = "TZ=UTC 1 0 * * *"
    assert CRON_JOBS.validate_update(new, old) == []
    new["spec"]["timeZone"] = "Etc/UTC"
    (error,) = CRON_JOBS.validate_update(new, old)
    assert error.message.endswith("cannot use both timeZone field and TZ or CRON_TZ in schedule")


def test_a_zone_that_is_not_changed_is_not_judged_again() -> None:
    new = created(CRON_JOBS, cron_job())
    new["spec"]["timeZone"] = "Gone/Zone"
    assert CRON_JOBS.validate_update(new, new) == []
    assert update_errors(CRON_JOBS, cron_job(), {"spec": {"timeZone": "Gone/Zone"}})


def test_its_name_leaves_room_for_those_of_its_jobs() -> None:
    obj = cron_job()
    obj["metadata"]["name"] = "a" * 52
    assert errors_of(CRON_JOBS, obj) == []
    obj["metadata"]["name"] = "a" * 53
    (text,) = errors_of(CRON_JOBS, obj)
    assert text.endswith("must be no more than 52 characters")


def test_warnings_are_those_of_its_pods() -> None:
    pod = {"terminationGracePeriodSeconds": -1}
    obj = cron_job(jobTemplate={"spec": {"template": {"spec": pod}}})
    (text,) = CRON_JOBS.warnings(obj)
    assert text.startswith("spec.jobTemplate.spec.template.spec.terminationGracePeriodSeconds")
