"""The roles and bindings a cluster is born with: Kubernetes' own, by the same names.

Written compactly: a grant is verbs on resources of groups. The ``autoupdate`` annotation and the
``bootstrapping`` label are Kubernetes' too; tools filter by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.rbac.policy import GROUP
from skerry.logic.machinery.rbac.rules import Rule

_API_VERSION = f"{GROUP}/v1"
_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_ALL = "create delete deletecollection get list patch update watch"

_APPS = "deployments replicasets statefulsets"
_SCALES = "deployments/scale replicasets/scale statefulsets/scale"


def _on(verbs: str, resources: str, groups: str = "", names: str = "") -> Rule:
    """Return a grant; words are separated by spaces, ``core`` is the core group."""
    listed = tuple("" if group == "core" else group for group in (groups or "core").split())
    return Rule(tuple(verbs.split()), listed, tuple(resources.split()), tuple(names.split()))


def _paths(*paths: str) -> Rule:
    return Rule(("get",), non_resource_urls=paths)


_EVENTS = _on("create patch update", "events", "core events.k8s.io")
_REVIEWS = (
    _on("create", "tokenreviews", "authentication.k8s.io"),
    _on("create", "subjectaccessreviews", "authorization.k8s.io"),
)

_VIEW = (
    _on(
        _READ,
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
        "replicationcontrollers replicationcontrollers/scale serviceaccounts services "
        "services/status",
    ),
    _on(
        _READ,
        "bindings events limitranges namespaces/status pods/log pods/status "
        "replicationcontrollers/status resourcequotas resourcequotas/status",
    ),
    _on(_READ, "namespaces"),
    _on(_READ, "endpointslices", "discovery.k8s.io"),
    _on(
        _READ,
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
        "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
        "statefulsets/scale statefulsets/status",
        "apps",
    ),
    _on(_READ, "horizontalpodautoscalers horizontalpodautoscalers/status", "autoscaling"),
    _on(_READ, "cronjobs cronjobs/status jobs jobs/status", "batch"),
    _on(_READ, "poddisruptionbudgets poddisruptionbudgets/status", "policy"),
    _on(_READ, "ingresses ingresses/status networkpolicies", "networking.k8s.io"),
)

_EDIT = (
    _on(_READ, "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    _on("impersonate", "serviceaccounts"),
    _on(_WRITE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
    _on("create", "pods/eviction"),
    _on(
        _WRITE,
        "configmaps events persistentvolumeclaims replicationcontrollers "
        "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    ),
    _on("create", "serviceaccounts/token"),
    _on(_WRITE, f"daemonsets {_APPS} deployments/rollback {_SCALES}", "apps"),
    _on(_WRITE, "horizontalpodautoscalers", "autoscaling"),
    _on(_WRITE, "cronjobs jobs", "batch"),
    _on(_WRITE, "poddisruptionbudgets", "policy"),
    _on(_WRITE, "ingresses networkpolicies", "networking.k8s.io"),
    _on(_ALL, "leases", "coordination.k8s.io"),
)

_ADMIN = (
    _on("create", "localsubjectaccessreviews", "authorization.k8s.io"),
    _on(_ALL, "rolebindings roles", GROUP),
)

# What every kubelet may do, by its role or by the node authorizer.
NODE_RULES = (
    _on("create", "tokenreviews", "authentication.k8s.io"),
    _on("create", "localsubjectaccessreviews subjectaccessreviews", "authorization.k8s.io"),
    _on(_READ, "services"),
    _on("create get list watch", "nodes"),
    _on("patch update", "nodes/status"),
    _on("patch update", "nodes"),
    _on("create patch update", "events"),
    _on(_READ, "pods"),
    _on("create delete", "pods"),
    _on("patch update", "pods/status"),
    _on("create", "pods/eviction"),
    _on(_READ, "configmaps secrets"),
    _on("get", "persistentvolumeclaims persistentvolumes"),
    _on("get", "endpoints"),
    _on("create get list watch", "certificatesigningrequests", "certificates.k8s.io"),
    _on("create delete get patch update", "leases", "coordination.k8s.io"),
    _on("get", "volumeattachments", "storage.k8s.io"),
    _on("create", "serviceaccounts/token"),
    _on("get patch update", "persistentvolumeclaims/status"),
    _on(_READ, "csidrivers", "storage.k8s.io"),
    _on("create delete get patch update", "csinodes", "storage.k8s.io"),
    _on(_READ, "runtimeclasses", "node.k8s.io"),
)

_SCHEDULER = (
    _EVENTS,
    _on("create", "leases", "coordination.k8s.io"),
    _on("get update", "leases", "coordination.k8s.io", names="kube-scheduler"),
    _on(_READ, "nodes"),
    _on("delete get list watch", "pods"),
    _on("create", "bindings pods/binding"),
    _on("patch update", "pods/status"),
    _on(_READ, "replicationcontrollers services"),
    _on(_READ, "replicasets", "apps extensions"),
    _on(_READ, "statefulsets", "apps"),
    _on(_READ, "poddisruptionbudgets", "policy"),
    _on(_READ, "persistentvolumeclaims persistentvolumes"),
    *_REVIEWS,
    _on(_READ, "csinodes", "storage.k8s.io"),
    _on(_READ, "namespaces"),
    _on(_READ, "csidrivers", "storage.k8s.io"),
    _on(_READ, "csistoragecapacities", "storage.k8s.io"),
)

_CONTROLLER_MANAGER = (
    _EVENTS,
    _on("create", "leases", "coordination.k8s.io"),
    _on("get update", "leases", "coordination.k8s.io", names="kube-controller-manager"),
    _on("create", "secrets serviceaccounts"),
    _on("delete", "secrets"),
    _on("get", "configmaps namespaces secrets serviceaccounts"),
    _on("update", "secrets serviceaccounts"),
    *_REVIEWS,
    _on("list watch", "*", "*"),
    _on("create", "serviceaccounts/token"),
)

_PROBES = ("/healthz", "/livez", "/readyz")

_CLUSTER_ROLES: Mapping[str, Sequence[Rule]] = {
    "cluster-admin": (Rule(("*",), ("*",), ("*",)), Rule(("*",), non_resource_urls=("*",))),
    "system:discovery": (
        _paths(
            "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi",
            "/openapi/*", "/readyz", "/version", "/version/",
        ),
    ),
    "system:basic-user": (
        _on("create", "selfsubjectaccessreviews selfsubjectrulesreviews", "authorization.k8s.io"),
        _on("create", "selfsubjectreviews", "authentication.k8s.io"),
    ),
    "system:public-info-viewer": (_paths(*_PROBES, "/version", "/version/"),),
    "system:monitoring": (
        _paths(
            *_PROBES, "/healthz/*", "/livez/*", "/readyz/*", "/metrics", "/metrics/slis",
        ),
    ),
    "system:service-account-issuer-discovery": (
        _paths("/.well-known/openid-configuration", "/openid/v1/jwks"),
    ),
    "system:auth-delegator": _REVIEWS,
    "system:node": NODE_RULES,
    "system:node-bootstrapper": (
        _on("create get list watch", "certificatesigningrequests", "certificates.k8s.io"),
    ),
    "system:node-problem-detector": (
        _on("get", "nodes"), _on("patch", "nodes/status"), _EVENTS,
    ),
    "system:node-proxier": (
        _on("list watch", "endpoints services"),
        _on(_READ, "nodes"),
        _EVENTS,
        _on("list watch", "endpointslices", "discovery.k8s.io"),
    ),
    "system:kubelet-api-admin": (
        _on(_READ, "nodes"),
        _on("proxy", "nodes"),
        _on("*", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
    ),
    "system:kube-scheduler": _SCHEDULER,
    "system:volume-scheduler": (
        _on("get list patch update watch", "persistentvolumes"),
        _on(_READ, "storageclasses", "storage.k8s.io"),
        _on("get list patch update watch", "persistentvolumeclaims"),
    ),
    "system:kube-controller-manager": _CONTROLLER_MANAGER,
    "system:kube-dns": (
        _on("list watch", "endpoints services"),
        _on("list watch", "endpointslices", "discovery.k8s.io"),
    ),
    "system:kube-aggregator": (_on(_READ, "endpoints services"),),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        _on("create", "certificatesigningrequests/nodeclient", "certificates.k8s.io"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        _on("create", "certificatesigningrequests/selfnodeclient", "certificates.k8s.io"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-approver": (
        _on("approve", "signers", "certificates.k8s.io", "kubernetes.io/kube-apiserver-client"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": (
        _on(
            "approve", "signers", "certificates.k8s.io",
            "kubernetes.io/kube-apiserver-client-kubelet",
        ),
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": (
        _on("approve", "signers", "certificates.k8s.io", "kubernetes.io/kubelet-serving"),
    ),
}  # fmt: skip

# The controllers that run beside the server; each may do what it needs and no more.
_CONTROLLERS: Mapping[str, Sequence[Rule]] = {
    "clusterrole-aggregation-controller": (
        _on("escalate get list patch update watch", "clusterroles", GROUP),
    ),
    "cronjob-controller": (
        _on("get list update watch", "cronjobs", "batch"),
        _on("create delete get list patch update watch", "jobs", "batch"),
        _on("update", "cronjobs/finalizers cronjobs/status", "batch"),
        _on("delete list", "pods"),
        _EVENTS,
    ),
    "daemon-set-controller": (
        _on(_READ, "daemonsets", "apps"),
        _on("update", "daemonsets/finalizers daemonsets/status", "apps"),
        _on("list watch", "nodes"),
        _on("create delete list patch watch", "pods"),
        _on("create", "pods/binding"),
        _on("create delete get list patch update watch", "controllerrevisions", "apps"),
        _EVENTS,
    ),
    "deployment-controller": (
        _on("get list update watch", "deployments", "apps"),
        _on("update", "deployments/finalizers deployments/status", "apps"),
        _on("create delete get list patch update watch", "replicasets", "apps"),
        _on("get list update watch", "pods"),
        _EVENTS,
    ),
    "endpoint-controller": (
        _on(_READ, "pods services"),
        _on("create delete get list update", "endpoints"),
        _on("create", "endpoints/restricted"),
        _EVENTS,
    ),
    "endpointslice-controller": (
        _on(_READ, "nodes pods services"),
        _on("update", "services/finalizers"),
        _on("create delete get list update", "endpointslices", "discovery.k8s.io"),
        _on("create", "endpointslices/restricted", "discovery.k8s.io"),
        _EVENTS,
    ),
    "endpointslicemirroring-controller": (
        _on(_READ, "endpoints services"),
        _on("update", "endpoints/finalizers services/finalizers"),
        _on("create delete get list update watch", "endpointslices", "discovery.k8s.io"),
        _EVENTS,
    ),
    "generic-garbage-collector": (
        _on("delete get list patch update watch", "*", "*"),
        _EVENTS,
    ),
    "job-controller": (
        _on("get list patch update watch", "jobs", "batch"),
        _on("update", "jobs/finalizers jobs/status", "batch"),
        _on("create delete list patch watch", "pods"),
        _EVENTS,
    ),
    "namespace-controller": (
        _on("delete get list watch", "namespaces"),
        _on("update", "namespaces/finalize namespaces/status"),
        _on("delete deletecollection get list", "*", "*"),
    ),
    "replicaset-controller": (
        _on("get list update watch", "replicasets", "apps"),
        _on("update", "replicasets/finalizers replicasets/status", "apps"),
        _on("create delete list patch watch", "pods"),
        _EVENTS,
    ),
    "resourcequota-controller": (
        _on("list watch", "*", "*"),
        _on("update", "resourcequotas/status"),
        _EVENTS,
    ),
    "root-ca-cert-publisher": (_on("create update", "configmaps"), _EVENTS),
    "service-account-controller": (_on("create", "serviceaccounts"), _EVENTS),
    "statefulset-controller": (
        _on("list watch", "pods"),
        _on(_READ, "statefulsets", "apps"),
        _on("update", "statefulsets/finalizers statefulsets/status", "apps"),
        _on("create delete get patch update", "pods"),
        _on("create delete get list patch update watch", "controllerrevisions", "apps"),
        _on("create get", "persistentvolumeclaims"),
        _EVENTS,
    ),
}  # fmt: skip

_AUTHENTICATED = ("Group", "system:authenticated")
_UNAUTHENTICATED = ("Group", "system:unauthenticated")

_CLUSTER_BINDINGS: Mapping[str, Sequence[tuple[str, str]]] = {
    "cluster-admin": (("Group", "system:masters"),),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:discovery": (_AUTHENTICATED,),
    "system:basic-user": (_AUTHENTICATED,),
    "system:public-info-viewer": (_AUTHENTICATED, _UNAUTHENTICATED),
    "system:node-proxier": (("User", "system:kube-proxy"),),
    "system:kube-controller-manager": (("User", "system:kube-controller-manager"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:volume-scheduler": (("User", "system:kube-scheduler"),),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
}


def bootstrap_objects() -> list[Object]:
    """Return every bootstrap Role, RoleBinding, ClusterRole and ClusterRoleBinding, fresh."""
    return [
        *(_cluster_role(name, rules) for name, rules in _CLUSTER_ROLES.items()),
        *_user_facing_roles(),
        *_controller_objects(),
        *(
            _cluster_binding(name, name, [_subject(kind, who) for kind, who in subjects])
            for name, subjects in _CLUSTER_BINDINGS.items()
        ),
        # Kept without subjects, as Kubernetes keeps it: nodes get their rights otherwise.
        _cluster_binding("system:node", "system:node", []),
        *_authentication_reader(),
    ]


def _user_facing_roles() -> list[Object]:
    """Return admin, edit and view, each gathering the parts labelled for it."""
    return [
        _aggregated("admin", gathers="admin"),
        _aggregated("edit", gathers="edit", part_of="admin"),
        _aggregated("view", gathers="view", part_of="edit"),
        _cluster_role("system:aggregate-to-admin", _ADMIN, {_label("admin"): "true"}),
        _cluster_role("system:aggregate-to-edit", _EDIT, {_label("edit"): "true"}),
        _cluster_role("system:aggregate-to-view", _VIEW, {_label("view"): "true"}),
    ]


def _controller_objects() -> list[Object]:
    objects = []
    for name, rules in _CONTROLLERS.items():
        role = f"system:controller:{name}"
        account = {"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}
        objects += [_cluster_role(role, rules), _cluster_binding(role, role, [account])]
    return objects


def _authentication_reader() -> list[Object]:
    """Return what lets extension servers read how clients are authenticated."""
    name = "extension-apiserver-authentication-reader"
    rule = _on(_READ, "configmaps", names="extension-apiserver-authentication")
    subjects = ("system:kube-controller-manager", "system:kube-scheduler")
    return [
        _object("Role", name, namespace="kube-system", rules=[rule.to_object()]),
        _object(
            "RoleBinding",
            f"system::{name}",
            namespace="kube-system",
            roleRef={"apiGroup": GROUP, "kind": "Role", "name": name},
            subjects=[_subject("User", user) for user in subjects],
        ),
    ]


def _label(part: str) -> str:
    return f"{GROUP}/aggregate-to-{part}"


def _aggregated(name: str, *, gathers: str, part_of: str = "") -> Object:
    labels = {_label(part_of): "true"} if part_of else {}
    role = _cluster_role(name, (), labels)
    selector = {"matchLabels": {_label(gathers): "true"}}
    role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return role


def _cluster_role(
    name: str, rules: Sequence[Rule], labels: Mapping[str, str] | None = None
) -> Object:
    listed = [rule.to_object() for rule in rules]
    return _object("ClusterRole", name, labels=labels, rules=listed)


def _cluster_binding(name: str, role: str, subjects: list[Object]) -> Object:
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    binding = _object("ClusterRoleBinding", name, roleRef=reference)
    if subjects:
        binding["subjects"] = subjects
    return binding


def _subject(kind: str, name: str) -> Object:
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def _object(
    kind: str,
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    **content: Any,
) -> Object:
    metadata: Object = {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **(labels or {})},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, **content}
