"""Schemas and objects of real kinds for tests of patch and apply."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from skerry.api.objects import Object
from skerry.api.schema import Definitions, Schema
from skerry.logic.machinery import protobuf

# Every kind that has a message: apiVersion, kind, message.
BUILT_IN_KINDS: Final[Mapping[str, Mapping[str, str]]] = json.loads(
    files(protobuf).joinpath("fields.json").read_text()
)["kinds"]


@lru_cache(maxsize=1)
def definitions() -> Definitions:
    spec = find_spec("kubernetes_validate")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "kubernetes-json-schema/v1.32.0-local"
    return Definitions(json.loads((folder / "_definitions.json").read_text())["$defs"])


def deployment_schema() -> Schema:
    return definitions().get("io.k8s.api.apps.v1.Deployment")


def config_map_schema() -> Schema:
    return definitions().get("io.k8s.api.core.v1.ConfigMap")


def service_schema() -> Schema:
    return definitions().get("io.k8s.api.core.v1.Service")


def pod_schema() -> Schema:
    return definitions().get("io.k8s.api.core.v1.Pod")


def deployment() -> Object:
    """A deployment as the server keeps it, defaults filled in; about 1.5 KB."""
    return copy.deepcopy(_DEPLOYMENT)


def config_map(**data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "default"},
        "data": dict(data),
    }


_DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "0a1b2c3d-0000-1111-2222-333344445555",
        "resourceVersion": "42",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "web", "tier": "front"},
        "annotations": {"deployment.kubernetes.io/revision": "1"},
    },
    "spec": {
        "replicas": 3,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
        },
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "front"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "nginx:1.27",
                        "imagePullPolicy": "IfNotPresent",
                        "env": [
                            {"name": "MODE", "value": "production"},
                            {"name": "LEVEL", "value": "info"},
                        ],
                        "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    },
                    {"name": "sidecar", "image": "envoy:1.30", "resources": {}},
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
                "tolerations": [{"key": "edge", "operator": "Exists", "effect": "NoSchedule"}],
                "volumes": [{"name": "data", "emptyDir": {}}],
            },
        },
    },
    "status": {"observedGeneration": 1, "replicas": 3},
}
