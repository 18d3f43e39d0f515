"""Claims, volumes and storage classes."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import (
    canonical_list,
    parsed,
    positive_errors,
    quantity_errors,
)
from skerry.logic.machinery.builtin.likeness import difference_text, same
from skerry.logic.machinery.builtin.pod_defaults import default_claim_spec
from skerry.logic.machinery.builtin.pod_scheduling import node_selector_errors
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    each,
    immutable,
    member,
    one_of,
    text_at,
    unsupported,
)
from skerry.logic.machinery.names import dns1123_label, dns1123_subdomain, qualified_name
from skerry.logic.machinery.quantity import Quantity, QuantityError
from skerry.logic.machinery.selectors import label_selector_errors

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_RECLAIM = ("Delete", "Recycle", "Retain")
_VOLUME_MODES = ("Block", "Filesystem")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_MAX_PARAMETERS = 512
_MAX_PARAMETERS_BYTES = 256 * 1024
# Everything in a PersistentVolume's spec that is not the source of its bytes.
_NOT_A_SOURCE = frozenset(
    (
        "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity",
        "persistentVolumeReclaimPolicy", "storageClassName", "volumeAttributesClassName",
        "volumeMode",
    )
)  # fmt: skip


def _mode_errors(modes: Sequence[str], path: str, detail: str) -> Errors:
    errors: Errors = []
    if not modes:
        errors.append(FieldError.required(path, detail))
    errors += [unsupported(path, mode, _MODES) for mode in modes if mode not in _MODES]
    known = {mode for mode in modes if mode in _MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        text = "may not use ReadWriteOncePod with other access modes"
        errors.append(FieldError.forbidden(path, text))
    return errors


def claim_spec_errors(spec: Object, path: str) -> Errors:
    """Return what is wrong with a claim for storage, standing alone or in a template."""
    modes = spec.get("accessModes") or ()
    errors = _mode_errors(modes, f"{path}.accessModes", "at least 1 access mode is required")
    errors += label_selector_errors(spec.get("selector"), f"{path}.selector")
    size = member(spec, "resources", "requests", "storage")
    where = f"{path}.resources[storage]"
    errors += [FieldError.required(where)] if size is None else positive_errors(size, where)
    storage_class, mode = spec.get("storageClassName"), spec.get("volumeMode")
    if storage_class:
        errors += each(f"{path}.storageClassName", storage_class, dns1123_subdomain(storage_class))
    if mode is not None and mode not in _VOLUME_MODES:
        errors.append(unsupported(f"{path}.volumeMode", mode, _VOLUME_MODES))
    return errors + _source_errors(spec, path)


def _source_errors(spec: Object, path: str) -> Errors:
    errors: Errors = []
    for field in ("dataSource", "dataSourceRef"):
        if spec.get(field) is not None:
            errors += _reference_errors(spec[field], f"{path}.{field}")
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return errors
    if reference.get("namespace"):
        text = "may not be specified when dataSourceRef.namespace is specified"
        errors.append(FieldError.invalid(path, f"{path}.dataSource", text))
    elif any(source.get(f) != reference.get(f) for f in ("apiGroup", "kind", "name")):
        text = "must match dataSourceRef"
        errors.append(FieldError.invalid(path, f"{path}.dataSource", text))
    return errors


def _reference_errors(reference: Object, path: str) -> Errors:
    errors = [FieldError.required(f"{path}.{f}") for f in ("name", "kind") if not reference.get(f)]
    group, kind = reference.get("apiGroup") or "", reference.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(FieldError.invalid(path, kind, text))
    if group:
        errors += each(f"{path}.apiGroup", group, dns1123_subdomain(group))
    namespace = reference.get("namespace")
    if namespace:
        errors += each(f"{path}.namespace", namespace, dns1123_label(namespace))
    return errors


def _default_claim(claim: Object) -> None:
    default_claim_spec(child(claim, "spec"))
    _copy_data_source(claim["spec"])
    status = child(claim, "status")
    absent(status, "phase", "Pending")
    canonical_list(status, "capacity")


def _copy_data_source(spec: Object) -> None:
    """Keep the two ways to name a data source in step, as far as the older one can follow."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)


