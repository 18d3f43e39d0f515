"""Columns of the kinds that keep data: volumes, claims, classes and drivers."""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    computed,
    field,
    flag,
    is_terminating,
    items,
    name_of,
    read,
    size,
    text,
)
from skerry.logic.machinery.resource import Column

# In the order they are shown, whatever the order in the object.
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
# Claims and volumes named their class in an annotation before there was a field.
_OLD_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_ATTRIBUTES_ANNOTATION = "volumeattributesclass.kubernetes.io/is-default-class"


def _annotations(obj: Object) -> dict[str, str]:
    return read(obj, "metadata", "annotations") or {}


def _access_modes(modes: Any) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _class_name(obj: Object) -> str:
    return _annotations(obj).get(_OLD_CLASS_ANNOTATION) or text(obj, "spec", "storageClassName")


def _phase(obj: Object) -> str:
    return "Terminating" if is_terminating(obj) else text(obj, "status", "phase")


def _storage_size(capacity: Any) -> str:
    return text(capacity, "storage") or "0"


def _claim(volume: Object) -> str:
    claim = read(volume, "spec", "claimRef")
    return "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}"


_STORAGE_CLASS = computed("StorageClass", _class_name, "The storage class it belongs to.")
_ATTRIBUTES_CLASS = field(
    "VolumeAttributesClass", "spec", "volumeAttributesClassName", default=UNSET
)
_VOLUME_MODE = field("VolumeMode", "spec", "volumeMode", default=UNSET, priority=1)
_STATUS = computed("Status", _phase, "Where it stands between creation and removal.")

PERSISTENT_VOLUME_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed("Capacity", lambda obj: _storage_size(read(obj, "spec", "capacity")), "Its size."),
    computed(
        "Access Modes",
        lambda obj: _access_modes(items(obj, "spec", "accessModes")),
        "How it can be mounted.",
    ),
    field("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
    _STATUS,
    computed("Claim", _claim, "The claim it is bound to."),
    _STORAGE_CLASS,
    _ATTRIBUTES_CLASS,
    field("Reason", "status", "reason"),
    AGE,
    _VOLUME_MODE,
)


def _bound_size(claim: Object) -> str:
    bound = text(claim, "spec", "volumeName")
    return _storage_size(read(claim, "status", "capacity")) if bound else ""


def _bound_modes(claim: Object) -> str:
    bound = text(claim, "spec", "volumeName")
    return _access_modes(items(claim, "status", "accessModes")) if bound else ""


PERSISTENT_VOLUME_CLAIM_COLUMNS: tuple[Column, ...] = (
    NAME,
    _STATUS,
    field("Volume", "spec", "volumeName"),
    computed("Capacity", _bound_size, "The size of the bound volume."),
    computed("Access Modes", _bound_modes, "How the bound volume can be mounted."),
    _STORAGE_CLASS,
    _ATTRIBUTES_CLASS,
    AGE,
    _VOLUME_MODE,
)


def _default_marked(*annotations: str) -> Column:
    """Return the name column of classes, where the default one is marked."""

    def cell(obj: Object) -> str:
        found = _annotations(obj)
        is_default = any(found.get(annotation) == "true" for annotation in annotations)
        return f"{name_of(obj)} (default)" if is_default else name_of(obj)

    return Column("Name", "string", lambda obj, _: cell(obj), "name", NAME.description)


STORAGE_CLASS_COLUMNS: tuple[Column, ...] = (
    _default_marked(*_DEFAULT_CLASS_ANNOTATIONS),
    field("Provisioner", "provisioner"),
    field("ReclaimPolicy", "reclaimPolicy", default="Delete"),
    field("VolumeBindingMode", "volumeBindingMode", default="Immediate"),
    field("AllowVolumeExpansion", "allowVolumeExpansion", default=False),
    AGE,
)


def _token_audiences(driver: Object) -> str:
    requests = read(driver, "spec", "tokenRequests")
    if requests is None:
        return UNSET
    return ",".join(text(request, "audience") for request in requests)


CSI_DRIVER_COLUMNS: tuple[Column, ...] = (
    NAME,
    flag("AttachRequired", "spec", "attachRequired", default=True),
    flag("PodInfoOnMount", "spec", "podInfoOnMount"),
    flag("StorageCapacity", "spec", "storageCapacity"),
    computed("TokenRequests", _token_audiences, "Audiences the driver wants tokens for."),
    flag("RequiresRepublish", "spec", "requiresRepublish"),
    computed(
        "Modes",
        lambda obj: ",".join(items(obj, "spec", "volumeLifecycleModes")) or NONE,
        "Kinds of volume the driver supports.",
    ),
    AGE,
)

STORAGE_COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "PersistentVolume"): PERSISTENT_VOLUME_COLUMNS,
    ("", "PersistentVolumeClaim"): PERSISTENT_VOLUME_CLAIM_COLUMNS,
    ("storage.k8s.io", "CSIDriver"): CSI_DRIVER_COLUMNS,
    ("storage.k8s.io", "CSINode"): (
        NAME,
        size("Drivers", "spec", "drivers", type="integer"),
        AGE,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): (
        NAME,
        field("StorageClassName", "storageClassName"),
        field("Capacity", "capacity", default=UNSET),
    ),
    ("storage.k8s.io", "StorageClass"): STORAGE_CLASS_COLUMNS,
    ("storage.k8s.io", "VolumeAttachment"): (
        NAME,
        Column("Attacher", "string", lambda obj, _: text(obj, "spec", "attacher"), "name"),
        field("PV", "spec", "source", "persistentVolumeName"),
        field("Node", "spec", "nodeName"),
        flag("Attached", "status", "attached"),
        AGE,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): (
        _default_marked(_DEFAULT_ATTRIBUTES_ANNOTATION),
        field("DriverName", "driverName"),
        AGE,
    ),
}
