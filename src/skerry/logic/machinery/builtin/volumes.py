"""The volumes of a pod: one source each, names unique, references complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import quantity_errors
from skerry.logic.machinery.builtin.downward import (
    field_reference_errors,
    resource_reference_errors,
)
from skerry.logic.machinery.builtin.metadata import annotation_errors
from skerry.logic.machinery.builtin.paths import backstep_errors, mode_errors, unreserved_errors
from skerry.logic.machinery.builtin.rules import Errors, each, unsupported
from skerry.logic.machinery.names import dns1123_label, dns1123_subdomain
from skerry.logic.machinery.selectors import label_errors, label_selector_errors

_MORE_THAN_ONE = "may not specify more than 1 volume type"
_HOST_PATHS = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip
_TOKEN_SHORTEST = 600
_MAX_TOKEN_LENGTH = 2**32
ClaimCheck = Callable[[Object, str], Errors]


def volume_errors(
    volumes: Iterable[Object], path: str, claim_errors: ClaimCheck, pod_name: str = ""
) -> tuple[dict[str, Object], Errors]:
    """Return the usable volumes by name, and what is wrong with the others.

    *claim_errors* judges the spec of a claim, for volumes that carry one.
    """
    usable: dict[str, Object] = {}
    errors: Errors = []
    ephemeral = {f"{pod_name}-{v.get('name')}" for v in volumes if pod_name and v.get("ephemeral")}
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        wrong = _source_errors(volume, where, claim_errors, pod_name)
        wrong += _name_errors(volume.get("name") or "", f"{where}.name", usable)
        if wrong:
            errors += wrong
        else:
            usable[volume["name"]] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in ephemeral:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            field = f"{where}.persistentVolumeClaim.claimName"
            errors.append(FieldError.invalid(field, claim, text))
    return usable, errors


def _name_errors(name: str, path: str, taken: dict[str, Object]) -> Errors:
    if not name:
        return [FieldError.required(path)]
    errors = each(path, name, dns1123_label(name))
    if name in taken:
        errors.append(FieldError.duplicate(path, name))
    return errors


def _source_errors(volume: Object, path: str, claim_errors: ClaimCheck, pod_name: str) -> Errors:
    errors: Errors = []
    found = ""
    for name, source in volume.items():
        if name == "name" or source is None:
            continue
        if found:
            errors.append(FieldError.forbidden(f"{path}.{name}", _MORE_THAN_ONE))
            continue
        found = name
        check = _SOURCES.get(name)
        if check is not None:
            errors += check(source, f"{path}.{name}")
        elif name == "ephemeral":
            errors += _ephemeral_errors(source, f"{path}.ephemeral", claim_errors)
            errors += _claim_name_errors(pod_name, volume.get("name") or "", f"{path}.name")
    if not found:
        errors.append(FieldError.required(path, "must specify a volume type"))
    return errors


def _claim_name_errors(pod_name: str, name: str, path: str) -> Errors:
    if not pod_name or not name:
        return []
    claim = f"{pod_name}-{name}"
    return each(path, name, [f'PVC name "{claim}": {text}' for text in dns1123_subdomain(claim)])


def _requiring(*names: str) -> Callable[[Object, str], Errors]:
    """Return a check that each of *names* says something."""

    def check(source: Object, path: str) -> Errors:
        return [FieldError.required(f"{path}.{name}") for name in names if not source.get(name)]

    return check


def _empty_dir_errors(source: Object, path: str) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and quantity_errors(limit, path):
        text = "SizeLimit field must be a valid resource quantity"
        return [FieldError.forbidden(f"{path}.sizeLimit", text)]
    return []


def _host_path_errors(source: Object, path: str) -> Errors:
    if not source.get("path"):
        return [FieldError.required(f"{path}.path")]
    errors = backstep_errors(source["path"], f"{path}.path")
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATHS:
        errors.append(unsupported(f"{path}.type", kind, _HOST_PATHS))
    return errors


def _keyed_files(name_field: str) -> Callable[[Object, str], Errors]:
    """Return the check of a volume made from the keys of a ConfigMap or Secret."""

    def check(source: Object, path: str) -> Errors:
        errors: Errors = []
        if not source.get(name_field):
            errors.append(FieldError.required(f"{path}.{name_field}"))
        errors += mode_errors(source.get("defaultMode"), f"{path}.defaultMode")
        for index, item in enumerate(source.get("items") or ()):
            errors += _key_errors(item, f"{path}.items[{index}]")
        return errors

    return check


def _key_errors(item: Object, path: str) -> Errors:
    errors = [
        FieldError.required(f"{path}.{name}") for name in ("key", "path") if not item.get(name)
    ]
    errors += unreserved_errors(item.get("path") or "", f"{path}.path")
    return errors + mode_errors(item.get("mode"), f"{path}.mode")


def _downward_errors(source: Object, path: str) -> Errors:
    errors = mode_errors(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        errors += _downward_file_errors(item, path)
    return errors


def _downward_file_errors(item: Object, path: str) -> Errors:
    errors: Errors = []
    if not item.get("path"):
        errors.append(FieldError.required(f"{path}.path"))
    errors += unreserved_errors(item.get("path") or "", f"{path}.path")
    reference, amount = item.get("fieldRef"), item.get("resourceFieldRef")
    if reference is not None:
        errors += field_reference_errors(reference, f"{path}.fieldRef", in_volume=True)
        if amount is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(FieldError.invalid(path, "resource", text))
    elif amount is not None:
        errors += resource_reference_errors(amount, f"{path}.resourceFieldRef", in_volume=True)
    else:
        text = "one of fieldRef and resourceFieldRef is required"
        errors.append(FieldError.required(path, text))
    return errors + mode_errors(item.get("mode"), f"{path}.mode")


def _projected_errors(source: Object, path: str) -> Errors:
    errors = mode_errors(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        given = [name for name, value in part.items() if value is not None]
        for name in given:
            errors += _PROJECTIONS.get(name, _any_projection)(part[name], f"{where}.{name}")
            errors += _collisions(name, part[name], path, taken)
        if len(given) > 1:
            text = "may not specify more than 1 volume type per source"
            errors.append(FieldError.forbidden(where, text))
    return errors


def _collisions(name: str, part: Any, path: str, taken: set[str]) -> Errors:
    """Refuse two files of one name; the complaint names the source, as Kubernetes' does."""
    errors: Errors = []
    files = [part] if name == "clusterTrustBundle" else part.get("items") or ()
    for item in files:
        target = item.get("path") or ""
        if target and target in taken:
            shown = part.get("name") or target
            errors.append(FieldError.invalid(path, shown, "conflicting duplicate paths"))
        taken.add(target)
    return errors


