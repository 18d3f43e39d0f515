"""The health rules, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.logic.fleet.summary.health import MAX_MESSAGE_LENGTH, MAX_REASON_LENGTH, health

Raw = dict[str, Any]


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Raw:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def verdict(group: str, kind: str, spec: Raw, status: Raw) -> tuple[str, str]:
    found = health(group, kind, {"spec": spec, "status": status})
    return found.status, found.reason


def counts(**numbers: int) -> Raw:
    return {name: number for name, number in numbers.items() if number}


def test_an_object_nobody_reported_on_is_unknown() -> None:
    unusable: list[Any] = [None, {}, "odd"]
    for status in unusable:
        found = health("apps", "Deployment", {"status": status})
        assert (found.status, found.reason) == ("Unknown", "NotReported")


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, counts(replicas=1, updatedReplicas=1, availableReplicas=1), ("True", "")),
        (
            {"replicas": 3},
            counts(replicas=3, updatedReplicas=3, availableReplicas=2),
            ("False", "Unavailable"),
        ),
        (
            {"replicas": 3},
            counts(replicas=4, updatedReplicas=2, availableReplicas=3),
            ("False", "RollingOut"),
        ),
        (
            {"replicas": 3},
            counts(replicas=4, updatedReplicas=3, availableReplicas=3),
            ("False", "RollingOut"),
        ),
        (
            {"replicas": 3, "paused": True},
            counts(replicas=3, updatedReplicas=1, availableReplicas=3),
            ("True", ""),
        ),
        ({"replicas": 0}, {"observedGeneration": 2}, ("True", "")),
        (
            {},
            {
                "availableReplicas": 1,
                "updatedReplicas": 1,
                "replicas": 1,
                "conditions": [condition("Progressing", "False", "ProgressDeadlineExceeded")],
            },
            ("False", "ProgressDeadlineExceeded"),
        ),
        (
            {},
            {"conditions": [condition("ReplicaFailure", "True", "FailedCreate")]},
            ("False", "FailedCreate"),
        ),
    ],
)
def test_a_deployment_is_healthy_when_all_its_replicas_are_new_and_available(
    spec: Raw, status: Raw, expected: tuple[str, str]
) -> None:
    assert verdict("apps", "Deployment", spec, status) == expected


def test_a_replica_set_is_healthy_when_enough_replicas_are_available() -> None:
    assert verdict("apps", "ReplicaSet", {}, counts(replicas=1, availableReplicas=1))[0] == "True"
    assert verdict("apps", "ReplicaSet", {"replicas": 2}, counts(availableReplicas=1)) == (
        "False",
        "Unavailable",
    )
    failed = {"conditions": [condition("ReplicaFailure", "True", "FailedCreate")]}
    assert verdict("apps", "ReplicaSet", {}, failed) == ("False", "FailedCreate")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"conditions": [condition("ScalingActive", "True", "ValidMetricFound")]}, ("True", "")),
        (
            {"conditions": [condition("ScalingActive", "False", "FailedGetResourceMetric")]},
            ("False", "FailedGetResourceMetric"),
        ),
        (
            {"conditions": [condition("ScalingActive", "False", "ScalingDisabled")]},
            ("Unknown", "ScalingDisabled"),
        ),
        (
            {"conditions": [condition("ScalingActive", "False", "NotEnforced")]},
            ("Unknown", "NotEnforced"),
        ),
        ({"currentReplicas": 1}, ("Unknown", "NotReported")),
    ],
)
def test_an_autoscaler_is_healthy_while_it_can_scale(
    status: Raw, expected: tuple[str, str]
) -> None:
    assert verdict("autoscaling", "HorizontalPodAutoscaler", {}, status) == expected


def test_a_disruption_budget_is_healthy_while_disruptions_are_counted() -> None:
    none_left = condition("DisruptionAllowed", "False", "InsufficientPods")
    counted = {"expectedPods": 1, "disruptionsAllowed": 0, "conditions": [none_left]}
    assert verdict("policy", "PodDisruptionBudget", {}, counted) == ("True", "")
    for reason, wanted in (("SyncFailed", "False"), ("NotEnforced", "Unknown")):
        failed = {"conditions": [condition("DisruptionAllowed", "False", reason)]}
        assert verdict("policy", "PodDisruptionBudget", {}, failed) == (wanted, reason)
    assert verdict("policy", "PodDisruptionBudget", {}, {"observedGeneration": 1})[0] == "Unknown"


def test_a_stateful_set_may_keep_old_replicas_below_its_partition() -> None:
    status = {
        "currentRevision": "a",
        "updateRevision": "b",
        "readyReplicas": 3,
        "updatedReplicas": 1,
    }
    partitioned = {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}
    assert verdict("apps", "StatefulSet", partitioned, status) == ("True", "")
    assert verdict("apps", "StatefulSet", {"replicas": 3}, status) == ("False", "RollingOut")
    on_delete = {"replicas": 3, "updateStrategy": {"type": "OnDelete"}}
    assert verdict("apps", "StatefulSet", on_delete, status) == ("True", "")


def test_a_daemon_set_is_healthy_when_every_wanted_node_has_a_new_and_available_pod() -> None:
    full = counts(desiredNumberScheduled=2, updatedNumberScheduled=2, numberAvailable=2)
    assert verdict("apps", "DaemonSet", {}, full) == ("True", "")
    assert verdict("apps", "DaemonSet", {}, full | {"numberAvailable": 1})[1] == "Unavailable"
    old = full | {"updatedNumberScheduled": 1}
    assert verdict("apps", "DaemonSet", {}, old)[1] == "RollingOut"
    assert verdict("apps", "DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, old)[0] == "True"


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, {"conditions": [condition("Complete", "True")]}, ("True", "Complete")),
        (
            {},
            {"conditions": [condition("Failed", "True", "BackoffLimitExceeded")]},
            ("False", "BackoffLimitExceeded"),
        ),
        ({}, {"active": 1}, ("True", "Running")),
        ({"suspend": True}, {"ready": 0}, ("Unknown", "Suspended")),
        ({}, {"ready": 0}, ("Unknown", "Pending")),
    ],
)
def test_a_job_is_healthy_while_it_runs_and_when_it_is_complete(
    spec: Raw, status: Raw, expected: tuple[str, str]
) -> None:
    assert verdict("batch", "Job", spec, status) == expected


def waiting(reason: str) -> Raw:
    return {"containerStatuses": [{"state": {"waiting": {"reason": reason}}}]}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Succeeded"}, ("True", "Succeeded")),
        ({"phase": "Failed", "reason": "Evicted"}, ("False", "Evicted")),
        ({"phase": "Failed"}, ("False", "Failed")),
        ({"phase": "Unknown"}, ("Unknown", "NodeLost")),
        ({"phase": "Running", "conditions": [condition("Ready", "True")]}, ("True", "")),
        ({"phase": "Running", "conditions": [condition("Ready", "False")]}, ("False", "NotReady")),
        ({"phase": "Running", **waiting("CrashLoopBackOff")}, ("False", "CrashLoopBackOff")),
        ({"phase": "Pending", **waiting("ContainerCreating")}, ("False", "Pending")),
        (
            {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "")]},
            ("False", "Unschedulable"),
        ),
    ],
)
def test_a_pod_reports_what_it_waits_for(status: Raw, expected: tuple[str, str]) -> None:
    assert verdict("", "Pod", {}, status) == expected


def test_only_a_load_balancer_has_something_to_wait_for_among_services() -> None:
    pending: Raw = {"loadBalancer": {}}
    given_one = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    assert verdict("", "Service", {"type": "ClusterIP"}, pending) == ("True", "")
    assert verdict("", "Service", {"type": "LoadBalancer"}, pending)[1] == "LoadBalancerPending"
    assert verdict("", "Service", {"type": "LoadBalancer"}, given_one) == ("True", "")


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([condition("Ready", "True")], ("True", "")),
        ([condition("Ready", "False", "Broken")], ("False", "Broken")),
        ([condition("Ready", "False")], ("False", "NotReady")),
        ([condition("Ready", "Unknown")], ("Unknown", "ReadyUnknown")),
        ([condition("Ready", "True"), condition("Degraded", "True")], ("False", "Degraded")),
        ([condition("Available", "True"), condition("Degraded", "False")], ("True", "")),
        ([condition("Peculiar", "True")], ("Unknown", "NoStandardCondition")),
    ],
)
def test_any_other_kind_is_judged_by_standard_conditions(
    conditions: list[Raw], expected: tuple[str, str]
) -> None:
    assert verdict("example.org", "Widget", {}, {"conditions": conditions}) == expected


def test_kinds_with_phases_are_judged_by_them() -> None:
    assert verdict("", "PersistentVolumeClaim", {}, {"phase": "Bound"}) == ("True", "")
    assert verdict("", "PersistentVolumeClaim", {}, {"phase": "Lost"}) == ("False", "Lost")
    assert verdict("", "Namespace", {}, {"conditions": []})[1] == "NoStandardCondition"


def test_an_edge_cannot_make_a_verdict_long() -> None:
    status = {"conditions": [condition("Ready", "False", "r" * 1000, "m" * 9000)]}
    found = health("example.org", "Widget", {"status": status})
    assert len(found.reason) == MAX_REASON_LENGTH
    assert len(found.message) == MAX_MESSAGE_LENGTH


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
names = st.sampled_from(
    ["conditions", "phase", "containerStatuses", "loadBalancer", "replicas", "active", "state"]
)
KINDS = [
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("", "Pod"),
    ("", "Service"),
    ("", "Namespace"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("policy", "PodDisruptionBudget"),
    ("x", "Y"),
]


@given(st.sampled_from(KINDS), st.dictionaries(names, json), st.dictionaries(names, json))
@settings(max_examples=150, deadline=None)
def test_whatever_an_edge_reports_gets_a_verdict(
    kind: tuple[str, str], spec: Raw, status: Raw
) -> None:
    found = health(*kind, {"spec": spec, "status": status})
    assert found.status in ("True", "False", "Unknown")
