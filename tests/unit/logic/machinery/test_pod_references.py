"""Every place where a pod names something of its namespace."""

from __future__ import annotations

import pytest

from skerry.logic.machinery.pod_references import Reference, references


def test_all_that_a_pod_names_is_found_once() -> None:
    variables = [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "by-key", "key": "k"}}},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "map-key", "key": "k"}}},
        {"name": "C", "value": "plain"},
    ]
    sources = [{"secretRef": {"name": "env"}}, {"configMapRef": {"name": "map-env"}}]
    projected = [{"secret": {"name": "part"}}, {"configMap": {"name": "map-part"}}]
    volumes = [
        {"name": "a", "secret": {"secretName": "whole"}},
        {"name": "b", "configMap": {"name": "map-whole"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "d", "ephemeral": {}},
        {"name": "e", "projected": {"sources": projected}},
        {"name": "f", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "published"}}},
        {"name": "g", "rbd": {"secretRef": {"name": "rbd"}}},
        {"name": "h", "emptyDir": {}},
    ]
    spec = {
        "serviceAccountName": "account",
        "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"name": "i", "envFrom": sources}],
        "containers": [{"name": "c", "env": variables}, {"name": "d", "env": variables}],
        "volumes": volumes,
    }
    found = references({"metadata": {"name": "p"}, "spec": spec})
    secrets = ("pull", "env", "by-key", "whole", "part", "published", "rbd")
    assert found == {
        Reference("serviceaccounts", "account"),
        *(Reference("secrets", name) for name in secrets),
        *(Reference("configmaps", f"map-{name}") for name in ("env", "key", "whole", "part")),
        Reference("persistentvolumeclaims", "claim"),
        Reference("persistentvolumeclaims", "p-d"),
    }
    assert references({"metadata": {"name": "p"}, "spec": {"containers": []}}) == frozenset()


@pytest.mark.parametrize(
    "volume",
    [
        *({kind: {"secretRef": {"name": "s"}}} for kind in
          ("cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")),
        {"secret": {"secretName": "s"}},
        {"azureFile": {"secretName": "s"}},
        {"csi": {"nodePublishSecretRef": {"name": "s"}}},
        {"projected": {"sources": [{"downwardAPI": {}}, {"secret": {"name": "s"}}]}},
    ],
)  # fmt: skip
def test_every_volume_that_needs_a_secret_names_it(volume: dict[str, object]) -> None:
    found = references({"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", **volume}]}})
    assert found == {Reference("secrets", "s")}


@pytest.mark.parametrize("kind", ["secret", "cephfs", "csi", "projected", "configMap", "hostPath"])
@pytest.mark.parametrize("source", [None, {}, {"secretRef": None, "nodePublishSecretRef": None}])
def test_a_volume_that_names_nothing_needs_nothing(kind: str, source: object) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", kind: source}]}}
    assert references(pod) == frozenset()
