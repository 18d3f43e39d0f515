"""A shop that is placed on some edges and not on others, for tests that look at it.

There are no syncers: edges are SyncTargets that were never heard of, which is all that placing,
explaining and foreseeing need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.kit.browser.console import Console

INVENTORY, SHOP = "root:inventory", "root:shop"
# Name, and labels of its Location.
EDGES: Mapping[str, Mapping[str, str]] = {
    "oslo": {"env": "prod", "region": "north"},
    "faro": {"env": "prod", "region": "south"},
    "bari": {"env": "stage", "region": "south"},
}


def furnish(console: Console) -> None:
    """Make an inventory with edges, and a workspace with a Deployment and its placement."""
    console.apply("root", *(_workspace(path) for path in (INVENTORY, SHOP)))
    for path in (INVENTORY, SHOP):
        _ready(console, path)
    console.apply(INVENTORY, *(each for name in EDGES for each in edge(name, EDGES[name])))
    console.apply(SHOP, *_bindings())
    console.kubectl(SHOP, "wait", "apibindings", "--all", "--for=condition=InitialBindingCompleted")
    console.apply(SHOP, namespace("shop"), deployment("web", "web:1.4"))
    console.apply(SHOP, placement())


def edge(name: str, labels: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    """Return the SyncTarget and the Location of an edge."""
    yield {
        "apiVersion": "workload.kcp.io/v1alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": name, "labels": {"id": name}},
    }
    yield {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "resource": {
                "group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets",
            },
            "instanceSelector": {"matchLabels": {"id": name}},
        },
    }  # fmt: skip


def namespace(name: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"goes": "out"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def deployment(name: str, image: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def placement() -> dict[str, Any]:
    return {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "web"},
        "spec": {
            "locationSelectors": [{"matchLabels": {"env": "prod"}}],
            "namespaceSelector": {"matchLabels": {"goes": "out"}},
        },
    }


def _workspace(path: str) -> dict[str, Any]:
    return {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": path.rpartition(":")[2]},
        "spec": {"type": {"name": "universal", "path": "root"}},
    }


def _ready(console: Console, path: str) -> None:
    name = path.rpartition(":")[2]
    console.kubectl(
        "root", "wait", f"workspace/{name}", "--for=jsonpath={.status.phase}=Ready", "--timeout=60s"
    )


def _bindings() -> Iterable[dict[str, Any]]:
    for name, path, export in (
        ("bind-kube", "root:compute", "kubernetes"),
        ("bind-espw", "root:espw", "edge.kcp.io"),
    ):
        yield {
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIBinding",
            "metadata": {"name": name},
            "spec": {"reference": {"export": {"path": path, "name": export}}},
        }
