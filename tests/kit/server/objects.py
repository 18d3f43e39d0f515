"""Objects the tests of the server work with."""

from __future__ import annotations

from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object

NAMESPACE = "default"
CORE = f"/api/v1/namespaces/{NAMESPACE}"


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Object:
    obj: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data,
    }
    if labels:
        obj["metadata"]["labels"] = labels
    return obj


def pod(name: str, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": containers, **spec},
    }


def service(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}], **spec},
    }


def deployment(name: str, replicas: int = 1) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
            },
        },
    }


def version(name: str, *, storage: bool, **more: Any) -> Object:
    """One version of a definition: a spec with a size and a colour, a status, a scale."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "colour": {"type": "string", "default": "red"},
                },
            },
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    }
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "selectableFields": [{"jsonPath": ".spec.size"}],
        **more,
    }


def definition(
    plural: str = "things", kind: str = "Thing", versions: list[Object] | None = None
) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": versions or [version("v1", storage=True)],
        },
    }


def thing(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "example.org/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": spec,
    }


_V1 = ("", "v1")
# What a server holds before it is asked odd things.
POPULATION: list[tuple[GroupVersionResource, Object]] = [
    (
        GroupVersionResource(*_V1, "serviceaccounts"),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}},
    ),
    (
        GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        definition(),
    ),
    (GroupVersionResource(*_V1, "configmaps"), config_map("a", {"a": "b"}, k="v")),
    (GroupVersionResource(*_V1, "pods"), pod("a")),
    (GroupVersionResource(*_V1, "services"), service("a")),
    (GroupVersionResource("apps", "v1", "deployments"), deployment("a")),
    (GroupVersionResource("example.org", "v1", "things"), thing("a", size=3)),
    (
        GroupVersionResource(*_V1, "resourcequotas"),
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q"},
            "spec": {"hard": {"pods": "5", "requests.cpu": "100"}},
        },
    ),
    (
        GroupVersionResource(*_V1, "events"),
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": NAMESPACE},
            "reason": "Because",
            "type": "Normal",
        },
    ),
    (
        GroupVersionResource("autoscaling", "v2", "horizontalpodautoscalers"),
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            },
        },
    ),
    (
        GroupVersionResource("policy", "v1", "poddisruptionbudgets"),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
        },
    ),
]
