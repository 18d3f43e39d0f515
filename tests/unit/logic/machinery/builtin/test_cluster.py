"""Nodes, leases, priorities, certificates, roles and bindings."""

from __future__ import annotations

import pytest

from skerry.api.objects import Object
from tests.kit.machinery.objects import (
    created,
    errors_of,
    merged,
    named,
    resource,
    update_errors,
)

RBAC = "rbac.authorization.k8s.io"
NODES = resource("nodes")
LEASES = resource("leases", "coordination.k8s.io")
PRIORITIES = resource("priorityclasses", "scheduling.k8s.io")
REQUESTS = resource("certificatesigningrequests", "certificates.k8s.io")
ROLES, CLUSTER_ROLES = resource("roles", RBAC), resource("clusterroles", RBAC)
BINDINGS, CLUSTER_BINDINGS = resource("rolebindings", RBAC), resource("clusterrolebindings", RBAC)


def test_a_node_allocates_its_capacity() -> None:
    new = created(NODES, named(NODES, status={"capacity": {"cpu": "2000m"}}))
    assert new["status"]["allocatable"] == {"cpu": "2"}
    assert NODES.selectable_fields["spec.unschedulable"](new) == "false"


def test_bad_nodes_are_refused() -> None:
    taint = {"key": "a", "effect": "NoSchedule"}
    spec = {"taints": [taint, taint, {"key": "b"}], "podCIDRs": ["x"]}
    assert errors_of(NODES, named(NODES, spec=spec)) == [
        (
            'metadata.taints[1]: Duplicate value: {"effect":"NoSchedule","key":"a"}: taints '
            "must be "
            "unique by key and effect pair"
        ),
        "metadata.taints[2].effect: Required value",
        (
            'spec.podCIDRs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. '
            "10.9.8.0/24 or "
            "2001:db8::/64)"
        ),
    ]
    old = named(NODES, spec={"podCIDR": "10.0.0.0/24", "providerID": "p"})
    assert update_errors(NODES, old, {"spec": {"providerID": "q"}}) == [
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid'
    ]


def test_leases_last() -> None:
    spec = {"leaseDurationSeconds": 0, "leaseTransitions": -1, "preferredHolder": "h"}
    assert errors_of(LEASES, named(LEASES, spec=spec)) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
    ]


def test_priorities_are_fixed_and_bounded() -> None:
    good = named(PRIORITIES, value=10)
    assert created(PRIORITIES, good)["preemptionPolicy"] == "PreemptLowerPriority"
    assert errors_of(PRIORITIES, named(PRIORITIES, value=2000000000)) == [
        "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"
    ]
    assert update_errors(PRIORITIES, good, {"value": 11}) == [
        "value: Forbidden: may not be changed in an update."
    ]
    system = merged(good, {"metadata": {"name": "system-node-critical"}, "value": 2000001000})
    assert errors_of(PRIORITIES, system) == []
    odd = merged(good, {"metadata": {"name": "system-odd"}})
    assert "are reserved for system use only" in errors_of(PRIORITIES, odd)[0]


def test_certificate_requests_do_not_change() -> None:
    spec = {"request": "eA==", "usages": ["client auth"], "signerName": "example.com/x"}
    old = named(REQUESTS, spec=spec)
    assert created(REQUESTS, old)["status"] == {}
    assert update_errors(REQUESTS, old, {"spec": {"signerName": "example.com/y"}})
    assert errors_of(REQUESTS, named(REQUESTS, spec={})) == [
        'spec.request: Invalid value: "": PEM block type must be CERTIFICATE REQUEST',
        "spec.usages: Required value",
        "spec.signerName: Required value",
    ]


def test_runtime_classes_name_a_handler_for_good() -> None:
    kind = resource("runtimeclasses", "node.k8s.io")
    old = named(kind, handler="kata", overhead={"podFixed": {"cpu": "0.25"}})
    assert created(kind, old)["overhead"]["podFixed"] == {"cpu": "250m"}
    assert errors_of(kind, named(kind))[0].startswith('handler: Invalid value: ""')
    assert update_errors(kind, old, {"handler": "other"}) == [
        'handler: Invalid value: "other": field is immutable'
    ]


RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


