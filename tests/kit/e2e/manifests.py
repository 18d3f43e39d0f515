"""Manifests the tests apply."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]


def config_map(name: str, **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **labels: str) -> Manifest:
    metadata: Manifest = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    }


def deployment(name: str, replicas: int = 1, image: str = "registry.example/app:1") -> Manifest:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    }


def definition(group: str, plural: str, kind: str, **more: Any) -> Manifest:
    """A CustomResourceDefinition with one version whose spec has a size and a colour."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "description": "What is wanted of a thing.",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "description": "How large."},
                    "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                },
            },
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": kind.lower(),
                "kind": kind,
                "shortNames": [kind.lower()[:2]],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.size",
                            "statusReplicasPath": ".status.size",
                        },
                    },
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
                    ],
                    **more,
                }
            ],
        },
    }