def _token_errors(source: Object, path: str) -> Errors:
    errors: Errors = []
    seconds = source.get("expirationSeconds")
    if seconds is not None and seconds < _TOKEN_SHORTEST:
        text = "may not specify a duration less than 10 minutes"
        errors.append(FieldError.invalid(f"{path}.expirationSeconds", seconds, text))
    if seconds is not None and seconds > _MAX_TOKEN_LENGTH:
        text = "may not specify a duration larger than 2^32 seconds"
        errors.append(FieldError.invalid(f"{path}.expirationSeconds", seconds, text))
    # Kubernetes reports the path above the projection.
    above = path.split(".sources[", 1)[0]
    if not source.get("path"):
        errors.append(FieldError.required(f"{above}.path"))
    else:
        errors += unreserved_errors(source["path"], f"{above}.path")
    return errors


def _trust_bundle_errors(source: Object, path: str) -> Errors:
    errors: Errors = []
    named, signed = source.get("name") is not None, source.get("signerName") is not None
    if named and signed:
        text = "only one of name and signerName may be used"
        errors.append(FieldError.invalid(path, source, text))
    elif named and source.get("labelSelector") is not None:
        text = "labelSelector must be unset if name is specified"
        errors.append(FieldError.invalid(f"{path}.labelSelector", source["labelSelector"], text))
    elif signed:
        errors += label_selector_errors(source.get("labelSelector"), f"{path}.labelSelector")
    elif not named:
        text = "either name or signerName must be specified"
        errors.append(FieldError.required(path, text))
    if not source.get("path"):
        errors.append(FieldError.required(f"{path}.path"))
    return errors + unreserved_errors(source.get("path") or "", f"{path}.path")