@pytest.mark.parametrize(
    ("rule", "errors"),
    [
        (RULE, []),
        (
            {},
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                (
                    "rules[0].apiGroups: Required value: resource rules must supply at "
                    "least one api "
                    ""
                    "group"
                ),
                (
                    "rules[0].resources: Required value: resource rules must supply at least one "
                    "resource"
                ),
            ],
        ),
        (
            {"verbs": ["get"], "nonResourceURLs": ["/x"]},
            [
                (
                    'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules '
                    "cannot apply "
                    "to "
                    "non-resource URLs"
                )
            ],
        ),
    ],
)
def test_role_rules(rule: Object, errors: list[str]) -> None:
    assert errors_of(ROLES, named(ROLES, rules=[rule])) == errors


def test_cluster_roles_may_name_urls_and_aggregate() -> None:
    url = {"verbs": ["get"], "nonResourceURLs": ["/x"]}
    assert errors_of(CLUSTER_ROLES, named(CLUSTER_ROLES, rules=[url])) == []
    empty = named(CLUSTER_ROLES, aggregationRule={})
    assert errors_of(CLUSTER_ROLES, empty)[0].startswith(
        "aggregationRule.clusterRoleSelectors: Required value"
    )
    assert (
        errors_of(CLUSTER_ROLES, merged(named(CLUSTER_ROLES), {"metadata": {"name": "system:x"}}))
        == []
    )


def test_bindings_are_filled_in_and_keep_their_role() -> None:
    old = named(
        BINDINGS,
        roleRef={"kind": "Role", "name": "r"},
        subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
    )
    new = created(BINDINGS, old)
    assert new["roleRef"]["apiGroup"] == RBAC
    assert new["subjects"][0]["apiGroup"] == RBAC
    assert "apiGroup" not in new["subjects"][1]
    (error,) = update_errors(BINDINGS, old, {"roleRef": {"name": "other"}})
    assert error.startswith("roleRef: Invalid value")
    assert error.endswith("cannot change roleRef")


def test_bad_bindings_are_refused() -> None:
    bad = named(
        CLUSTER_BINDINGS,
        roleRef={"kind": "Role", "name": ""},
        subjects=[{"kind": "ServiceAccount", "name": "s"}, {"kind": "Odd", "name": "o"}],
    )
    assert errors_of(CLUSTER_BINDINGS, bad) == [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        "roleRef.name: Required value",
        "subjects[0].namespace: Required value",
        (
            'subjects[1].kind: Unsupported value: "Odd": supported values: "ServiceAccount", '
            '"User", '
            '"Group"'
        ),
    ]


def test_a_node_of_which_nothing_is_known_says_so_in_empty_fields() -> None:
    kind = resource("nodes")
    status = created(kind, named(kind))["status"]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert set(status["nodeInfo"].values()) == {""}


_MUST_BE = 'must be `spec.version+"."+spec.group`'
_CARELESS = "spec.insecureSkipTLSVerify: Invalid value: true"
_PORTS = "must be between 1 and 65535, inclusive"
API_SERVICES = resource("apiservices", "apiregistration.k8s.io")


def test_an_api_service_is_called_by_what_it_serves_and_leads_somewhere() -> None:
    spec = {
        "group": "example.com",
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
        "service": {"namespace": "ns", "name": "s"},
    }
    good = merged(named(API_SERVICES, spec=spec), {"metadata": {"name": "v1.example.com"}})
    assert errors_of(API_SERVICES, good) == []
    assert created(API_SERVICES, good)["spec"]["service"]["port"] == 443
    assert errors_of(API_SERVICES, merged(good, {"metadata": {"name": "other"}})) == [
        f'metadata.name: Invalid value: "other": {_MUST_BE}: "v1.example.com"'
    ]
    bare = {"metadata": {"name": "v1."}, "spec": {"version": "v1"}}
    local = merged(named(API_SERVICES), bare)
    local["spec"] = {"version": "v1", "caBundle": "YWI=", "insecureSkipTLSVerify": True}
    assert errors_of(API_SERVICES, local) == [
        "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
        "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
        'spec.caBundle: Invalid value: "2 bytes": local APIServices may not have a caBundle',
        f"{_CARELESS}: local APIServices may not have insecureSkipTLSVerify",
    ]
    lost = {"service": {"namespace": "", "name": "", "port": 70000}, "caBundle": "YWI="}
    assert errors_of(
        API_SERVICES, merged(good, {"spec": {**lost, "insecureSkipTLSVerify": True}})
    ) == [
        "spec.service.namespace: Required value",
        "spec.service.name: Required value",
        f"spec.service.port: Invalid value: 70000: port is not valid: {_PORTS}",
        f"{_CARELESS}: may not be true if caBundle is present",
    ]
