"""One small, valid object of every kind that is served, as somebody would write it."""

from __future__ import annotations

from typing import Any, NamedTuple

Raw = dict[str, Any]
NAMESPACE = "differential"


class Kind(NamedTuple):
    """A kind, where its objects are, and one of them without its name."""

    version: str
    kind: str
    resource: str
    sample: Raw
    namespaced: bool = True
    name: str = "sample"
    status: bool = False
    scale: bool = False

    @property
    def collection(self) -> str:
        """The path of its objects."""
        base = f"/api/{self.version}" if "/" not in self.version else f"/apis/{self.version}"
        where = f"/namespaces/{NAMESPACE}" if self.namespaced else ""
        return f"{base}{where}/{self.resource}"

    @property
    def everywhere(self) -> str:
        """The path of its objects in all namespaces."""
        return self.collection.replace(f"/namespaces/{NAMESPACE}/", "/", 1)

    def object(self, name: str = "", **metadata: Any) -> Raw:
        """Return the object under another name."""
        return {
            "apiVersion": self.version,
            "kind": self.kind,
            "metadata": {"name": name or self.name, **metadata},
            **self.sample,
        }


LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
POD: Raw = {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}
TEMPLATE: Raw = {"metadata": {"labels": LABELS}, "spec": POD}
BATCH = {**POD, "restartPolicy": "Never"}
JOB: Raw = {"template": {"spec": BATCH}, "backoffLimit": 2}
CLAIM: Raw = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
ROLE: Raw = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
SUBJECT = {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}
RULE: Raw = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["nosuchthings"],
}
WEBHOOK: Raw = {
    "name": "hook.example.com",
    "clientConfig": {"url": "https://localhost:9/x"},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
SCHEMA: Raw = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "colour": {"type": "string", "enum": ["red", "blue"]},
                "replicas": {"type": "integer"},
                "parts": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["size"],
        },
        "status": {
            "type": "object",
            "properties": {"ready": {"type": "boolean"}, "replicas": {"type": "integer"}},
        },
    },
}


def definition(plural: str = "widgets", kind: str = "Widget") -> Raw:
    """Return the spec of a CustomResourceDefinition in group ``example.com``."""
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}, "scale": scale},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"spec": spec}


_APPS, _RBAC, _STORAGE = "apps/v1", "rbac.authorization.k8s.io/v1", "storage.k8s.io/v1"
_ADMISSION, _NETWORK = "admissionregistration.k8s.io/v1", "networking.k8s.io/v1"
_FLOW = "flowcontrol.apiserver.k8s.io/v1"
_SET: Raw = {"spec": {"selector": SELECTOR, "template": TEMPLATE}}

