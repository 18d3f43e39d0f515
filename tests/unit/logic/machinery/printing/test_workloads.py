"""Columns of what keeps pods running: counts, states, durations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.printing.workloads import WORKLOAD_COLUMNS

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def cell(group: str, kind: str, column: str, obj: Object) -> Any:
    (found,) = (each for each in WORKLOAD_COLUMNS[group, kind] if each.name == column)
    return found.cell(obj, NOW)


def job(column: str, *conditions: str, metadata: Object | None = None, **parts: Any) -> Any:
    status = {"conditions": [{"type": kind, "status": "True"} for kind in conditions]}
    status |= parts.pop("status", {})
    return cell("batch", "Job", column, {"metadata": metadata or {}, "status": status, **parts})


def test_ready_of_desired() -> None:
    obj: Object = {"spec": {"replicas": 3}, "status": {"readyReplicas": 1}}
    assert cell("apps", "Deployment", "Ready", obj) == "1/3"
    assert cell("apps", "StatefulSet", "Ready", {}) == "0/0"
    assert cell("apps", "ReplicaSet", "Desired", obj) == 3


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"matchLabels": {"a": "b"}}, "a=b"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "a"),
        ({"matchExpressions": [{"key": "a", "operator": "Odd"}]}, "<invalid>"),
    ],
)
def test_the_selector_of_a_deployment(selector: Object, text: str) -> None:
    assert cell("apps", "Deployment", "Selector", {"spec": {"selector": selector}}) == text


@pytest.mark.parametrize(
    ("conditions", "deleted", "word"),
    [
        (("Complete", "Suspended"), True, "Complete"),
        (("Failed", "FailureTarget"), False, "Failed"),
        (("Suspended",), True, "Terminating"),
        (("Suspended", "FailureTarget"), False, "Suspended"),
        (("FailureTarget",), False, "FailureTarget"),
        ((), False, "Running"),
    ],
)
def test_how_a_job_stands_by_precedence(
    conditions: tuple[str, ...], deleted: bool, word: str
) -> None:
    metadata = {"deletionTimestamp": "2024-01-01T00:00:00Z"} if deleted else {}
    assert job("Status", *conditions, metadata=metadata) == word


@pytest.mark.parametrize(
    ("spec", "succeeded", "text"),
    [
        ({"completions": 5}, 2, "2/5"),
        ({"parallelism": 3}, 1, "1/1 of 3"),
        ({"parallelism": 1}, 0, "0/1"),
        ({}, 0, "0/1"),
    ],
)
def test_completions(spec: Object, succeeded: int, text: str) -> None:
    assert job("Completions", spec=spec, status={"succeeded": succeeded}) == text


def test_a_job_takes_as_long_as_it_took() -> None:
    start = {"startTime": "2023-12-31T23:00:00Z"}
    assert job("Duration") == ""
    assert job("Duration", status=start) == "60m"
    assert job("Duration", status={**start, "completionTime": "2023-12-31T23:00:05Z"}) == "5s"


def test_cron_jobs() -> None:
    assert cell("batch", "CronJob", "Suspend", {"spec": {"suspend": True}}) == "True"
    assert cell("batch", "CronJob", "Suspend", {}) == "<unset>"
    assert cell("batch", "CronJob", "Last Schedule", {}) == "<none>"
    obj: Object = {"status": {"lastScheduleTime": "2023-12-31T23:59:00Z", "active": [{}, {}]}}
    assert cell("batch", "CronJob", "Last Schedule", obj) == "60s"
    assert cell("batch", "CronJob", "Active", obj) == 2


def test_a_revision_names_its_controller() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
    owners = [{"kind": "Other", "name": "x"}, {**owner, "controller": True}]
    obj: Object = {"metadata": {"ownerReferences": owners}}
    assert cell("apps", "ControllerRevision", "Controller", obj) == "statefulset.apps/db"
    assert cell("apps", "ControllerRevision", "Controller", {}) == "<none>"


@pytest.mark.parametrize("place", list(WORKLOAD_COLUMNS))
def test_an_empty_object_breaks_no_column(place: tuple[str, str]) -> None:
    assert [column.cell({}, NOW) for column in WORKLOAD_COLUMNS[place]]
