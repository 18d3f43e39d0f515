"""What a Deployment says of itself: counts, availability, progress and the end of patience."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.controllers.workload.deployment.status import (
    complete,
    paused_conditions,
    status_of,
    with_condition,
    with_progress,
)
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import condition_of

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def deployment(replicas: int = 2, status: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": "web", "generation": 3},
        "spec": {"replicas": replicas, **spec},
        "status": status or {},
    }


def replica_set(name: str = "web-1", wanted: int = 2, **status: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"replicas": wanted}, "status": status}


def whole(count: int = 2) -> Object:
    return replica_set(replicas=count, readyReplicas=count, availableReplicas=count)


def condition(status: Object, kind: str) -> Object:
    found = condition_of(status["conditions"], kind)
    assert found is not None
    return dict(found)


def progressed(
    old: Object, sets: list[Object], now: datetime = NOW, **spec: Any
) -> tuple[Object, float | None]:
    made = deployment(status=old, **spec)
    return with_progress(made, status_of(made, sets, sets[0], now), sets[0], now)


def test_counts_are_sums_and_zeros_are_left_out() -> None:
    new, old = replica_set(replicas=1, readyReplicas=1), replica_set("web-0", 1, replicas=1)
    found = status_of(deployment(), [new, old], new, NOW)
    assert {key: value for key, value in found.items() if key != "conditions"} == {
        "observedGeneration": 3,
        "replicas": 2,
        "updatedReplicas": 1,
        "readyReplicas": 1,
        "unavailableReplicas": 3,
    }
    assert "updatedReplicas" not in status_of(deployment(), [old], None, NOW)


@pytest.mark.parametrize(("available", "status"), [(2, "True"), (0, "False")])
def test_availability_is_the_least_a_rollout_keeps(available: int, status: str) -> None:
    one = replica_set(replicas=2, availableReplicas=available)
    found = condition(status_of(deployment(), [one], one, NOW), "Available")
    assert found["status"] == status
    assert found["lastTransitionTime"] == rfc3339(NOW)


def test_the_reason_why_no_pods_come_is_passed_on_and_forgotten_with_its_end() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
               "lastTransitionTime": "t"}  # fmt: skip
    bad = replica_set(conditions=[failure])
    found = status_of(deployment(), [bad], bad, NOW)
    assert condition(found, "ReplicaFailure")["reason"] == "FailedCreate"
    healed = status_of(deployment(status=found), [whole()], whole(), NOW)
    assert condition_of(healed["conditions"], "ReplicaFailure") is None


def test_a_rollout_that_moves_says_so_and_counts_from_then() -> None:
    later = NOW + timedelta(seconds=60)
    first, due = progressed({}, [replica_set(replicas=1)])
    assert condition(first, "Progressing")["reason"] == "ReplicaSetUpdated"
    assert due == 601
    second, _ = progressed(first, [replica_set(replicas=2)], later)
    moved = condition(second, "Progressing")
    assert moved["lastUpdateTime"] == rfc3339(later)
    assert moved["lastTransitionTime"] == rfc3339(NOW)
    still, due = progressed(second, [replica_set(replicas=2)], later + timedelta(seconds=100))
    assert condition(still, "Progressing") == moved
    assert due == 501


def test_a_rollout_that_stands_still_runs_out_of_patience() -> None:
    first, _ = progressed({}, [replica_set(replicas=1)])
    late = NOW + timedelta(seconds=601)
    found, due = progressed(first, [replica_set(replicas=1)], late)
    ended = condition(found, "Progressing")
    assert (ended["status"], ended["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert due is None
    again, _ = progressed(found, [replica_set(replicas=1)], late + timedelta(hours=1))
    assert condition(again, "Progressing") == ended


def test_a_finished_rollout_is_settled() -> None:
    done, due = progressed({}, [whole()])
    assert condition(done, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert 'ReplicaSet "web-1" has successfully progressed.' in str(done)
    assert due is None
    # Pods that come and go afterwards are no rollout.
    shaken, _ = progressed(done, [replica_set(replicas=2)], NOW + timedelta(days=1))
    assert condition(shaken, "Progressing") == condition(done, "Progressing")


def test_without_a_deadline_nothing_is_said_of_progress() -> None:
    old = {"conditions": [{"type": "Progressing", "status": "True"}]}
    found, due = progressed(old, [replica_set(replicas=1)], progressDeadlineSeconds=2147483647)
    assert condition_of(found["conditions"], "Progressing") is None
    assert due is None


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"replicas": 3}, False),
        ({"updatedReplicas": 1}, False),
        ({"availableReplicas": 1}, False),
        ({"observedGeneration": 2}, False),
    ],
)
def test_complete_means_all_new_all_available_and_no_other(change: Object, good: bool) -> None:
    status = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 3}
    assert complete(deployment(), {**status, **change}) is good


def test_a_condition_that_says_the_same_is_left_alone() -> None:
    first = with_condition([], "Available", "True", "R", "m", NOW)
    assert with_condition(first, "Available", "True", "R", "other", NOW + timedelta(1)) == first
    changed = with_condition(first, "Available", "True", "R2", "m", NOW + timedelta(1))
    assert changed[0]["lastTransitionTime"] == rfc3339(NOW)
    assert changed[0]["lastUpdateTime"] == rfc3339(NOW + timedelta(1))


def test_a_pause_and_its_end_are_reported_but_not_over_a_failure() -> None:
    paused = paused_conditions(deployment(paused=True), [], NOW)
    assert paused[0]["reason"] == "DeploymentPaused"
    assert paused_conditions(deployment(paused=True), paused, NOW) == paused
    resumed = paused_conditions(deployment(), paused, NOW)
    assert resumed[0]["reason"] == "DeploymentResumed"
    assert paused_conditions(deployment(), [], NOW) == []
    failed = [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]
    assert paused_conditions(deployment(paused=True), failed, NOW) is failed
