"""How a container uses the volumes of its pod: as directories, or as raw devices."""

from __future__ import annotations

from collections.abc import Mapping

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.paths import backstep_errors, descending_errors
from skerry.logic.machinery.builtin.rules import Errors, member, unsupported

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mount_errors(container: Object, path: str, volumes: Mapping[str, Object]) -> Errors:
    """Return what is wrong with ``volumeMounts``."""
    mounts = container.get("volumeMounts")
    if not mounts:
        return []
    errors: Errors = []
    devices = container.get("volumeDevices") or ()
    names = {device.get("name") for device in devices}
    device_paths = {device.get("devicePath") for device in devices}
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        name, target = mount.get("name") or "", mount.get("mountPath") or ""
        where = f"{path}.volumeMounts[{index}]"
        if not name:
            errors.append(FieldError.required(f"{where}.name"))
        if name not in volumes:
            errors.append(FieldError.not_found(f"{where}.name", name))
        if not target:
            errors.append(FieldError.required(f"{where}.mountPath"))
        if target in taken:
            errors.append(FieldError.invalid(f"{where}.mountPath", target, "must be unique"))
        taken.add(target)
        if name in names:
            text = "must not already exist in volumeDevices"
            errors.append(FieldError.invalid(f"{where}.name", name, text))
        if target in device_paths:
            text = "must not already exist as a path in volumeDevices"
            errors.append(FieldError.invalid(f"{where}.mountPath", target, text))
        if len(mount) > 2:
            errors += _option_errors(mount, where, container)
    return errors


def _option_errors(mount: Object, where: str, container: Object) -> Errors:
    # Kubernetes reports these below the list rather than below the mount.
    above = where.rsplit("[", 1)[0]
    errors: Errors = []
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub_path:
        errors += descending_errors(sub_path, f"{above}.subPath")
    if expression:
        if sub_path:
            text = "subPathExpr and subPath are mutually exclusive"
            errors.append(FieldError.invalid(f"{where}.subPathExpr", expression, text))
        errors += descending_errors(expression, f"{above}.subPathExpr")
    errors += _propagation_errors(mount, f"{above}.mountPropagation", container)
    return errors + _read_only_errors(mount, f"{above}.recursiveReadOnly")


def _propagation_errors(mount: Object, path: str, container: Object) -> Errors:
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return []
    if propagation not in _PROPAGATIONS:
        return [unsupported(path, propagation, _PROPAGATIONS)]
    if propagation == "Bidirectional" and not member(container, "securityContext", "privileged"):
        text = "Bidirectional mount propagation is available only to privileged containers"
        return [FieldError.forbidden(path, text)]
    return []


def _read_only_errors(mount: Object, path: str) -> Errors:
    recursive = mount.get("recursiveReadOnly")
    if recursive is None or recursive == "Disabled":
        return []
    if recursive not in _RECURSIVE:
        return [unsupported(path, recursive, _RECURSIVE)]
    errors: Errors = []
    if not mount.get("readOnly"):
        text = "may only be specified when readOnly is true"
        errors.append(FieldError.forbidden(path, text))
    if mount.get("mountPropagation") not in (None, "None"):
        text = "may only be specified when mountPropagation is None or not specified"
        errors.append(FieldError.forbidden(path, text))
    return errors


def device_errors(container: Object, path: str, volumes: Mapping[str, Object]) -> Errors:
    """Return what is wrong with ``volumeDevices``."""
    devices = container.get("volumeDevices")
    if not devices:
        return []
    errors: Errors = []
    mounts = container.get("volumeMounts") or ()
    names = {mount.get("name") for mount in mounts}
    mount_paths = {mount.get("mountPath") for mount in mounts}
    earlier_names: set[str] = set()
    earlier_paths: set[str] = set()
    for index, device in enumerate(devices):
        name, target = device.get("name") or "", device.get("devicePath") or ""
        where = f"{path}.volumeDevices[{index}]"
        errors += _device_name_errors(name, f"{where}.name", volumes)
        errors += _device_path_errors(target, f"{where}.devicePath")
        if name and name in earlier_names:
            errors.append(FieldError.invalid(f"{where}.name", name, "must be unique"))
        if target in earlier_paths:
            errors.append(FieldError.invalid(f"{where}.devicePath", target, "must be unique"))
        earlier_names.add(name)
        earlier_paths.add(target)
        if name in names:
            text = "must not already exist in volumeMounts"
            errors.append(FieldError.invalid(f"{where}.name", name, text))
        if target in mount_paths:
            text = "must not already exist as a path in volumeMounts"
            errors.append(FieldError.invalid(f"{where}.devicePath", target, text))
    return errors


def _device_name_errors(name: str, path: str, volumes: Mapping[str, Object]) -> Errors:
    errors: Errors = []
    if not name:
        errors.append(FieldError.required(path))
    volume = volumes.get(name)
    if volume is None:
        errors.append(FieldError.not_found(path, name))
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        text = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        errors.append(FieldError.invalid(path, name, text))
    return errors


def _device_path_errors(target: str, path: str) -> Errors:
    if not target:
        return [FieldError.required(path)]
    if backstep_errors(target, path):
        return [FieldError.invalid(path, target, "can not contain backsteps ('..')")]
    return []