def _pending(obj: Object) -> None:
    obj["status"] = {"phase": "Pending"}


def _begin_volume(volume: Object) -> None:
    since = member(volume, "metadata", "creationTimestamp")
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": since}


def _validate_claim(claim: Object) -> Errors:
    return claim_spec_errors(claim.get("spec") or {}, "spec")


def _validate_claim_update(new: Object, old: Object) -> Errors:
    errors = _validate_claim(new)
    spec, former = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    if not former.get("volumeName"):
        former["volumeName"] = spec.get("volumeName")
    if former.get("storageClassName") is None:
        former["storageClassName"] = spec.get("storageClassName")
    if member(new, "status", "phase") == "Bound":
        spec["resources"] = former.get("resources")
        if spec.get("volumeAttributesClassName") is not None:
            spec["volumeAttributesClassName"] = former.get("volumeAttributesClassName")
    if not same(spec, former):
        text = (
            "spec is immutable after creation except resources.requests and "
            f"volumeAttributesClassName for bound claims\n{difference_text(former, spec, 'spec')}"
        )
        errors.append(FieldError.forbidden("spec", text))
    errors += _shrinking_errors(new, old)
    return errors + immutable(
        member(new, "spec", "volumeMode"), member(old, "spec", "volumeMode"), "volumeMode"
    )


def _shrinking_errors(new: Object, old: Object) -> Errors:
    size, former = (
        _size(new, "spec", "resources", "requests"),
        _size(old, "spec", "resources", "requests"),
    )
    if size < former and size <= _size(old, "status", "capacity"):
        text = "field can not be less than status.capacity"
        return [FieldError.forbidden("spec.resources.requests.storage", text)]
    return []


def _size(obj: Object, *path: str) -> Quantity:
    try:
        return parsed(member(obj, *path, "storage") or "0")
    except QuantityError:
        return Quantity(0)


def _validate_claim_status(new: Object, _: Object) -> Errors:
    errors: Errors = []
    for resource, value in (member(new, "status", "capacity") or {}).items():
        errors += quantity_errors(value, f"status.capacity[{resource}]")
    return errors


def _default_volume(volume: Object) -> None:
    spec = child(volume, "spec")
    absent(spec, "persistentVolumeReclaimPolicy", "Retain")
    absent(spec, "volumeMode", "Filesystem")
    canonical_list(spec, "capacity")
    if spec.get("hostPath") is not None:
        absent(spec["hostPath"], "type", "")
    absent(child(volume, "status"), "phase", "Pending")


def _sources(spec: Object) -> Object:
    return {k: v for k, v in spec.items() if k not in _NOT_A_SOURCE and v is not None}


def _validate_volume(volume: Object) -> Errors:
    spec = volume.get("spec") or {}
    errors = _mode_errors(spec.get("accessModes") or (), "spec.accessModes", "")
    capacity = spec.get("capacity") or {}
    if not capacity:
        errors.append(FieldError.required("spec.capacity"))
    if list(capacity) != ["storage"]:
        errors.append(unsupported("spec.capacity", capacity, ("storage",)))
    for resource, value in capacity.items():
        errors += positive_errors(value, f"spec.capacity[{resource}]")
    errors += one_of(
        spec.get("persistentVolumeReclaimPolicy"), "spec.persistentVolumeReclaimPolicy", _RECLAIM
    )
    if member(spec, "nodeAffinity", "required") is not None:
        where = "spec.nodeAffinity.required"
        errors += node_selector_errors(spec["nodeAffinity"]["required"], where)
    return errors + _volume_source_errors(spec) + _volume_class_errors(spec)


def _volume_source_errors(spec: Object) -> Errors:
    sources = list(_sources(spec))
    if not sources:
        return [FieldError.required("spec", "must specify a volume type")]
    text = "may not specify more than 1 volume type"
    errors = [FieldError.forbidden(f"spec.{name}", text) for name in sources[1:]]
    host_path = member(spec, "hostPath", "path")
    if sources[0] == "hostPath" and not host_path:
        errors.append(FieldError.required("spec.hostPath.path"))
    if sources[0] == "local" and not spec.get("nodeAffinity"):
        text = "Local volume requires node affinity"
        errors.append(FieldError.required("metadata.annotations", text))
    if host_path == "/" and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(FieldError.forbidden("spec.persistentVolumeReclaimPolicy", text))
    return errors


