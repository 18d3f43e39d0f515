"""What the rows of nodes, events, quotas and bindings say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.logic.machinery.printing.cluster import CLUSTER_COLUMNS

NOW = datetime(2025, 6, 6, 12, tzinfo=UTC)
RBAC = "rbac.authorization.k8s.io"


def shown(group: str, kind: str, column: str, **fields: Any) -> Any:
    [found] = [each for each in CLUSTER_COLUMNS[group, kind] if each.name == column]
    return found.cell({"metadata": {"name": "n"}, **fields}, NOW)


@pytest.mark.parametrize(
    ("ready", "spec", "text"),
    [
        (None, {}, "Unknown"),
        ("True", {}, "Ready"),
        ("False", {}, "NotReady"),
        ("Unknown", {}, "NotReady"),
        ("True", {"unschedulable": True}, "Ready,SchedulingDisabled"),
    ],
)
def test_a_node_shows_whether_it_is_ready_and_takes_pods(
    ready: str | None, spec: dict[str, Any], text: str
) -> None:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    status = {"conditions": conditions}
    assert shown("", "Node", "Status", spec=spec, status=status) == text


def test_roles_of_a_node_are_those_of_its_labels_in_order() -> None:
    def roles(**labels: str) -> Any:
        return shown("", "Node", "Roles", metadata={"labels": labels})

    assert roles(a="b") == "<none>"
    prefix = "node-role.kubernetes.io/"
    found = {f"{prefix}worker": "", f"{prefix}control-plane": "", "kubernetes.io/role": "edge"}
    assert roles(**found) == "control-plane,edge,worker"


def test_a_node_shows_its_first_address_of_a_kind() -> None:
    addresses = [
        {"type": "Hostname", "address": "n"},
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "InternalIP", "address": "10.0.0.2"},
    ]
    assert shown("", "Node", "Internal-IP", status={"addresses": addresses}) == "10.0.0.1"
    assert shown("", "Node", "External-IP", status={"addresses": addresses}) == "<none>"
    assert shown("", "Node", "OS-Image", status={}) == "<unknown>"


def test_an_event_reads_the_same_through_both_of_its_apis() -> None:
    subject = {"kind": "Pod", "name": "web"}
    old = {
        "involvedObject": subject,
        "lastTimestamp": "2025-06-06T11:00:00Z",
        "message": " m\n",
        "count": 3,
        "source": {"component": "kubelet", "host": "n1"},
    }
    new = {
        "regarding": subject,
        "series": {"count": 3, "lastObservedTime": "2025-06-06T11:00:00Z"},
        "note": "m",
        "reportingController": "kubelet",
        "reportingInstance": "n1",
    }
    for group, fields in (("", old), ("events.k8s.io", new)):
        columns = ("Last Seen", "Object", "Message", "Count", "Source")
        row = [shown(group, "Event", each, **fields) for each in columns]
        assert row == ["60m", "pod/web", "m", 3, "kubelet, n1"]
    assert shown("events.k8s.io", "Event", "Count") == 1


def test_a_quota_shows_requests_and_limits_apart() -> None:
    status = {"hard": {"pods": "4", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "3"}}
    assert shown("", "ResourceQuota", "Request", status=status) == "cpu: 0/1, pods: 3/4"
    assert shown("", "ResourceQuota", "Limit", status=status) == "limits.cpu: 0/2"


def test_a_binding_lists_its_subjects_by_kind() -> None:
    subjects = [
        {"kind": "User", "name": "ann"},
        {"kind": "ServiceAccount", "namespace": "shop", "name": "robot"},
        {"kind": "User", "name": "bob"},
    ]
    for column, text in (("Users", "ann, bob"), ("Groups", ""), ("ServiceAccounts", "shop/robot")):
        assert shown(RBAC, "RoleBinding", column, subjects=subjects) == text
    role = {"kind": "ClusterRole", "name": "view"}
    assert shown(RBAC, "RoleBinding", "Role", roleRef=role) == "ClusterRole/view"


def test_a_component_is_healthy_or_not_or_nobody_knows() -> None:
    assert shown("", "ComponentStatus", "Status") == "Unknown"
    for status, text in (("True", "Healthy"), ("False", "Unhealthy")):
        conditions = [{"type": "Healthy", "status": status}]
        assert shown("", "ComponentStatus", "Status", conditions=conditions) == text


def test_a_config_map_counts_keys_of_both_kinds() -> None:
    assert shown("", "ConfigMap", "Data", data={"a": "1"}, binaryData={"b": "", "c": ""}) == 3
