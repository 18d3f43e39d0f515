"""Every stable type a Kubernetes 1.32 API server serves, as its discovery lists them.

One line per type. ``all`` and ``api-extensions`` are the two categories Kubernetes knows. The
order is that of discovery: by group version as the server registers them, then by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from skerry.api.kinds import ALL_VERBS, GroupVersion, GroupVersionKind, ResourceInfo, Subresource

_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_CREATE = ("create",)
_READ_WRITE = ("get", "patch", "update")
_STREAM = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")
_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


class Below(NamedTuple):
    """A subresource; an empty kind means the kind of the object above it."""

    name: str
    verbs: tuple[str, ...] = _READ_WRITE
    kind: str | GroupVersionKind = ""


_STATUS = Below("status")
_SCALED = Below("scale", _READ_WRITE, _SCALE)


class Line(NamedTuple):
    """One served type, before its group and version are known."""

    resource: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    below: tuple[Below, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS


def _cluster(
    resource: str,
    kind: str,
    short_names: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    below: tuple[Below, ...] = (),
    verbs: tuple[str, ...] = ALL_VERBS,
) -> Line:
    return Line(resource, kind, False, short_names, categories, below, verbs)


# Namespaces are emptied one by one by their controller: there is no deletecollection.
_NAMESPACE_VERBS = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")

_CORE: Sequence[Line] = (
    Line("bindings", "Binding", verbs=_CREATE),
    _cluster("componentstatuses", "ComponentStatus", ("cs",), verbs=("get", "list")),
    Line("configmaps", "ConfigMap", True, ("cm",)),
    Line("endpoints", "Endpoints", True, ("ep",)),
    Line("events", "Event", True, ("ev",)),
    Line("limitranges", "LimitRange", True, ("limits",)),
    _cluster(
        "namespaces",
        "Namespace",
        ("ns",),
        below=(Below("finalize", ("update",)), _STATUS),
        verbs=_NAMESPACE_VERBS,
    ),
    _cluster("nodes", "Node", ("no",), below=(Below("proxy", _PROXY, "NodeProxyOptions"), _STATUS)),
    Line("persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",), below=(_STATUS,)),
    _cluster("persistentvolumes", "PersistentVolume", ("pv",), below=(_STATUS,)),
    Line(
        "pods",
        "Pod",
        True,
        ("po",),
        _ALL,
        (
            Below("attach", _STREAM, "PodAttachOptions"),
            Below("binding", _CREATE, "Binding"),
            Below("ephemeralcontainers"),
            Below("eviction", _CREATE, GroupVersionKind("policy", "v1", "Eviction")),
            Below("exec", _STREAM, "PodExecOptions"),
            Below("log", ("get",)),
            Below("portforward", _STREAM, "PodPortForwardOptions"),
            Below("proxy", _PROXY, "PodProxyOptions"),
            Below("resize"),
            _STATUS,
        ),
    ),
    Line("podtemplates", "PodTemplate"),
    Line(
        "replicationcontrollers",
        "ReplicationController",
        True,
        ("rc",),
        _ALL,
        (_SCALED, _STATUS),
    ),
    Line("resourcequotas", "ResourceQuota", True, ("quota",), below=(_STATUS,)),
    Line("secrets", "Secret"),
    Line(
        "serviceaccounts",
        "ServiceAccount",
        True,
        ("sa",),
        below=(
            Below(
                "token", _CREATE, GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
            ),
        ),
    ),
    Line(
        "services",
        "Service",
        True,
        ("svc",),
        _ALL,
        (Below("proxy", _PROXY, "ServiceProxyOptions"), _STATUS),
    ),
)

_HPA: Sequence[Line] = (
    Line("horizontalpodautoscalers", "HorizontalPodAutoscaler", True, ("hpa",), _ALL, (_STATUS,)),
)

_SERVED: dict[str, Sequence[Line]] = {
    "v1": _CORE,
    "apiregistration.k8s.io/v1": (
        _cluster("apiservices", "APIService", (), _EXTENSIONS, (_STATUS,)),
    ),
    "apps/v1": (
        Line("controllerrevisions", "ControllerRevision"),
        Line("daemonsets", "DaemonSet", True, ("ds",), _ALL, (_STATUS,)),
        Line("deployments", "Deployment", True, ("deploy",), _ALL, (_SCALED, _STATUS)),
        Line("replicasets", "ReplicaSet", True, ("rs",), _ALL, (_SCALED, _STATUS)),
        Line("statefulsets", "StatefulSet", True, ("sts",), _ALL, (_SCALED, _STATUS)),
    ),
    "events.k8s.io/v1": (Line("events", "Event", True, ("ev",)),),
    "authentication.k8s.io/v1": (
        _cluster("selfsubjectreviews", "SelfSubjectReview", verbs=_CREATE),
        _cluster("tokenreviews", "TokenReview", verbs=_CREATE),
    ),
    "authorization.k8s.io/v1": (
        Line("localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=_CREATE),
        _cluster("selfsubjectaccessreviews", "SelfSubjectAccessReview", verbs=_CREATE),
        _cluster("selfsubjectrulesreviews", "SelfSubjectRulesReview", verbs=_CREATE),
        _cluster("subjectaccessreviews", "SubjectAccessReview", verbs=_CREATE),
    ),
    "autoscaling/v2": _HPA,
    "autoscaling/v1": _HPA,
    "batch/v1": (
        Line("cronjobs", "CronJob", True, ("cj",), _ALL, (_STATUS,)),
        Line("jobs", "Job", True, (), _ALL, (_STATUS,)),
    ),
    "certificates.k8s.io/v1": (
        _cluster(
            "certificatesigningrequests",
            "CertificateSigningRequest",
            ("csr",),
            below=(Below("approval"), _STATUS),
        ),
    ),
    "networking.k8s.io/v1": (
        _cluster("ingressclasses", "IngressClass"),
        Line("ingresses", "Ingress", True, ("ing",), below=(_STATUS,)),
        Line("networkpolicies", "NetworkPolicy", True, ("netpol",)),
    ),
    "policy/v1": (
        Line("poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",), below=(_STATUS,)),
    ),
    "rbac.authorization.k8s.io/v1": (
        _cluster("clusterrolebindings", "ClusterRoleBinding"),
        _cluster("clusterroles", "ClusterRole"),
        Line("rolebindings", "RoleBinding"),
        Line("roles", "Role"),
    ),
    "storage.k8s.io/v1": (
        _cluster("csidrivers", "CSIDriver"),
        _cluster("csinodes", "CSINode"),
        Line("csistoragecapacities", "CSIStorageCapacity"),
        _cluster("storageclasses", "StorageClass", ("sc",)),
        _cluster("volumeattachments", "VolumeAttachment", below=(_STATUS,)),
    ),
    "admissionregistration.k8s.io/v1": (
        _cluster("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", (), _EXTENSIONS),
        _cluster(
            "validatingadmissionpolicies", "ValidatingAdmissionPolicy", (), _EXTENSIONS, (_STATUS,)
        ),
        _cluster(
            "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", (), _EXTENSIONS
        ),
        _cluster(
            "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", (), _EXTENSIONS
        ),
    ),
    "apiextensions.k8s.io/v1": (
        _cluster(
            "customresourcedefinitions",
            "CustomResourceDefinition",
            ("crd", "crds"),
            _EXTENSIONS,
            (_STATUS,),
        ),
    ),
    "scheduling.k8s.io/v1": (_cluster("priorityclasses", "PriorityClass", ("pc",)),),
    "coordination.k8s.io/v1": (Line("leases", "Lease"),),
    "node.k8s.io/v1": (_cluster("runtimeclasses", "RuntimeClass"),),
    "discovery.k8s.io/v1": (Line("endpointslices", "EndpointSlice"),),
    "flowcontrol.apiserver.k8s.io/v1": (
        _cluster("flowschemas", "FlowSchema", below=(_STATUS,)),
        _cluster("prioritylevelconfigurations", "PriorityLevelConfiguration", below=(_STATUS,)),
    ),
}


def catalogue() -> Iterator[ResourceInfo]:
    """Yield the discovery facts of every built-in type, one per served version."""
    for api_version, lines in _SERVED.items():
        served_at = GroupVersion.parse(api_version)
        for line in lines:
            yield _info(served_at, line)


def _info(served_at: GroupVersion, line: Line) -> ResourceInfo:
    return ResourceInfo(
        group=served_at.group,
        version=served_at.version,
        resource=line.resource,
        kind=line.kind,
        namespaced=line.namespaced,
        singular=line.kind.lower(),
        list_kind=f"{line.kind}List",
        short_names=line.short_names,
        categories=line.categories,
        verbs=line.verbs,
        subresources=tuple(_subresource(served_at, line, below) for below in line.below),
    )


def _subresource(served_at: GroupVersion, line: Line, below: Below) -> Subresource:
    kind = below.kind
    if isinstance(kind, str):
        kind = GroupVersionKind(served_at.group, served_at.version, kind or line.kind)
    return Subresource(below.name, kind, below.verbs)
