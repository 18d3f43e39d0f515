"""Every built-in kind is shown with the columns kubectl users know."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.logic.machinery.printing import DEFAULT_COLUMNS, columns_for

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
META = {"name": "x", "creationTimestamp": "2025-03-01T11:55:00Z"}


def head(group: str, kind: str, *, wide: bool = False) -> str:
    columns = columns_for(group, kind)
    return " | ".join(c.name.upper() for c in columns if wide or c.priority == 0)


def cells(group: str, kind: str, obj: dict[str, Any] | None = None) -> list[Any]:
    full = {"metadata": META, **(obj or {})}
    return [column.cell(full, NOW) for column in columns_for(group, kind)]


RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"


@pytest.mark.parametrize(
    ("group", "kind", "shown"),
    [
        ("", "Pod", "NAME | READY | STATUS | RESTARTS | AGE"),
        ("apps", "Deployment", "NAME | READY | UP-TO-DATE | AVAILABLE | AGE"),
        ("apps", "ReplicaSet", "NAME | DESIRED | CURRENT | READY | AGE"),
        ("", "ReplicationController", "NAME | DESIRED | CURRENT | READY | AGE"),
        ("apps", "StatefulSet", "NAME | READY | AGE"),
        (
            "apps",
            "DaemonSet",
            "NAME | DESIRED | CURRENT | READY | UP-TO-DATE | AVAILABLE | NODE SELECTOR | AGE",
        ),
        ("batch", "Job", "NAME | STATUS | COMPLETIONS | DURATION | AGE"),
        (
            "batch",
            "CronJob",
            "NAME | SCHEDULE | TIMEZONE | SUSPEND | ACTIVE | LAST SCHEDULE | AGE",
        ),
        ("", "Service", "NAME | TYPE | CLUSTER-IP | EXTERNAL-IP | PORT(S) | AGE"),
        ("", "Event", "LAST SEEN | TYPE | REASON | OBJECT | MESSAGE"),
        ("events.k8s.io", "Event", "LAST SEEN | TYPE | REASON | OBJECT | MESSAGE"),
        ("", "Node", "NAME | STATUS | ROLES | AGE | VERSION"),
        (RBAC, "Role", "NAME | CREATED AT"),
        (RBAC, "ClusterRole", "NAME | CREATED AT"),
        (RBAC, "RoleBinding", "NAME | ROLE | AGE"),
        ("", "LimitRange", "NAME | CREATED AT"),
        ("apiextensions.k8s.io", "CustomResourceDefinition", "NAME | CREATED AT"),
        ("", "ResourceQuota", "NAME | AGE | REQUEST | LIMIT"),
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            "NAME | REFERENCE | TARGETS | MINPODS | MAXPODS | REPLICAS | AGE",
        ),
        (
            "policy",
            "PodDisruptionBudget",
            "NAME | MIN AVAILABLE | MAX UNAVAILABLE | ALLOWED DISRUPTIONS | AGE",
        ),
        (ADMISSION, "ValidatingWebhookConfiguration", "NAME | WEBHOOKS | AGE"),
        (ADMISSION, "ValidatingAdmissionPolicy", "NAME | VALIDATIONS | PARAMKIND | AGE"),
        ("apiregistration.k8s.io", "APIService", "NAME | SERVICE | AVAILABLE | AGE"),
        (
            "certificates.k8s.io",
            "CertificateSigningRequest",
            "NAME | AGE | SIGNERNAME | REQUESTOR | REQUESTEDDURATION | CONDITION",
        ),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            "NAME | VALUE | GLOBAL-DEFAULT | AGE | PREEMPTIONPOLICY",
        ),
        (
            "",
            "PersistentVolumeClaim",
            (
                "NAME | STATUS | VOLUME | CAPACITY | ACCESS MODES | STORAGECLASS | "
                "VOLUMEATTRIBUTESCLASS | AGE"
            ),
        ),
        ("example.com", "Widget", "NAME | AGE"),
    ],
)
def test_the_head_is_what_kubectl_prints(group: str, kind: str, shown: str) -> None:
    assert head(group, kind) == shown


def test_a_kind_nobody_described_has_name_and_age() -> None:
    assert columns_for("example.com", "Widget") == DEFAULT_COLUMNS
    assert cells("example.com", "Widget") == ["x", "5m"]


TEMPLATE = {
    "spec": {
        "containers": [{"name": "a", "image": "ia"}, {"name": "b", "image": "ib"}],
        "nodeSelector": {"disk": "ssd"},
    }
}
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["z", "y"]},
        {"key": "env", "operator": "NotIn", "values": ["dev"]},
        {"key": "x", "operator": "Exists"},
        {"key": "w", "operator": "DoesNotExist"},
    ],
}
SELECTED = "app=web,env notin (dev),tier in (y,z),!w,x"


@pytest.mark.parametrize(
    ("kind", "status", "shown"),
    [
        (
            "Deployment",
            {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            ["x", "1/3", 2, 1, "5m", "a,b", "ia,ib", SELECTED],
        ),
        (
            "ReplicaSet",
            {"replicas": 3, "readyReplicas": 2},
            ["x", 3, 3, 2, "5m", "a,b", "ia,ib", SELECTED],
        ),
        ("StatefulSet", {"readyReplicas": 2}, ["x", "2/3", "5m", "a,b", "ia,ib"]),
        (
            "DaemonSet",
            {
                "desiredNumberScheduled": 5,
                "currentNumberScheduled": 4,
                "numberReady": 3,
                "updatedNumberScheduled": 2,
                "numberAvailable": 1,
            },
            ["x", 5, 4, 3, 2, 1, "disk=ssd", "5m", "a,b", "ia,ib", SELECTED],
        ),
    ],
)
def test_workloads_show_their_replicas(kind: str, status: dict[str, Any], shown: list[Any]) -> None:
    spec = {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR}
    assert cells("apps", kind, {"spec": spec, "status": status}) == shown


def test_an_unreadable_selector_does_not_break_the_table() -> None:
    spec = {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    assert cells("apps", "Deployment", {"spec": spec})[-1] == "<invalid>"
    assert cells("apps", "ReplicaSet", {"spec": spec})[-1] == "<error>"


def job_status(*conditions: str, **status: Any) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"} for kind in conditions], **status}


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        ({"completions": 3}, job_status(succeeded=1), ["Running", "1/3", ""]),
        ({"parallelism": 2}, job_status(), ["Running", "0/1 of 2", ""]),
        ({"parallelism": 1}, job_status("Suspended"), ["Suspended", "0/1", ""]),
        (
            {"completions": 1},
            job_status(
                "Complete",
                succeeded=1,
                startTime="2025-03-01T11:00:00Z",
                completionTime="2025-03-01T11:02:05Z",
            ),
            ["Complete", "1/1", "2m5s"],
        ),
        (
            {"completions": 1},
            job_status("Failed", startTime="2025-03-01T11:59:00Z"),
            ["Failed", "0/1", "60s"],
        ),
        ({"completions": 1}, job_status("FailureTarget"), ["FailureTarget", "0/1", ""]),
    ],
)
def test_jobs_show_status_completions_and_duration(
    spec: dict[str, Any], status: dict[str, Any], shown: list[str]
) -> None:
    assert cells("batch", "Job", {"spec": spec, "status": status})[1:4] == shown


def test_a_job_being_deleted_is_terminating() -> None:
    gone = {"metadata": {**META, "deletionTimestamp": "2025-03-01T11:59:00Z"}}
    assert cells("batch", "Job", gone)[1] == "Terminating"


def test_cron_jobs_show_schedule_and_last_run() -> None:
    obj = {
        "spec": {
            "schedule": "*/5 * * * *",
            "suspend": False,
            "jobTemplate": {"spec": {"template": TEMPLATE}},
        },
        "status": {"active": [{}, {}], "lastScheduleTime": "2025-03-01T11:59:30Z"},
    }
    shown = ["x", "*/5 * * * *", "<none>", "False", 2, "30s", "5m", "a,b", "ia,ib", "<none>"]
    assert cells("batch", "CronJob", obj) == shown
    assert cells("batch", "CronJob")[2:6] == ["<none>", "<unset>", 0, "<none>"]


def service(kind: str, **spec: Any) -> dict[str, Any]:
    status = spec.pop("status", {})
    return {"spec": {"type": kind, **spec}, "status": status}


@pytest.mark.parametrize(
    ("obj", "external"),
    [
        (service("ClusterIP"), "<none>"),
        (service("NodePort", externalIPs=["1.1.1.1", "2.2.2.2"]), "1.1.1.1,2.2.2.2"),
        (service("LoadBalancer"), "<pending>"),
        (
            service(
                "LoadBalancer",
                externalIPs=["9.9.9.9"],
                status={"loadBalancer": {"ingress": [{"ip": "3.3.3.3"}, {"hostname": "lb"}]}},
            ),
            "3.3.3.3,lb,9.9.9.9",
        ),
        (service("ExternalName", externalName="db.example.com"), "db.example.com"),
        (service("Odd"), "<unknown>"),
    ],
)
def test_services_show_where_they_are_reached_from_outside(
    obj: dict[str, Any], external: str
) -> None:
    assert cells("", "Service", obj)[3] == external


def test_services_show_ports_with_the_nodes_port() -> None:
    obj = service(
        "NodePort",
        clusterIPs=["10.0.0.1"],
        ports=[{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
        selector={"b": "2", "a": "1"},
    )
    shown = ["x", "NodePort", "10.0.0.1", "<none>", "80:30080/TCP,53/UDP", "5m", "a=1,b=2"]
    assert cells("", "Service", obj) == shown
    assert cells("", "Service", service("ClusterIP"))[2:5] == ["<none>"] * 3


@pytest.mark.parametrize(
    ("subsets", "shown"),
    [
        (None, "<none>"),
        ([{"addresses": [{"ip": "10.0.0.1"}]}], "10.0.0.1"),
        (
            [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd::1"}], "ports": [{"port": 80}]}],
            "10.0.0.1:80,[fd::1]:80",
        ),
        (
            [
                {
                    "addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}],
                    "ports": [{"port": 80}, {"port": 443}],
                }
            ],
            "10.0.0.1:80,10.0.0.2:80,10.0.0.1:443 + 1 more...",
        ),
    ],
)
def test_endpoints_show_three_addresses_and_count_the_rest(
    subsets: list[Any] | None, shown: str
) -> None:
    assert cells("", "Endpoints", {"subsets": subsets})[1] == shown


def test_endpoint_slices_show_ports_and_addresses() -> None:
    obj = {
        "addressType": "IPv4",
        "ports": [{"port": 80}, {"name": "dns"}, {}, {"port": 1}],
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    }
    shown = ["x", "IPv4", "80,dns,* + 1 more...", "10.0.0.1", "5m"]
    assert cells("discovery.k8s.io", "EndpointSlice", obj) == shown
    assert cells("discovery.k8s.io", "EndpointSlice")[2:4] == ["<unset>", "<unset>"]


def test_ingresses_show_hosts_and_ports() -> None:
    obj = {
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{"host": name} for name in "abcde"],
            "tls": [{}],
        },
        "status": {"loadBalancer": {"ingress": [{"hostname": "a-very-long-host.example.com"}]}},
    }
    assert cells("networking.k8s.io", "Ingress", obj) == [
        "x",
        "nginx",
        "a,b,c + 2 more...",
        "a-very-long-host.example.com",
        "80, 443",
        "5m",
    ]
    assert cells("networking.k8s.io", "Ingress") == ["x", "<none>", "*", "", "80", "5m"]


def test_network_kinds_name_what_they_refer_to() -> None:
    parameters = {"kind": "P", "apiGroup": "g", "name": "p"}
    spec = {"spec": {"controller": "c", "parameters": parameters}}
    assert cells("networking.k8s.io", "IngressClass", spec) == ["x", "c", "P.g/p", "5m"]
    assert cells("networking.k8s.io", "IngressClass")[2] == "<none>"
    policy = {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}
    assert cells("networking.k8s.io", "NetworkPolicy", policy)[1] == "a=b"
    parent = {"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}}
    assert cells("networking.k8s.io", "IPAddress", parent)[1] == "services/n/s"
    assert cells("networking.k8s.io", "ServiceCIDR", {"spec": {"cidrs": ["a", "b"]}})[1] == "a,b"


def test_nodes_show_readiness_roles_and_what_they_run() -> None:
    obj = {
        "metadata": {
            **META,
            "labels": {
                "node-role.kubernetes.io/worker": "",
                "node-role.kubernetes.io/control-plane": "",
                "kubernetes.io/role": "edge",
            },
        },
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.32.0", "osImage": "Debian"},
        },
    }
    assert cells("", "Node", obj) == [
        "x",
        "NotReady,SchedulingDisabled",
        "control-plane,edge,worker",
        "5m",
        "v1.32.0",
        "10.0.0.1",
        "<none>",
        "Debian",
        "<unknown>",
        "<unknown>",
    ]
    assert cells("", "Node")[1:3] == ["Unknown", "<none>"]


OLD_EVENT = {
    "firstTimestamp": "2025-03-01T11:50:00Z",
    "lastTimestamp": "2025-03-01T11:59:00Z",
    "type": "Normal",
    "reason": "Pulled",
    "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}"},
    "source": {"component": "kubelet", "host": "n1"},
    "message": " done \n",
    "count": 3,
}
NEW_EVENT = {
    "deprecatedFirstTimestamp": "2025-03-01T11:50:00Z",
    "deprecatedLastTimestamp": "2025-03-01T11:59:00Z",
    "type": "Normal",
    "reason": "Pulled",
    "regarding": OLD_EVENT["involvedObject"],
    "deprecatedSource": OLD_EVENT["source"],
    "note": " done \n",
    "deprecatedCount": 3,
}


@pytest.mark.parametrize(
    ("group", "event"), [("", OLD_EVENT), ("events.k8s.io", NEW_EVENT)], ids=["core", "events"]
)
def test_events_look_the_same_through_both_apis(group: str, event: dict[str, Any]) -> None:
    assert cells(group, "Event", event) == [
        "60s",
        "Normal",
        "Pulled",
        "pod/web",
        "spec.containers{a}",
        "kubelet, n1",
        "done",
        "10m",
        3,
        "x",
    ]


def test_events_of_a_series_show_when_they_were_last_observed() -> None:
    event = {
        "eventTime": "2025-03-01T11:58:00.000000Z",
        "series": {"count": 9, "lastObservedTime": "2025-03-01T11:59:50.000000Z"},
        "reportingComponent": "scheduler",
        "involvedObject": {"kind": "Node"},
    }
    shown = cells("", "Event", event)
    assert (shown[0], shown[3], shown[5], shown[7], shown[8]) == (
        "10s",
        "node",
        "scheduler",
        "2m",
        9,
    )


def test_a_singleton_event_counts_one() -> None:
    shown = cells("", "Event", {"eventTime": "2025-03-01T11:58:00.000000Z"})
    assert (shown[0], shown[8]) == ("2m", 1)
    assert cells("", "Event")[0] == "<unknown>"


def test_small_kinds_show_counts_and_states() -> None:
    data = {"data": {"a": "1"}, "binaryData": {"b": "2"}}
    assert cells("", "ConfigMap", data) == ["x", 2, "5m"]
    assert cells("", "Secret", {"type": "Opaque", **data}) == ["x", "Opaque", 1, "5m"]
    assert cells("", "ServiceAccount") == ["x", 0, "5m"]
    assert cells("", "Namespace", {"status": {"phase": "Active"}}) == ["x", "Active", "5m"]
    lease = {"spec": {"holderIdentity": "me"}}
    assert cells("coordination.k8s.io", "Lease", lease) == ["x", "me", "5m"]
    assert cells("coordination.k8s.io", "Lease", {"spec": {"holderIdentity": None}})[1] == ""
    assert cells(RBAC, "Role") == ["x", "2025-03-01T11:55:00Z"]
    assert cells("node.k8s.io", "RuntimeClass", {"handler": "runc"}) == ["x", "runc", "5m"]
    assert cells(ADMISSION, "MutatingWebhookConfiguration", {"webhooks": [{}]})[1] == 1
    priority = {"value": 10, "globalDefault": True, "preemptionPolicy": "Never"}
    assert cells("scheduling.k8s.io", "PriorityClass", priority) == ["x", 10, True, "5m", "Never"]
    template = {"template": {**TEMPLATE, "metadata": {"labels": {"a": "b"}}}}
    assert cells("", "PodTemplate", template) == ["x", "a,b", "ia,ib", "a=b"]
    controller = {"selector": {"a": "b"}, "replicas": 1}
    assert cells("", "ReplicationController", {"spec": controller})[-1] == "a=b"
    scale = {"spec": {"replicas": 2}, "status": {"replicas": 1}}
    assert cells("autoscaling", "Scale", scale) == ["x", 2, 1, "5m"]


def test_quotas_separate_requests_from_limits() -> None:
    hard = {"pods": "10", "limits.cpu": "4", "requests.cpu": "2"}
    obj = {"status": {"hard": hard, "used": {"pods": "3"}}}
    assert cells("", "ResourceQuota", obj) == [
        "x",
        "5m",
        "pods: 3/10, requests.cpu: 0/2",
        "limits.cpu: 0/4",
    ]


def test_role_bindings_show_role_and_subjects() -> None:
    obj = {
        "roleRef": {"kind": "ClusterRole", "name": "edit"},
        "subjects": [
            {"kind": "User", "name": "ann"},
            {"kind": "User", "name": "bob"},
            {"kind": "Group", "name": "ops"},
            {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
        ],
    }
    shown = ["x", "ClusterRole/edit", "5m", "ann, bob", "ops", "n/s"]
    assert cells(RBAC, "RoleBinding", obj) == shown
    assert cells(RBAC, "ClusterRoleBinding", obj) == shown


def test_volumes_and_claims_show_capacity_and_binding() -> None:
    volume = {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "n", "name": "c"},
            "storageClassName": "fast",
        },
        "status": {"phase": "Bound"},
    }
    shown = [
        "x",
        "1Gi",
        "RWO,RWX",
        "Retain",
        "Bound",
        "n/c",
        "fast",
        "<unset>",
        "",
        "5m",
        "<unset>",
    ]
    assert cells("", "PersistentVolume", volume) == shown
    claim = {
        "spec": {"volumeName": "v", "volumeMode": "Block", "storageClassName": "fast"},
        "status": {
            "phase": "Bound",
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOncePod"],
        },
    }
    shown = ["x", "Bound", "v", "1Gi", "RWOP", "fast", "<unset>", "5m", "Block"]
    assert cells("", "PersistentVolumeClaim", claim) == shown
    assert cells("", "PersistentVolumeClaim", {"status": {"phase": "Pending"}})[2:5] == [""] * 3
    gone = {"metadata": {**META, "deletionTimestamp": "x"}, "status": {"phase": "Bound"}}
    assert cells("", "PersistentVolumeClaim", gone)[1] == "Terminating"


def test_storage_kinds() -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    default = {"metadata": {**META, "annotations": annotations}, "provisioner": "p"}
    shown = ["x (default)", "p", "Delete", "Immediate", False, "5m"]
    assert cells("storage.k8s.io", "StorageClass", default) == shown
    driver = {"spec": {"attachRequired": False, "tokenRequests": [{"audience": "a"}]}}
    shown = ["x", False, False, False, "a", False, "<none>", "5m"]
    assert cells("storage.k8s.io", "CSIDriver", driver) == shown
    assert cells("storage.k8s.io", "CSIDriver")[4] == "<unset>"
    assert cells("storage.k8s.io", "CSINode", {"spec": {"drivers": [{}]}}) == ["x", 1, "5m"]
    attachment = {
        "spec": {"attacher": "a", "source": {"persistentVolumeName": "v"}, "nodeName": "n"},
        "status": {"attached": True},
    }
    shown = ["x", "a", "v", "n", True, "5m"]
    assert cells("storage.k8s.io", "VolumeAttachment", attachment) == shown


def test_disruption_budgets_say_not_applicable() -> None:
    obj = {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}}
    assert cells("policy", "PodDisruptionBudget", obj) == ["x", "50%", "N/A", 1, "5m"]
    assert cells("policy", "PodDisruptionBudget", {"spec": {"maxUnavailable": 1}})[2] == "1"


def test_admission_policies_name_their_parameters() -> None:
    policy = {"spec": {"validations": [{}, {}], "paramKind": {"apiVersion": "g/v1", "kind": "P"}}}
    assert cells(ADMISSION, "ValidatingAdmissionPolicy", policy) == ["x", 2, "g/v1/P", "5m"]
    assert cells(ADMISSION, "ValidatingAdmissionPolicy")[2] == "<unset>"
    binding = {"spec": {"policyName": "p", "paramRef": {"name": "a"}}}
    assert cells(ADMISSION, "ValidatingAdmissionPolicyBinding", binding)[1:3] == ["p", "*/a"]
    selected = {"spec": {"paramRef": {"selector": {"matchLabels": {"a": "b"}}}}}
    assert cells(ADMISSION, "ValidatingAdmissionPolicyBinding", selected)[2] == (
        "&LabelSelector{MatchLabels:map[string]string{a: b,},"
        "MatchExpressions:[]LabelSelectorRequirement{},}"
    )


@pytest.mark.parametrize(
    ("kinds", "certificate", "shown"),
    [
        ([], None, "Pending"),
        (["Approved"], None, "Approved"),
        (["Approved"], "x", "Approved,Issued"),
        (["Approved", "Failed"], None, "Approved,Failed"),
        (["Approved", "Denied"], None, "Denied"),
    ],
)
def test_signing_requests_show_how_far_they_are(
    kinds: list[str], certificate: str | None, shown: str
) -> None:
    obj = {
        "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
        "status": {"conditions": [{"type": kind} for kind in kinds], "certificate": certificate},
    }
    expected = ["x", "5m", "s", "u", "60m", shown]
    assert cells("certificates.k8s.io", "CertificateSigningRequest", obj) == expected


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        (None, "Unknown"),
        ({"status": "True", "reason": "Passed"}, "True"),
        ({"status": "False", "reason": "Missing"}, "False (Missing)"),
        ({"status": "False"}, "False"),
    ],
)
def test_api_services_show_why_they_are_not_available(
    condition: dict[str, str] | None, shown: str
) -> None:
    found = [{"type": "Available", **condition}] if condition else []
    obj = {"spec": {"service": {"namespace": "n", "name": "s"}}, "status": {"conditions": found}}
    shown_cells = ["x", "n/s", shown, "5m"]
    assert cells("apiregistration.k8s.io", "APIService", obj) == shown_cells
    assert cells("apiregistration.k8s.io", "APIService")[1] == "Local"


def test_flow_control_kinds() -> None:
    group = "flowcontrol.apiserver.k8s.io"
    schema = {
        "spec": {
            "priorityLevelConfiguration": {"name": "p"},
            "matchingPrecedence": 9,
            "distinguisherMethod": {"type": "ByUser"},
        },
        "status": {"conditions": [{"type": "Dangling", "status": "False"}]},
    }
    assert cells(group, "FlowSchema", schema) == ["x", "p", 9, "ByUser", "5m", "False"]
    assert cells(group, "FlowSchema")[5] == "?"
    queuing = {"queues": 1, "handSize": 2, "queueLengthLimit": 3}
    limited = {"nominalConcurrencyShares": 5, "limitResponse": {"queuing": queuing}}
    level = {"spec": {"type": "Limited", "limited": limited}}
    assert cells(group, "PriorityLevelConfiguration", level)[1:6] == ["Limited", 5, 1, 2, 3]
    bare = {"spec": {"type": "Limited", "limited": {}}}
    shown = ["Limited", 0, "<none>", "<none>", "<none>"]
    assert cells(group, "PriorityLevelConfiguration", bare)[1:6] == shown


def test_controller_revisions_name_their_controller() -> None:
    owner = {"controller": True, "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}
    obj = {"metadata": {**META, "ownerReferences": [owner]}, "revision": 4}
    assert cells("apps", "ControllerRevision", obj) == ["x", "daemonset.apps/d", 4, "5m"]
    assert cells("apps", "ControllerRevision")[1] == "<none>"


def test_components_and_claims_show_their_state() -> None:
    condition = {"type": "Healthy", "status": "True", "message": "ok"}
    shown = ["x", "Healthy", "ok", ""]
    assert cells("", "ComponentStatus", {"conditions": [condition]}) == shown
    assert cells("", "ComponentStatus")[1] == "Unknown"
    claim: dict[str, Any] = {"status": {"allocation": {}, "reservedFor": [{}]}}
    assert cells("resource.k8s.io", "ResourceClaim", claim)[1] == "allocated,reserved"
    assert cells("resource.k8s.io", "ResourceClaim")[1] == "pending"
    gone = {"metadata": {**META, "deletionTimestamp": "x"}}
    assert cells("resource.k8s.io", "ResourceClaim", gone)[1] == "deleted"


def autoscaler(metrics: list[Any], current: list[Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "w"}, "metrics": metrics},
        "status": {"currentMetrics": current or []},
    }


def resource_metric(kind: str, **amounts: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", kind: amounts}}


def external_metric(kind: str, **amounts: Any) -> dict[str, Any]:
    return {"type": "External", "external": {kind: amounts}}


@pytest.mark.parametrize(
    ("obj", "shown"),
    [
        (autoscaler([]), "<none>"),
        (autoscaler([resource_metric("target", averageUtilization=80)]), "cpu: <unknown>/80%"),
        (
            autoscaler(
                [resource_metric("target", averageUtilization=80)],
                [resource_metric("current", averageUtilization=20)],
            ),
            "cpu: 20%/80%",
        ),
        (autoscaler([resource_metric("target", averageValue="1")]), "cpu: <unknown>/1"),
        (autoscaler([resource_metric("target")]), "cpu: <unknown>/<auto>"),
        (
            autoscaler(
                [external_metric("target", averageValue="100")],
                [external_metric("current", averageValue="50")],
            ),
            "50/100 (avg)",
        ),
        (autoscaler([external_metric("target", value="9")]), "<unknown>/9"),
        (
            autoscaler([{"type": "Pods", "pods": {"target": {"averageValue": "4"}}}]),
            "<unknown>/4",
        ),
        (autoscaler([{"type": "Odd"}]), "<unknown type>"),
        (
            autoscaler([external_metric("target", value=str(n)) for n in range(4)]),
            "<unknown>/0, <unknown>/1 + 2 more...",
        ),
    ],
)
def test_autoscalers_show_current_and_wanted_metrics(obj: dict[str, Any], shown: str) -> None:
    assert cells("autoscaling", "HorizontalPodAutoscaler", obj)[2] == shown


def test_old_autoscalers_keep_their_metrics_in_annotations() -> None:
    other = [{"type": "External", "external": {"metricName": "q", "targetValue": "7"}}]
    annotations = {"autoscaling.alpha.kubernetes.io/metrics": json.dumps(other)}
    obj = {
        "apiVersion": "autoscaling/v1",
        "metadata": {**META, "annotations": annotations},
        "spec": {"targetCPUUtilizationPercentage": 50, "minReplicas": 2, "maxReplicas": 5},
        "status": {"currentReplicas": 3},
    }
    shown = cells("autoscaling", "HorizontalPodAutoscaler", obj)
    assert shown[2:6] == ["<unknown>/7, cpu: <unknown>/50%", "2", 5, 3]


def test_old_autoscalers_keep_current_values_in_annotations_too() -> None:
    current = [{"type": "Resource", "resource": {"name": "cpu", "currentAverageUtilization": 7}}]
    annotations = {"autoscaling.alpha.kubernetes.io/current-metrics": json.dumps(current)}
    obj = {
        "apiVersion": "autoscaling/v1",
        "metadata": {**META, "annotations": annotations},
        "spec": {"targetCPUUtilizationPercentage": 50},
    }
    assert cells("autoscaling", "HorizontalPodAutoscaler", obj)[2] == "cpu: 7%/50%"


def test_an_old_autoscaler_without_metrics_means_eighty_percent() -> None:
    obj = {
        "apiVersion": "autoscaling/v1",
        "metadata": {**META, "annotations": {"autoscaling.alpha.kubernetes.io/metrics": "{"}},
        "status": {"currentCPUUtilizationPercentage": 12},
    }
    shown = cells("autoscaling", "HorizontalPodAutoscaler", obj)
    assert shown[2:4] == ["cpu: 12%/80%", "<unset>"]


@pytest.mark.parametrize("odd", [None, {}, {"spec": None, "status": None, "metadata": None}])
def test_no_column_fails_on_an_empty_object(odd: dict[str, Any] | None) -> None:
    from skerry.logic.machinery.printing import _COLUMNS

    for columns in _COLUMNS.values():
        assert all(column.cell(odd or {}, NOW) is not None for column in columns)
