"""A pod's row says what kubectl users expect of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.logic.machinery.printing import columns_for
from skerry.logic.machinery.printing.pods import pod_row_conditions, pod_summary

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)


def pod(
    phase: str = "Running",
    statuses: list[dict[str, Any]] | None = None,
    init_statuses: list[dict[str, Any]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    spec = {
        "containers": [{"name": f"c{index}"} for index in range(len(statuses or [{}]))],
        "initContainers": more.pop(
            "init", [{"name": f"i{n}"} for n, _ in enumerate(init_statuses or ())]
        ),
        **more.pop("spec", {}),
    }
    status = {
        "phase": phase,
        "containerStatuses": statuses or [],
        "initContainerStatuses": init_statuses or [],
        **more.pop("status", {}),
    }
    metadata = {"name": "web", "creationTimestamp": "2025-03-01T11:55:00Z", **more.pop("meta", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


RUNNING = {"ready": True, "state": {"running": {}}}
COMPLETED = {"ready": False, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}


def waiting(reason: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason}}}


def ended(**terminated: Any) -> dict[str, Any]:
    return {"state": {"terminated": terminated}}


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


def cells(obj: dict[str, Any]) -> list[Any]:
    return [column.cell(obj, NOW) for column in columns_for("", "Pod")]


@pytest.mark.parametrize(
    ("obj", "status"),
    [
        (pod("Pending"), "Pending"),
        (pod("Failed", status={"reason": "Evicted"}), "Evicted"),
        (pod("Running", [RUNNING]), "Running"),
        (pod("Running", [waiting("CrashLoopBackOff")]), "CrashLoopBackOff"),
        (pod("Running", [RUNNING, waiting("ImagePullBackOff")]), "ImagePullBackOff"),
        (pod("Running", [waiting("First"), waiting("Second")]), "First"),
        (pod("Failed", [ended(exitCode=1, reason="Error")]), "Error"),
        (pod("Failed", [ended(exitCode=3)]), "ExitCode:3"),
        (pod("Failed", [ended(exitCode=137, signal=9)]), "Signal:9"),
        (pod("Succeeded", [COMPLETED]), "Completed"),
        (
            pod(
                "Running",
                [COMPLETED, RUNNING],
                status={"conditions": [condition("Ready")]},
            ),
            "Running",
        ),
        (pod("Running", [COMPLETED, RUNNING]), "NotReady"),
        (
            pod(
                "Pending",
                status={
                    "conditions": [condition("PodScheduled", "False", reason="SchedulingGated")]
                },
            ),
            "SchedulingGated",
        ),
        (pod("Running", [RUNNING], meta={"deletionTimestamp": "x"}), "Terminating"),
        (pod("Succeeded", [COMPLETED], meta={"deletionTimestamp": "x"}), "Completed"),
        (
            pod("Running", meta={"deletionTimestamp": "x"}, status={"reason": "NodeLost"}),
            "Unknown",
        ),
    ],
)
def test_the_status_is_the_most_specific_word(obj: dict[str, Any], status: str) -> None:
    assert pod_summary(obj).status == status


@pytest.mark.parametrize(
    ("init_statuses", "status"),
    [
        ([{"state": {"running": {}}}, {}], "Init:0/2"),
        ([ended(exitCode=0), waiting("PodInitializing")], "Init:1/2"),
        ([waiting("CrashLoopBackOff"), {}], "Init:CrashLoopBackOff"),
        ([ended(exitCode=1, reason="Error"), {}], "Init:Error"),
        ([ended(exitCode=2), {}], "Init:ExitCode:2"),
        ([ended(exitCode=2, signal=15), {}], "Init:Signal:15"),
        ([ended(exitCode=0), ended(exitCode=0)], "PodInitializing"),
    ],
)
def test_init_containers_speak_until_they_are_done(
    init_statuses: list[dict[str, Any]], status: str
) -> None:
    obj = pod("Pending", [waiting("PodInitializing")], init_statuses)
    assert pod_summary(obj).status == status


def test_an_initialized_pod_speaks_of_its_containers_even_when_an_init_container_restarts() -> None:
    obj = pod(
        "Running",
        [RUNNING],
        [{"state": {"running": {}}}],
        status={"conditions": [condition("Initialized")]},
    )
    # The reason stays what the init container made it, as in Kubernetes; readiness is counted.
    assert pod_summary(obj).ready == 1


def test_sidecars_count_as_containers() -> None:
    sidecar = {"name": "i0", "restartPolicy": "Always"}
    status = {
        "name": "i0",
        "started": True,
        "ready": True,
        "restartCount": 2,
        "state": {"running": {}},
    }
    summary = pod_summary(pod("Running", [RUNNING], [status], init=[sidecar]))
    assert (summary.ready, summary.total, summary.restarts.count) == (2, 2, 2)


def test_restarts_say_how_long_ago_the_last_one_was() -> None:
    status = {
        **RUNNING,
        "restartCount": 2,
        "lastState": {"terminated": {"finishedAt": "2025-03-01T11:55:00Z"}},
    }
    assert cells(pod("Running", [status, {**RUNNING, "restartCount": 1}]))[:5] == [
        "web",
        "2/2",
        "Running",
        "3 (5m ago)",
        "5m",
    ]


def test_restarts_of_unknown_time_are_a_plain_number() -> None:
    assert cells(pod("Running", [{**RUNNING, "restartCount": 4}]))[3] == "4"


def test_wide_columns_say_none_for_what_is_missing() -> None:
    assert cells(pod())[5:] == ["<none>"] * 4


def test_wide_columns_show_address_node_and_gates() -> None:
    obj = pod(
        spec={
            "nodeName": "n1",
            "readinessGates": [{"conditionType": "lb"}, {"conditionType": "x"}],
        },
        status={
            "podIPs": [{"ip": "10.0.0.7"}],
            "nominatedNodeName": "n2",
            "conditions": [condition("lb")],
        },
    )
    assert cells(obj)[5:] == ["10.0.0.7", "n1", "n2", "1/2"]


@pytest.mark.parametrize(("phase", "count"), [("Running", 0), ("Succeeded", 1), ("Failed", 1)])
def test_rows_of_pods_that_ended_are_completed(phase: str, count: int) -> None:
    assert len(pod_row_conditions(pod(phase))) == count


def test_the_single_address_wins_over_the_list() -> None:
    obj = pod(status={"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]})
    assert cells(obj)[5] == "10.0.0.1"