KINDS = (
    Kind("v1", "ConfigMap", "configmaps", {"data": {"a": "1"}}),
    Kind("v1", "Secret", "secrets", {"type": "Opaque", "data": {"a": "MQ=="}}),
    Kind("v1", "Service", "services", {"spec": {"selector": LABELS, "ports": [
        {"name": "http", "port": 80, "targetPort": 8080}]}}, status=True),
    Kind("v1", "Pod", "pods", {"spec": POD}, status=True),
    Kind("v1", "ServiceAccount", "serviceaccounts", {"automountServiceAccountToken": False}),
    Kind("v1", "Endpoints", "endpoints", {"subsets": [
        {"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]}),
    Kind("v1", "Event", "events", {
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": NAMESPACE},
        "reason": "Tested", "message": "m", "type": "Normal"}),
    Kind("v1", "LimitRange", "limitranges", {"spec": {"limits": [
        {"type": "Container", "max": {"ephemeral-storage": "1Gi"}}]}}),
    Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", {"spec": CLAIM}, status=True),
    Kind("v1", "PersistentVolume", "persistentvolumes", {"spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"}}}, namespaced=False, status=True),
    Kind("v1", "PodTemplate", "podtemplates", {"template": TEMPLATE}),
    Kind("v1", "ReplicationController", "replicationcontrollers", {"spec": {
        "replicas": 1, "selector": LABELS, "template": TEMPLATE}}, status=True, scale=True),
    Kind("v1", "ResourceQuota", "resourcequotas", {"spec": {"hard": {"count/x.example.com": "9"}}},
         status=True),
    Kind("v1", "Namespace", "namespaces", {}, namespaced=False, name="sample-space", status=True),
    Kind("v1", "Node", "nodes", {"spec": {"podCIDR": "10.1.0.0/24"}}, namespaced=False,
         status=True),
    Kind(_APPS, "Deployment", "deployments", _SET, status=True, scale=True),
    Kind(_APPS, "ReplicaSet", "replicasets", _SET, status=True, scale=True),
    Kind(_APPS, "StatefulSet", "statefulsets", {"spec": {
        "serviceName": "web", "selector": SELECTOR, "template": TEMPLATE,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}]}},
         status=True, scale=True),
    Kind(_APPS, "DaemonSet", "daemonsets", _SET, status=True),
    Kind(_APPS, "ControllerRevision", "controllerrevisions", {"revision": 1, "data": {"a": 1}}),
    Kind("batch/v1", "Job", "jobs", {"spec": JOB}, status=True),
    Kind("batch/v1", "CronJob", "cronjobs", {"spec": {
        "schedule": "*/5 * * * *", "jobTemplate": {"spec": JOB}}}, status=True),
    Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", {"spec": {
        "scaleTargetRef": REFERENCE, "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}},
         status=True),
    Kind("autoscaling/v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", {"spec": {
        "scaleTargetRef": REFERENCE, "maxReplicas": 3}}, name="older", status=True),
    Kind(_NETWORK, "Ingress", "ingresses", {"spec": {"rules": [{"host": "a.example.com", "http": {
        "paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {
            "name": "web", "port": {"number": 80}}}}]}}]}}, status=True),
    Kind(_NETWORK, "IngressClass", "ingressclasses", {"spec": {"controller": "example.com/c"}},
         namespaced=False),
    Kind(_NETWORK, "NetworkPolicy", "networkpolicies", {"spec": {
        "podSelector": SELECTOR, "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {}}], "ports": [{"protocol": "TCP", "port": 80}]}]}}),
    Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", {"spec": {
        "minAvailable": 1, "selector": SELECTOR}}, status=True),
    Kind(_RBAC, "Role", "roles", ROLE),
    Kind(_RBAC, "ClusterRole", "clusterroles", ROLE, namespaced=False),
    Kind(_RBAC, "RoleBinding", "rolebindings", {"subjects": [SUBJECT], "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}}),
    Kind(_RBAC, "ClusterRoleBinding", "clusterrolebindings", {"subjects": [SUBJECT], "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}},
         namespaced=False),
    Kind("coordination.k8s.io/v1", "Lease", "leases", {"spec": {
        "holderIdentity": "me", "leaseDurationSeconds": 15}}),
    Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", {
        "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}),
    Kind("events.k8s.io/v1", "Event", "events", {
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "example.com/c",
        "reportingInstance": "i", "action": "Testing", "reason": "Tested", "note": "n",
        "type": "Normal", "regarding": {"kind": "Pod", "name": "p", "namespace": NAMESPACE}},
         name="newer"),
    Kind(_STORAGE, "StorageClass", "storageclasses", {
        "provisioner": "example.com/p", "parameters": {"a": "b"}}, namespaced=False),
    Kind(_STORAGE, "CSIDriver", "csidrivers", {"spec": {"attachRequired": False}},
         namespaced=False),
    Kind(_STORAGE, "CSINode", "csinodes", {"spec": {"drivers": [
        {"name": "d.example.com", "nodeID": "n"}]}}, namespaced=False),
    Kind(_STORAGE, "CSIStorageCapacity", "csistoragecapacities", {"storageClassName": "c"}),
    Kind(_STORAGE, "VolumeAttachment", "volumeattachments", {"spec": {
        "attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
         namespaced=False, status=True),
    Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", {
        "value": 7, "description": "d"}, namespaced=False),
    Kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", {"handler": "runsc"},
         namespaced=False),
    Kind(_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", {
        "webhooks": [WEBHOOK]}, namespaced=False),
    Kind(_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", {
        "webhooks": [WEBHOOK]}, namespaced=False),
    Kind(_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", {"spec": {
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "object.metadata.name != 'x'", "message": "no"}]}},
         namespaced=False, status=True),
    Kind(_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", {
        "spec": {"policyName": "p", "validationActions": ["Deny"]}}, namespaced=False),
    Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions",
         definition("gadgets", "Gadget"), namespaced=False, name="gadgets.example.com",
         status=True),
    Kind("apiregistration.k8s.io/v1", "APIService", "apiservices", {"spec": {
        "group": "absent.example.com", "version": "v1", "groupPriorityMinimum": 100,
        "versionPriority": 100, "service": {"name": "s", "namespace": NAMESPACE},
        "insecureSkipTLSVerify": True}}, namespaced=False, name="v1.absent.example.com",
         status=True),
    Kind(_FLOW, "FlowSchema", "flowschemas", {"spec": {
        "priorityLevelConfiguration": {"name": "catch-all"}, "matchingPrecedence": 5000,
        "rules": [{"subjects": [{"kind": "User", "user": {"name": "nobody-here"}}],
                   "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}]}},
         namespaced=False, status=True),
    Kind(_FLOW, "PriorityLevelConfiguration", "prioritylevelconfigurations", {"spec": {
        "type": "Limited", "limited": {"nominalConcurrencyShares": 1,
                                       "limitResponse": {"type": "Reject"}}}},
         namespaced=False, status=True),
    Kind("example.com/v1", "Widget", "widgets", {"spec": {
        "size": 3, "colour": "red", "replicas": 1, "parts": ["a"]}}, status=True, scale=True),
)  # fmt: skip
