"""The FlowSchemas and PriorityLevelConfigurations that every Kubernetes server is born with.

Names, precedences and numbers are those of Kubernetes 1.32, by which administrators and their
dashboards know them. All are marked for ``apf.kubernetes.io/autoupdate-spec``: who wants another
spec takes the mark off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.flow_schemas import API_VERSION, CATCH_ALL, EXEMPT

AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
_ALL = ("*",)
_BY_USER, _BY_NAMESPACE = "ByUser", "ByNamespace"
_LEASES = ("coordination.k8s.io", ("leases",))
_ELECTING = ("get", "create", "update")
_QUEUE_LENGTH = 50

# Name, shares, how many per cent of them others may borrow, queues and of those the hand.
_LEVELS = (
    ("global-default", 20, 50, 128, 6),
    ("leader-election", 10, 0, 16, 4),
    ("node-high", 40, 25, 64, 6),
    ("system", 30, 33, 64, 6),
    ("workload-high", 40, 50, 128, 6),
    ("workload-low", 100, 90, 128, 6),
)


def flow_control_objects() -> list[Object]:
    """Return them all, levels first."""
    return [*_levels(), *_schemas()]


def _levels() -> list[Object]:
    exempt = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
    return [
        _object("PriorityLevelConfiguration", EXEMPT, {"type": "Exempt", "exempt": exempt}),
        _limited(CATCH_ALL, 5, 0, {"type": "Reject"}),
        *(
            _limited(
                name,
                shares,
                lendable,
                {
                    "type": "Queue",
                    "queuing": {
                        "queues": queues,
                        "handSize": hand,
                        "queueLengthLimit": _QUEUE_LENGTH,
                    },
                },
            )
            for name, shares, lendable, queues, hand in _LEVELS
        ),
    ]


def _schemas() -> list[Object]:
    controller_manager = _users("system:kube-controller-manager")
    scheduler = _users("system:kube-scheduler")
    nodes = _groups("system:nodes")
    system_accounts = _accounts("*")
    everybody = _groups("system:unauthenticated", "system:authenticated")
    probes = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}
    elected = _resources(_ELECTING, *_LEASES)
    older = _resources(_ELECTING, "", ("endpoints", "configmaps"))
    endpoints = _resources(_ELECTING, "", ("endpoints",))
    own_node = _resources(_ALL, "", ("nodes", "nodes/status"), cluster_scope=True)
    own_lease = _resources(_ALL, *_LEASES)
    endpoint_accounts = _accounts("endpoint-controller", "endpointslicemirroring-controller")
    return [
        _schema(EXEMPT, EXEMPT, 1, "", _everything(_groups("system:masters"))),
        _schema("probes", EXEMPT, 2, "", {"subjects": everybody, "nonResourceRules": [probes]}),
        _schema(
            "system-leader-election", "leader-election", 100, _BY_USER,
            {"subjects": [*controller_manager, *scheduler, *system_accounts],
             "resourceRules": [elected]},
        ),
        _schema(
            "endpoint-controller", "workload-high", 150, _BY_USER,
            {"subjects": [*controller_manager, *endpoint_accounts], "resourceRules": [endpoints]},
        ),
        _schema(
            "workload-leader-election", "leader-election", 200, _BY_USER,
            {"subjects": system_accounts, "resourceRules": [older, elected]},
        ),
        _schema(
            "system-node-high", "node-high", 400, _BY_USER,
            {"subjects": nodes, "resourceRules": [own_node, own_lease]},
        ),
        _schema("system-nodes", "system", 500, _BY_USER, _everything(nodes)),
        _schema(
            "kube-controller-manager", "workload-high", 800, _BY_NAMESPACE,
            _everything(controller_manager),
        ),
        _schema(
            "kube-scheduler", "workload-high", 800, _BY_NAMESPACE, _everything(scheduler)
        ),
        _schema(
            "kube-system-service-accounts", "workload-high", 900, _BY_NAMESPACE,
            _everything(system_accounts),
        ),
        _schema(
            "service-accounts", "workload-low", 9000, _BY_USER,
            _everything(_groups("system:serviceaccounts")),
        ),
        _schema("global-default", "global-default", 9900, _BY_USER, _everything(everybody)),
        _schema(CATCH_ALL, CATCH_ALL, 10_000, _BY_USER, _everything(everybody)),
    ]  # fmt: skip


def _object(kind: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}},
        "spec": spec,
    }


def _limited(name: str, shares: int, lendable: int, response: Object) -> Object:
    limited = {
        "nominalConcurrencyShares": shares,
        "lendablePercent": lendable,
        "limitResponse": response,
    }
    spec = {"type": "Limited", "limited": limited}
    return _object("PriorityLevelConfiguration", name, spec)


def _schema(name: str, level: str, precedence: int, method: str, rule: Object) -> Object:
    spec: Object = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
    }
    if method:
        spec["distinguisherMethod"] = {"type": method}
    return _object("FlowSchema", name, spec)


def _everything(subjects: Sequence[Object]) -> Object:
    return {
        "subjects": list(subjects),
        "resourceRules": [_resources(_ALL, "*", _ALL, cluster_scope=True)],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }


def _resources(
    verbs: Sequence[str], group: str, resources: Sequence[str], *, cluster_scope: bool = False
) -> Object:
    rule: dict[str, Any] = {
        "verbs": list(verbs),
        "apiGroups": [group],
        "resources": list(resources),
        "namespaces": ["*"],
    }
    if cluster_scope:
        rule["clusterScope"] = True
    return rule


def _groups(*names: str) -> list[Object]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _users(*names: str) -> list[Object]:
    return [{"kind": "User", "user": {"name": name}} for name in names]


def _accounts(*names: str) -> list[Object]:
    return [
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": name}}
        for name in names
    ]
