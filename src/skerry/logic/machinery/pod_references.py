"""What a pod refers to in its namespace: what its node must be able to read to run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from skerry.api.objects import Object

MIRROR = "kubernetes.io/config.mirror"


class Reference(NamedTuple):
    """One object in the pod's namespace, by its resource."""

    resource: str
    name: str


# Volumes that name a Secret in ``secretRef``.
_WITH_SECRET = ("cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")


def references(pod: Object) -> frozenset[Reference]:
    """Return everything a pod refers to."""
    return frozenset(each for each in _references(pod) if each.name)


def _references(pod: Object) -> Iterator[Reference]:
    spec = pod.get("spec") or {}
    yield Reference("serviceaccounts", spec.get("serviceAccountName") or "")
    for secret in spec.get("imagePullSecrets") or ():
        yield Reference("secrets", secret.get("name") or "")
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            yield from _of_container(container)
    for volume in spec.get("volumes") or ():
        yield from _of_volume(pod["metadata"].get("name", ""), volume)


def _of_container(container: Mapping[str, Any]) -> Iterator[Reference]:
    for source in container.get("envFrom") or ():
        yield Reference("secrets", _name(source, "secretRef"))
        yield Reference("configmaps", _name(source, "configMapRef"))
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield Reference("secrets", _name(source, "secretKeyRef"))
        yield Reference("configmaps", _name(source, "configMapKeyRef"))


def _of_volume(pod: str, volume: Mapping[str, Any]) -> Iterator[Reference]:
    yield Reference("secrets", _name(volume, "secret", "secretName"))
    yield Reference("secrets", _name(volume, "azureFile", "secretName"))
    yield Reference("configmaps", _name(volume, "configMap"))
    yield Reference("persistentvolumeclaims", _name(volume, "persistentVolumeClaim", "claimName"))
    if "ephemeral" in volume:
        yield Reference("persistentvolumeclaims", f"{pod}-{volume['name']}")
    for kind in _WITH_SECRET:
        yield Reference("secrets", _name(volume.get(kind) or {}, "secretRef"))
    yield Reference("secrets", _name(volume.get("csi") or {}, "nodePublishSecretRef"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield Reference("secrets", _name(source, "secret"))
        yield Reference("configmaps", _name(source, "configMap"))


def _name(source: Mapping[str, Any], field: str, member: str = "name") -> str:
    return str((source.get(field) or {}).get(member) or "")
