"""Objects that the traces apply."""

from __future__ import annotations

from typing import Any

NAMESPACES = "/api/v1/namespaces"
CONFIG_MAPS = "/api/v1/namespaces/shop/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/trace.example/v1/namespaces/shop/widgets"


def namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def config_map(name: str = "page", text: str = "hello") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop"},
        "data": {"index.html": text},
    }


def deployment(name: str = "web") -> dict[str, Any]:
    own = {"app": name}
    ports = [{"containerPort": 80, "protocol": "TCP"}]
    container = {"name": "web", "image": "registry.example/web:1", "ports": ports}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": own},
            "template": {"metadata": {"labels": own}, "spec": {"containers": [container]}},
        },
    }


def definition(group: str = "trace.example", plural: str = "widgets") -> dict[str, Any]:
    kind = plural.removesuffix("s").capitalize()
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
            },
            "scope": "Namespaced",
            "versions": [served],
        },
    }


def widget(size: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "trace.example/v1",
        "kind": "Widget",
        "metadata": {"name": "one", "namespace": "shop"},
        "spec": {"size": size},
    }