def _any_projection(_: Object, __: str) -> Errors:
    return []


def _nfs_errors(source: Object, path: str) -> Errors:
    errors = _requiring("server", "path")(source, path)
    if not (source.get("path") or "").startswith("/"):
        text = "must be an absolute path"
        errors.append(FieldError.invalid(f"{path}.path", source.get("path") or "", text))
    return errors


def _csi_errors(source: Object, path: str) -> Errors:
    errors = driver_errors(source.get("driver") or "", f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name") or ""
        if not name:
            errors.append(FieldError.required(f"{path}.nodePublishSecretRef.name"))
        else:
            errors += each(f"{path}.name", name, dns1123_subdomain(name))
    return errors


def driver_errors(driver: str, path: str) -> Errors:
    """Refuse what names no CSI driver."""
    errors: Errors = []
    if not driver:
        errors.append(FieldError.required(path))
    if len(driver) > 63:
        errors.append(FieldError.too_long(path, 63))
    return errors + each(path, driver, dns1123_subdomain(driver.lower()))


def _ephemeral_errors(source: Object, path: str, claim_errors: ClaimCheck) -> Errors:
    template = source.get("volumeClaimTemplate")
    where = f"{path}.volumeClaimTemplate"
    if template is None:
        return [FieldError.required(where)]
    metadata = template.get("metadata") or {}
    errors = annotation_errors(metadata.get("annotations") or {}, f"{where}.metadata.annotations")
    errors += label_errors(metadata.get("labels"), f"{where}.metadata.labels")
    for name, value in metadata.items():
        if value and name not in ("annotations", "labels"):
            errors.append(FieldError.forbidden(f"{where}.metadata.{name}", "cannot be set"))
    return errors + claim_errors(template.get("spec") or {}, f"{where}.spec")


_PROJECTIONS: dict[str, Callable[[Object, str], Errors]] = {
    "secret": _keyed_files("name"),
    "configMap": _keyed_files("name"),
    "downwardAPI": _downward_errors,
    "serviceAccountToken": _token_errors,
    "clusterTrustBundle": _trust_bundle_errors,
}

_SOURCES: dict[str, Callable[[Object, str], Errors]] = {
    "emptyDir": _empty_dir_errors,
    "hostPath": _host_path_errors,
    "secret": _keyed_files("secretName"),
    "configMap": _keyed_files("name"),
    "downwardAPI": _downward_errors,
    "projected": _projected_errors,
    "persistentVolumeClaim": _requiring("claimName"),
    "nfs": _nfs_errors,
    "csi": _csi_errors,
    "iscsi": _requiring("targetPortal", "iqn"),
    "gitRepo": _requiring("repository"),
    "gcePersistentDisk": _requiring("pdName"),
    "awsElasticBlockStore": _requiring("volumeID"),
    "glusterfs": _requiring("endpoints", "path"),
    "rbd": _requiring("monitors", "image"),
    "cinder": _requiring("volumeID"),
    "cephfs": _requiring("monitors"),
    "quobyte": _requiring("registry", "volume"),
    "flexVolume": _requiring("driver"),
    "azureFile": _requiring("secretName", "shareName"),
    "azureDisk": _requiring("diskName", "diskURI"),
    "vsphereVolume": _requiring("volumePath"),
    "photonPersistentDisk": _requiring("pdID"),
    "portworxVolume": _requiring("volumeID"),
    "scaleIO": _requiring("gateway", "system", "volumeName"),
    "image": _requiring("reference"),
}