def _volume_class_errors(spec: Object) -> Errors:
    errors: Errors = []
    name, mode = spec.get("storageClassName"), spec.get("volumeMode")
    if name:
        errors += each("spec.storageClassName", name, dns1123_subdomain(name))
    if mode is not None and mode not in _VOLUME_MODES:
        errors.append(unsupported("spec.volumeMode", mode, _VOLUME_MODES))
    return errors


def _validate_volume_update(new: Object, old: Object) -> Errors:
    errors = _validate_volume(new)
    spec, former = new.get("spec") or {}, old.get("spec") or {}
    if not same(_sources(spec), _sources(former)):
        text = "spec.persistentvolumesource is immutable after creation\n" + difference_text(
            _sources(former), _sources(spec), "spec"
        )
        errors.append(FieldError.forbidden("spec.persistentvolumesource", text))
    errors += immutable(spec.get("volumeMode"), former.get("volumeMode"), "volumeMode")
    if former.get("nodeAffinity") is not None:
        errors += immutable(spec.get("nodeAffinity"), former["nodeAffinity"], "nodeAffinity")
    return errors


def _default_class(storage_class: Object) -> None:
    absent(storage_class, "reclaimPolicy", "Delete")
    absent(storage_class, "volumeBindingMode", "Immediate")


def _validate_class(storage_class: Object) -> Errors:
    errors: Errors = []
    provisioner = storage_class.get("provisioner") or ""
    if not provisioner:
        errors.append(FieldError.required("provisioner"))
    else:
        errors += each("provisioner", provisioner.lower(), qualified_name(provisioner.lower()))
    errors += _parameter_errors(storage_class.get("parameters") or {})
    policy = storage_class.get("reclaimPolicy")
    if policy and policy not in ("Delete", "Retain"):
        errors.append(unsupported("reclaimPolicy", policy, ("Delete", "Retain")))
    mode = storage_class.get("volumeBindingMode")
    return errors + one_of(mode, "volumeBindingMode", _BINDING_MODES)


def _parameter_errors(parameters: Object) -> Errors:
    if len(parameters) > _MAX_PARAMETERS:
        return [FieldError.too_long("parameters", _MAX_PARAMETERS)]
    errors: Errors = []
    if "" in parameters:
        errors.append(FieldError.invalid("parameters", "", "field can not be empty."))
    if sum(len(k) + len(v or "") for k, v in parameters.items()) > _MAX_PARAMETERS_BYTES:
        errors.append(FieldError.too_long("parameters", _MAX_PARAMETERS_BYTES))
    return errors


def _validate_class_update(new: Object, old: Object) -> Errors:
    errors = [
        FieldError.forbidden(field, f"updates to {field} are forbidden.")
        for field in ("parameters", "provisioner", "reclaimPolicy")
        if (new.get(field) or None) != (old.get(field) or None)
    ]
    field = "volumeBindingMode"
    return errors + immutable(new.get(field), old.get(field), field)


RULES: RuleTable = {
    GroupResource("", "persistentvolumeclaims"): Rules(
        default=_default_claim,
        prepare_create=_pending,
        validate_create=_validate_claim,
        validate_update=_validate_claim_update,
        validate_status=_validate_claim_status,
        counts_generation=False,
        selectable_fields={"name": text_at("metadata", "name")},
    ),
    GroupResource("", "persistentvolumes"): Rules(
        default=_default_volume,
        prepare_create=_begin_volume,
        validate_create=_validate_volume,
        validate_update=_validate_volume_update,
        counts_generation=False,
        selectable_fields={"name": text_at("metadata", "name")},
    ),
    GroupResource("storage.k8s.io", "storageclasses"): Rules(
        default=_default_class,
        validate_create=_validate_class,
        validate_update=_validate_class_update,
        counts_generation=False,
    ),
}
