"""What the owners of the example scenario write: workloads, bindings and placements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS, EXPORT, USUAL_PROVIDER
from skerry.api.kcp.resources import API_BINDINGS, LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object

PROVIDER = USUAL_PROVIDER
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")

KINDS = {
    WORKSPACES: "Workspace",
    SYNC_TARGETS: "SyncTarget",
    LOCATIONS: "Location",
    API_BINDINGS: "APIBinding",
    EDGE_PLACEMENTS: "EdgePlacement",
    NAMESPACES: "Namespace",
    CONFIG_MAPS: "ConfigMap",
    DEPLOYMENTS: "Deployment",
}


@dataclass(frozen=True, slots=True)
class Workload:
    """One of the two workloads: its names, its node port, and whom it selects."""

    name: str
    workspace: str
    node_port: int
    selector: dict[str, str]

    @property
    def namespace(self) -> str:
        return f"{self.name}stuff"

    @property
    def deployment(self) -> str:
        return f"{self.name}d"

    @property
    def placement(self) -> str:
        return f"edge-placement-{self.name[0]}"


COMMON = Workload("common", "wmw-c", 8081, {"env": "prod"})
SPECIAL = Workload("special", "wmw-s", 8082, {"env": "prod", "extended": "si"})


def workload_objects(workload: Workload) -> Iterator[tuple[GroupVersionResource, Object, str]]:
    """Yield what a workload owner writes: bindings, workload, placement."""
    name, namespace = workload.name, workload.namespace
    for binding, path, export in (
        ("bind-kube", "root:compute", "kubernetes"),
        ("bind-espw", PROVIDER, EXPORT),
    ):
        reference = {"export": {"path": path, "name": export}}
        yield API_BINDINGS, named(binding, spec={"reference": reference}), ""
    yield NAMESPACES, named(namespace, {name: "si"}), ""
    lines = ["<!DOCTYPE html>", "<html>", "  <body>", f"    This is a {name} web site."]
    page = "\n".join([*lines, "  </body>", "</html>", ""])
    yield CONFIG_MAPS, {**named("httpd-htdocs"), "data": {"index.html": page}}, namespace
    yield DEPLOYMENTS, named(workload.deployment, spec=_web_server(workload)), namespace
    yield EDGE_PLACEMENTS, named(workload.placement, spec=_placement(workload)), ""


def _web_server(workload: Workload) -> Object:
    labels = {"app": workload.name}
    port = {
        "name": "http",
        "containerPort": 80,
        "hostPort": workload.node_port,
        "protocol": "TCP",
    }
    mount = {"name": "htdocs", "readOnly": True, "mountPath": "/usr/local/apache2/htdocs"}
    container = {
        "name": "httpd",
        "image": "library/httpd:2.4",
        "ports": [port],
        "volumeMounts": [mount],
    }
    volume = {"name": "htdocs", "configMap": {"name": "httpd-htdocs", "optional": False}}
    return {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [container], "volumes": [volume]},
        },
    }


def _placement(workload: Workload) -> Object:
    return {
        "locationSelectors": [{"matchLabels": workload.selector}],
        "namespaceSelector": {"matchLabels": {workload.name: "si"}},
        "nonNamespacedObjects": [
            {
                "apiGroup": "apis.kcp.io",
                "resources": ["apibindings"],
                "resourceNames": ["bind-kube"],
            }
        ],
    }


def narrower(workload: Workload) -> Object:
    """Return a workload's placement with fewer destinations, to ask what that would do."""
    spec = _placement(workload)
    spec["locationSelectors"] = [{"matchLabels": SPECIAL.selector}]
    kind = {"apiVersion": str(EDGE_PLACEMENTS.group_version), "kind": KINDS[EDGE_PLACEMENTS]}
    return {**kind, **named(workload.placement, spec=spec)}


def named(name: str, labels: dict[str, str] | None = None, **members: Any) -> Object:
    """Return an object of this name, with these further members."""
    metadata: Object = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, **members}
