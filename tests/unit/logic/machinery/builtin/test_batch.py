"""Jobs, CronJobs and their schedules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.job_policies import index_count
from skerry.logic.machinery.cron import ScheduleError, check_schedule, parse_schedule
from tests.kit.counting import growth
from tests.kit.machinery.objects import (
    created,
    errors_of,
    merged,
    named,
    resource,
    update_errors,
)

JOBS = resource("jobs", "batch")
CRON_JOBS = resource("cronjobs", "batch")
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]}


def job(spec: Object | None = None) -> Object:
    return named(JOBS, spec=merged({"template": {"spec": POD}}, spec))


def cron_job(spec: Object | None = None) -> Object:
    base = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": POD}}}}
    return named(CRON_JOBS, spec=merged(base, spec))


def test_a_job_is_filled_in_and_knows_its_pods() -> None:
    new = created(JOBS, job())
    spec = new["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert spec["completionMode"] == "NonIndexed"
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    assert spec["template"]["metadata"]["labels"] == {
        "job-name": "x",
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": "u-1",
        "batch.kubernetes.io/controller-uid": "u-1",
    }


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {"template": {"spec": {"restartPolicy": "Always"}}},
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        ({"backoffLimit": -1}, "spec.backoffLimit: Invalid value: -1"),
        ({"completionMode": "Odd"}, 'spec.completionMode: Unsupported value: "Odd"'),
        (
            {"completionMode": "Indexed", "parallelism": 2},
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            {"backoffLimitPerIndex": 1},
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
        ),
        ({"maxFailedIndexes": 1}, "spec.backoffLimitPerIndex: Required value: when maxFailed"),
        ({"managedBy": "me"}, 'spec.managedBy: Invalid value: "me": must be a domain-prefixed'),
        (
            {"selector": {"matchLabels": {"a": "b"}}},
            'spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/',
        ),
        ({"manualSelector": True}, "spec.selector: Required value"),
        (
            {"podReplacementPolicy": "Never"},
            'spec.podReplacementPolicy: Unsupported value: "Never": supported values: "Failed", "T',
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "Ignore"}]}},
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and",
        ),
        (
            {
                "podFailurePolicy": {
                    "rules": [
                        {"action": "Odd", "onExitCodes": {"operator": "In", "values": [0, 3, 2]}}
                    ]
                }
            },
            (
                "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [0,3,2]: must "
                "be ord"
            ),
        ),
        (
            {"successPolicy": {"rules": []}},
            'spec.successPolicy: Invalid value: {"rules":[]}: requires indexed completion mode',
        ),
    ],
)
def test_bad_jobs_are_refused(spec: Object, error: str) -> None:
    assert any(found.startswith(error) for found in errors_of(JOBS, job(spec)))


def test_success_policies_count_indexes() -> None:
    spec = {
        "completionMode": "Indexed",
        "completions": 5,
        "successPolicy": {"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 4}]},
    }
    (error,) = errors_of(JOBS, job(spec))
    assert "must be less than or equal to 3 (the number of indexes in the specified" in error


@given(st.sets(st.integers(0, 30), min_size=1))
def test_intervals_of_indexes_are_counted(indexes: set[int]) -> None:
    assert index_count(",".join(map(str, sorted(indexes))), 31) == len(indexes)


@pytest.mark.parametrize("text", ["1,1", "3-2", "a", "9", "1-2-3", "1-"])
def test_bad_intervals_of_indexes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        index_count(text, 5)


def test_a_jobs_template_does_not_change_unless_it_never_ran() -> None:
    change = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    (error,) = update_errors(JOBS, job(), change)
    assert error.startswith("spec.template: Invalid value")
    assert error.endswith("field is immutable")
    assert update_errors(JOBS, job({"suspend": True}), change) == []
    assert update_errors(JOBS, job(), {"spec": {"parallelism": 3}}) == []
    (error,) = update_errors(JOBS, job(), {"spec": {"completions": 3}})
    assert error == "spec.completions: Invalid value: 3: field is immutable"


def test_a_finished_job_stays_finished() -> None:
    def status(*kinds: str) -> Object:
        return {"status": {"conditions": [{"type": k, "status": "True"} for k in kinds]}}

    errors = [str(e) for e in JOBS.validate_status(status("Failed"), status("Complete"))]
    assert any("cannot disable the terminal Complete=True condition" in e for e in errors)
    errors = [str(e) for e in JOBS.validate_status(status("Complete", "Failed"), {})]
    assert any("cannot set Complete=True and Failed=true conditions" in e for e in errors)
    assert any("completionTime is required for Complete jobs" in e for e in errors)


def test_a_cron_job_is_filled_in() -> None:
    spec = created(CRON_JOBS, cron_job())["spec"]
    assert spec["concurrencyPolicy"] == "Allow"
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["dnsPolicy"] == "ClusterFirst"
    assert "backoffLimit" not in spec["jobTemplate"]["spec"]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"schedule": ""}, "spec.schedule: Required value"),
        (
            {"schedule": "x"},
            'spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1',
        ),
        ({"schedule": "TZ=UTC 0 * * * *"}, "spec.schedule: Invalid value"),
        ({"timeZone": "Local"}, 'spec.timeZone: Invalid value: "Local": timeZone must be an expl'),
        ({"timeZone": "../x"}, 'spec.timeZone: Invalid value: "../x": unknown time zone ../x'),
        ({"timeZone": ""}, 'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty'),
        ({"concurrencyPolicy": "Yes"}, 'spec.concurrencyPolicy: Unsupported value: "Yes"'),
        (
            {"jobTemplate": {"spec": {"selector": {}}}},
            "spec.jobTemplate.spec.selector: Invalid value: {}: `selector` will be auto-generated",
        ),
        ({"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds: Invalid value: -1"),
    ],
)
def test_bad_cron_jobs_are_refused(spec: Object, error: str) -> None:
    assert any(found.startswith(error) for found in errors_of(CRON_JOBS, cron_job(spec)))


def test_a_cron_jobs_name_leaves_room_for_the_time() -> None:
    long = merged(cron_job(), {"metadata": {"name": "a" * 53}})
    assert errors_of(CRON_JOBS, long)[0].endswith("must be no more than 52 characters")


@pytest.mark.parametrize(
    "text",
    ["* * * * *", "*/5 0-6 1,15 jan-mar MON", "@daily", "@every 1h30m", "0 0 ? * 1-5/2",
     "5/10 * * * *", "TZ=UTC 0 0 * * *"],
)  # fmt: skip
def test_schedules_are_accepted(text: str) -> None:
    check_schedule(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("@often", "unrecognized descriptor: @often"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("", "empty spec string"),
        ("@every " + "0" * 16_000 + "x", "must be no more than 1024 characters"),
        ("* " * 16_000, "must be no more than 1024 characters"),
        ("*," * 600 + " * * * *", "must be no more than 1024 characters"),
    ],
)
def test_bad_schedules_are_refused_in_the_parsers_words(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        check_schedule(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["0", "9", "*", "1,", "1-", "*/", "/", "-", "1 ", "* ", "a", "0.", "1h", ".", "\t", "٣"]
)
@pytest.mark.parametrize("prefix", ["", "@every ", "TZ=", "CRON_TZ=UTC ", "* * * * ", "1/"])
def test_no_schedule_takes_more_work_than_its_length(prefix: str, text: str) -> None:
    def attempt(size: int) -> object:
        try:
            return parse_schedule(prefix + text * size)
        except ScheduleError as error:
            return error

    assert growth(lambda n: lambda: attempt(n), 250) < 2.3


@given(
    st.tuples(
        st.integers(0, 59),
        st.integers(0, 23),
        st.integers(1, 31),
        st.integers(1, 12),
        st.integers(0, 6),
    )
)
def test_every_single_moment_is_a_schedule(moment: tuple[int, ...]) -> None:
    check_schedule(" ".join(map(str, moment)))
