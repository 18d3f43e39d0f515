"""Objects that several of these tests are about."""

from __future__ import annotations

from skerry.api.objects import Object


def whole_object() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "page",
            "namespace": "shop",
            "uid": "u",
            "resourceVersion": "5",
            "generation": 3,
            "managedFields": [{}],
            "ownerReferences": [{}],
            "finalizers": ["f"],
            "labels": {"edge.kcp.io/projected": "yes", "app": "x"},
            "annotations": {
                "kcp.io/cluster": "c",
                "edge.kcp.io/applied": "1",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "mine": "yes",
            },
        },
        "data": {"a": "1"},
        "status": {"x": 1},
    }
