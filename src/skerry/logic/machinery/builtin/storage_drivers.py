"""What storage drivers write of themselves, of nodes, of volumes attached and of room left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import canonical, quantity_errors
from skerry.logic.machinery.builtin.likeness import same
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    each,
    immutable,
    member,
    non_negative,
)
from skerry.logic.machinery.builtin.volumes import driver_errors
from skerry.logic.machinery.names import dns1123_subdomain, qualified_name
from skerry.logic.machinery.selectors import label_selector_errors

_GROUP = "storage.k8s.io"
_MAX_NODE_ID = 256
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_Raw = Mapping[str, Any]


def _default_driver(driver: Object) -> None:
    spec = child(driver, "spec")
    absent(spec, "attachRequired", True)
    for field in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        absent(spec, field, False)
    absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _validate_driver_update(new: Object, old: Object) -> Errors:
    return [
        error
        # Kubernetes' word for the first is not the field's name.
        for field, path in (
            ("attachRequired", "spec.attachedRequired"),
            ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
        )
        for error in immutable(member(new, "spec", field), member(old, "spec", field), path)
    ]


def _validate_node(node: Object) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for number, driver in enumerate(member(node, "spec", "drivers") or ()):
        path = f"spec.drivers[{number}]"
        errors += _node_driver_errors(driver or {}, path)
        name = str((driver or {}).get("name") or "")
        if name in seen:
            errors.append(FieldError.duplicate(f"{path}.name", name))
        seen.add(name)
    return errors


def _node_driver_errors(driver: _Raw, path: str) -> Errors:
    errors = driver_errors(driver.get("name") or "", f"{path}.name")
    node = driver.get("nodeID") or ""
    if not node:
        errors.append(FieldError.required(f"{path}.nodeID"))
    if len(node) > _MAX_NODE_ID:
        text = f"must be {_MAX_NODE_ID} characters or less"
        errors.append(FieldError.invalid(f"{path}.nodeID", node, text))
    count = member(driver, "allocatable", "count")
    errors += non_negative(count, f"{path}.allocatable.count")
    seen: set[str] = set()
    for key in driver.get("topologyKeys") or ():
        if not key:
            errors.append(FieldError.required(path))
        if key in seen:
            errors.append(FieldError.duplicate(path, key))
        seen.add(key)
        errors += each(path, key or "", qualified_name(key or ""))
    return errors


def _validate_node_update(new: Object, old: Object) -> Errors:
    errors = _validate_node(new)
    before = {(known or {}).get("name"): known for known in member(old, "spec", "drivers") or ()}
    for driver in member(new, "spec", "drivers") or ():
        known = before.get((driver or {}).get("name"))
        if known is not None and not same(driver, known):
            errors.append(FieldError.invalid("CSINodeDriver", driver, "field is immutable"))
    return errors


def _default_capacity(capacity: Object) -> None:
    canonical(capacity, "capacity")
    canonical(capacity, "maximumVolumeSize")


def _validate_capacity(capacity: Object) -> Errors:
    errors = label_selector_errors(capacity.get("nodeTopology"), "nodeTopology")
    name = capacity.get("storageClassName") or ""
    errors += each("storageClassName", name, dns1123_subdomain(name))
    if capacity.get("capacity") is not None:
        errors += quantity_errors(capacity["capacity"], "capacity")
    return errors


def _validate_capacity_update(new: Object, old: Object) -> Errors:
    return [
        error
        for field in ("nodeTopology", "storageClassName")
        for error in immutable(new.get(field), old.get(field), field)
    ]


def _not_attached(attachment: Object) -> None:
    absent(child(attachment, "status"), "attached", False)


def _validate_attachment(attachment: Object) -> Errors:
    spec = attachment.get("spec") or {}
    attacher = spec.get("attacher") or ""
    errors = [] if attacher else [FieldError.required("spec.attacher")]
    errors += _source_errors(spec.get("source") or {})
    node = spec.get("nodeName") or ""
    errors += each("spec.nodeName", node, dns1123_subdomain(node))
    errors += driver_errors(attacher, "spec.attacher")
    volume = member(spec, "source", "persistentVolumeName")
    if volume is not None:
        errors += each("spec.source.persistentVolumeName", volume, dns1123_subdomain(volume))
    return errors


def _source_errors(source: _Raw) -> Errors:
    inline, volume = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    path = "spec.source"
    if inline is None and volume is None:
        return [FieldError.required(path, _ONE_SOURCE)]
    if inline is not None and volume is not None:
        return [FieldError.forbidden(path, _ONE_SOURCE)]
    if volume == "":
        text = "must specify non empty persistentVolumeName"
        return [FieldError.required(f"{path}.persistentVolumeName", text)]
    return []


def _validate_attachment_update(new: Object, old: Object) -> Errors:
    return _validate_attachment(new) + immutable(new.get("spec"), old.get("spec"), "spec")


RULES: RuleTable = {
    GroupResource(_GROUP, "csidrivers"): Rules(
        default=_default_driver,
        validate_update=_validate_driver_update,
        counts_generation=False,
    ),
    GroupResource(_GROUP, "csinodes"): Rules(
        validate_create=_validate_node,
        validate_update=_validate_node_update,
        counts_generation=False,
    ),
    GroupResource(_GROUP, "csistoragecapacities"): Rules(
        default=_default_capacity,
        validate_create=_validate_capacity,
        validate_update=_validate_capacity_update,
        counts_generation=False,
    ),
    GroupResource(_GROUP, "volumeattachments"): Rules(
        default=_not_attached,
        prepare_create=_not_attached,
        validate_create=_validate_attachment,
        validate_update=_validate_attachment_update,
        counts_generation=False,
    ),
}
