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


# Which resource a kind of volume names, and where.
_IN_VOLUME: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "secret": ("secrets", ("secretName",)),
    "azureFile": ("secrets", ("secretName",)),
    "configMap": ("configmaps", ("name",)),
    "persistentVolumeClaim": ("persistentvolumeclaims", ("claimName",)),
    "csi": ("secrets", ("nodePublishSecretRef", "name")),
    **dict.fromkeys(
        ("cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"),
        ("secrets", ("secretRef", "name")),
    ),
}
_PROJECTED = {"secret": "secrets", "configMap": "configmaps"}


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
    # Every pod has a volume or more: only what is in one is looked at.
    for kind, source in volume.items():
        named = _IN_VOLUME.get(kind)
        if named is not None:
            resource, path = named
            yield Reference(resource, _at(source, path))
        elif kind == "ephemeral":
            yield Reference("persistentvolumeclaims", f"{pod}-{volume['name']}")
        elif kind == "projected":
            for each in (source or {}).get("sources") or ():
                for member in _PROJECTED.keys() & each.keys():
                    yield Reference(_PROJECTED[member], _name(each, member))


def _at(source: Mapping[str, Any] | None, path: tuple[str, ...]) -> str:
    *above, last = path
    for member in above:
        source = (source or {}).get(member)
    return str((source or {}).get(last) or "")


def _name(source: Mapping[str, Any], field: str) -> str:
    return _at(source.get(field), ("name",))
