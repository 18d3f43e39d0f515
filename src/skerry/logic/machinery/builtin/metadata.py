"""The rules of ObjectMeta, the same for every kind, built in or custom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from skerry.api.errors import FieldError, shown
from skerry.api.kinds import GroupResource, GroupVersion
from skerry.api.objects import Object
from skerry.logic.machinery.apply.managed import MAX_ENTRIES
from skerry.logic.machinery.builtin.rules import Errors, each, immutable, non_negative
from skerry.logic.machinery.names import dns1123_label, qualified_name
from skerry.logic.machinery.selectors import label_errors

MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
# Selectors, garbage collection and field managers go through all of these at each change of an
# object, in the server and in every program that follows it. Real objects have some dozens. An
# object that has more, stored before there was a limit, may keep as many as it has.
MAX_LABELS: Final = 1000
MAX_ANNOTATIONS: Final = 5000
MAX_OWNERS: Final = 1000
MAX_FINALIZERS: Final = 100
MAX_MANAGER_LENGTH: Final = 128
MAX_SUBRESOURCE_LENGTH: Final = 256
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_FIXED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_CONFLICTS = "to avoid accidental conflicts with other finalizer writers"
_STANDARD_FINALIZERS = frozenset({"kubernetes", _ORPHAN, _FOREGROUND})
# Groups whose kinds take finalizers of any name; so do the Events of the core group.
_LAX_GROUPS = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "policy",
    }
)
_MANAGED_OPERATIONS = ("Apply", "Update")


def validate_metadata(
    obj: Object,
    namespaced: bool,
    check_name: Callable[[str], Sequence[str]],
    old: Object | None = None,
) -> Errors:
    """Return what is wrong with an object's metadata on create, or on update from *old*.

    The name must have been generated already. On update the name is not checked again: an
    object whose name a newer rule would refuse can still be changed.
    """
    metadata: Mapping[str, Any] = obj.get("metadata") or {}
    if old is None:
        errors = _identity_errors(metadata, namespaced, check_name)
        if finalizers := metadata.get("finalizers"):
            errors += _finalizer_errors(finalizers)
    else:
        errors = _change_errors(metadata, old.get("metadata") or {})
    for name, (limit, check) in _MEMBERS.items():
        members = metadata.get(name)
        if not members:
            continue
        if len(members) > limit and len(members) > _former_count(old, name):
            errors.append(FieldError.too_many(f"metadata.{name}", len(members), limit))
        elif check is not None:
            errors += check(members)
    return errors


def _former_count(old: Object | None, name: str) -> int:
    return 0 if old is None else len((old.get("metadata") or {}).get(name) or ())


def _identity_errors(
    metadata: Mapping[str, Any], namespaced: bool, check_name: Callable[[str], Sequence[str]]
) -> Errors:
    errors: Errors = []
    prefix, name = metadata.get("generateName"), metadata.get("name")
    if prefix:
        # A prefix may end where a name may not: judge it as if its suffix had come.
        masked = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        errors += each("metadata.generateName", prefix, check_name(masked))
    if not name:
        errors.append(FieldError.required("metadata.name", "name or generateName is required"))
    elif wrong := check_name(name):
        errors += each("metadata.name", name, wrong)
    errors += _namespace_errors(metadata.get("namespace") or "", namespaced)
    if generation := metadata.get("generation"):
        errors += non_negative(generation, "metadata.generation")
    return errors


def _namespace_errors(namespace: str, namespaced: bool) -> Errors:
    if not namespaced:
        text = "not allowed on this type"
        return [FieldError.forbidden("metadata.namespace", text)] if namespace else []
    if not namespace:
        return [FieldError.required("metadata.namespace")]
    wrong = dns1123_label(namespace)
    return each("metadata.namespace", namespace, wrong) if wrong else []


def annotation_errors(annotations: Mapping[str, str], path: str = "metadata.annotations") -> Errors:
    """Return what is wrong with annotations: keys without regard to case, and total size."""
    errors: Errors = []
    size = 0
    for key, value in annotations.items():
        errors += each(path, key, qualified_name(key.lower()))
        size += _size(key) + _size(value or "")
    if size > MAX_ANNOTATIONS_BYTES:
        errors.append(FieldError.too_long(path, MAX_ANNOTATIONS_BYTES))
    return errors


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _owner_errors(owners: Sequence[Mapping[str, Any]]) -> Errors:
    path = "metadata.ownerReferences"
    errors: Errors = []
    for owner in owners:
        errors += _one_owner_errors(owner, path)
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        # The first two say enough; each error shows every reference.
        first, second = (f"{o.get('kind', '')}/{o.get('name', '')}" for o in controllers[:2])
        text = (
            "Only one reference can have Controller set to true. "
            f'Found "true" in references for {first} and {second}'
        )
        errors.append(FieldError.invalid(path, owners, text))
    return errors


def _one_owner_errors(owner: Mapping[str, Any], path: str) -> Errors:
    api_version = owner.get("apiVersion") or ""
    group, version = GroupVersion.parse(api_version)
    errors = (
        [] if version else each(f"{path}.apiVersion", api_version, ["version must not be empty"])
    )
    for field in ("kind", "name", "uid"):
        if not owner.get(field):
            errors += each(f"{path}.{field}", "", [f"{field} must not be empty"])
    if (group, version, owner.get("kind")) == ("", "v1", "Event"):
        text = "/v1, Kind=Event is disallowed from being an owner"
        errors.append(FieldError.invalid(path, owner, text))
    return errors


def _finalizer_errors(finalizers: Sequence[str]) -> Errors:
    path = "metadata.finalizers"
    errors: Errors = []
    for finalizer in finalizers:
        errors += each(path, finalizer, qualified_name(finalizer))
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        text = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        errors.append(FieldError.invalid(path, finalizers, text))
    return errors


def takes_any_finalizer(kind: GroupResource) -> bool:
    """Tell whether objects of a built-in kind may have finalizers of any name."""
    return kind.group in _LAX_GROUPS or kind == GroupResource("", "events")


def finalizer_warnings(finalizers: Sequence[str]) -> list[str]:
    """Return warnings of *finalizers* that are neither qualified by a domain nor Kubernetes' own.

    For custom kinds, of which such ones are taken.
    """
    warnings: list[str] = []
    for name in finalizers:
        found = qualified_name(name)
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            found.append(f"prefer a domain-qualified finalizer name{path} {_CONFLICTS}")
        warnings += [f"metadata.finalizers: {shown(name)}: {text}" for text in found]
    return warnings


def unqualified_finalizer_errors(finalizers: Sequence[str]) -> Errors:
    """Return those *finalizers* that are neither qualified by a domain nor Kubernetes' own.

    For the kinds of most built-in groups only; ``validate_metadata`` is for all.
    """
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        FieldError.invalid(f"metadata.finalizers[{number}]", name, text)
        for number, name in enumerate(finalizers)
        if "/" not in name and name not in _STANDARD_FINALIZERS and not qualified_name(name)
    ]


def _change_errors(new: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    errors: Errors = []
    if old.get("deletionTimestamp"):
        errors += _added_finalizer_errors(new.get("finalizers"), old.get("finalizers"))
    if not new.get("resourceVersion"):
        text = "must be specified for an update"
        errors.append(FieldError.invalid("metadata.resourceVersion", "", text))
    if (new.get("generation") or 0) < (old.get("generation") or 0):
        generation = new.get("generation") or 0
        text = "must not be decremented"
        errors.append(FieldError.invalid("metadata.generation", generation, text))
    for field in _FIXED:
        if new.get(field) != old.get(field):
            errors += immutable(new.get(field), old.get(field), f"metadata.{field}")
    return errors


def _added_finalizer_errors(new: Sequence[str] | None, old: Sequence[str] | None) -> Errors:
    added = sorted(set(new or ()) - set(old or ()))
    if not added:
        return []
    listed = ", ".join(f'"{name}"' for name in added)
    text = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{listed}}}"
    )
    return [FieldError.forbidden("metadata.finalizers", text)]


def _is_managed(entry: Mapping[str, Any]) -> bool:
    """Tell whether nothing is wrong with an entry at first sight, as with those we make."""
    manager = entry.get("manager") or ""
    return (
        entry.get("operation") in _MANAGED_OPERATIONS
        and entry.get("fieldsType") == "FieldsV1"
        and not entry.get("subresource")
        and manager.isascii()
        and manager.isprintable()
        and len(manager) <= MAX_MANAGER_LENGTH
    )


def _managed_errors(managed: Sequence[Mapping[str, Any]]) -> Errors:
    errors: Errors = []
    for index, entry in enumerate(managed):
        if _is_managed(entry):
            continue
        path = f"metadata.managedFields[{index}]"
        operation = entry.get("operation") or ""
        if operation not in _MANAGED_OPERATIONS:
            text = "must be `Apply` or `Update`"
            errors.append(FieldError.invalid(f"{path}.operation", operation, text))
        fields_type = entry.get("fieldsType") or ""
        if fields_type and fields_type != "FieldsV1":
            text = "must be `FieldsV1`"
            errors.append(FieldError.invalid(f"{path}.fieldsType", fields_type, text))
        errors += field_manager_errors(entry.get("manager") or "", f"{path}.manager")
        if _size(entry.get("subresource") or "") > MAX_SUBRESOURCE_LENGTH:
            errors.append(FieldError.too_long(f"{path}.subresource", MAX_SUBRESOURCE_LENGTH))
    return errors


def field_manager_errors(manager: str, path: str = "fieldManager") -> Errors:
    """Return what is wrong with the name of a field manager; empty is fine here."""
    errors: Errors = []
    if _size(manager) > MAX_MANAGER_LENGTH:
        return [FieldError.too_long(path, MAX_MANAGER_LENGTH)]
    if not manager.isprintable():
        for position, char in enumerate(manager):
            if not char.isprintable():
                text = f"invalid character U+{ord(char):04X} (at position {position})"
                errors.append(FieldError.invalid(path, manager, text))
    return errors


# What is counted and checked of metadata, in the order in which errors are reported.
_MEMBERS: Final[Mapping[str, tuple[int, Callable[[Any], Errors] | None]]] = {
    "finalizers": (MAX_FINALIZERS, None),
    "labels": (MAX_LABELS, lambda labels: label_errors(labels, "metadata.labels")),
    "annotations": (MAX_ANNOTATIONS, annotation_errors),
    "ownerReferences": (MAX_OWNERS, _owner_errors),
    "managedFields": (MAX_ENTRIES, _managed_errors),
}
