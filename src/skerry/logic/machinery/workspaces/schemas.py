"""Between CustomResourceDefinitions and the schemas exports offer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final

import orjson

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.kit.caching import WeightedCache
from skerry.logic.machinery import crd
from skerry.logic.machinery.builtin import builtin_resources
from skerry.logic.machinery.builtin.workload_parts import count_errors
from skerry.logic.machinery.resource import Family, Resource
from skerry.logic.machinery.schema import validate
from skerry.logic.machinery.workspaces.conversions import compiled

# Schemas with this annotation are Kubernetes' own kinds: their form is known here and need not be
# carried along, a hundred kilobytes of it, in every schema object.
NATIVE = "skerry.io/native-kind"
_PREFIX = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# Of all kinds that have a field of such a name: numbers from 0.
_COUNTS: Final = (
    "replicas",
    "parallelism",
    "completions",
    "backoffLimit",
    "minReadySeconds",
    "progressDeadlineSeconds",
    "revisionHistoryLimit",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
)
_UNDOTTED = frozenset(
    {"admissionregistration", "apps", "autoscaling", "batch", "extensions", "policy"}
)


def schema_object(definition: Mapping[str, Any], prefix: str) -> Object:
    """Return the APIResourceSchema that offers the type of a CustomResourceDefinition."""
    spec = definition["spec"]
    group, names = spec["group"], spec["names"]
    versions = []
    for version in spec["versions"]:
        converted = {key: value for key, value in version.items() if key != "schema"}
        converted["schema"] = version["schema"]["openAPIV3Schema"]
        versions.append(converted)
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": schema_name(prefix, names["plural"], group)},
        "spec": {"group": group, "names": names, "scope": spec["scope"], "versions": versions},
    }


def schema_name(prefix: str, plural: str, group: str) -> str:
    """Return the name an APIResourceSchema must have."""
    return f"{prefix}.{plural}.{group or 'core'}"


def native_schema_object(resource: Resource, prefix: str) -> Object:
    """Return the APIResourceSchema that offers one of Kubernetes' own kinds."""
    info = resource.info
    version: Object = {
        "name": info.version,
        "served": True,
        "storage": True,
        "schema": {
            "type": "object",
            "description": resource.schema.description,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "subresources": {},
    }
    if resource.has_status:
        version["subresources"]["status"] = {}
    if resource.scale is not None:
        version["subresources"]["scale"] = {
            "specReplicasPath": f".{resource.scale.spec_replicas}",
            "statusReplicasPath": f".{resource.scale.status_replicas}",
        }
    names: Object = {
        "kind": info.kind,
        "listKind": info.list_kind or f"{info.kind}List",
        "plural": info.resource,
        "singular": info.singular or info.kind.lower(),
    }
    if info.short_names:
        names["shortNames"] = list(info.short_names)
    if info.categories:
        names["categories"] = list(info.categories)
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {
            "name": schema_name(prefix, info.resource, info.group),
            "annotations": {NATIVE: "true"},
        },
        "spec": {
            "group": info.group,
            "names": names,
            "scope": "Namespaced" if info.namespaced else "Cluster",
            "versions": [version],
        },
    }


def resources_of(
    schema: Mapping[str, Any], identity: str, conversion: Mapping[str, Any] | None = None
) -> Sequence[Resource]:
    """Return the types an APIResourceSchema brings when bound under *identity*.

    Several versions are converted as the APIConversion *conversion* says; without one they differ
    in their names only. The work is done once per content, however many workspaces bind it.
    """
    annotations = (schema.get("metadata") or {}).get("annotations") or {}
    if NATIVE in annotations:
        spec = schema["spec"]
        family = Family("native", {"group": spec["group"], "plural": spec["names"]["plural"]})
        return tuple(
            replace(resource, identity=identity, family=family)
            for resource in _native(spec["group"], spec["names"]["plural"])
        )
    words = b"" if conversion is None else orjson.dumps(conversion.get("spec") or {})
    served = _converting(orjson.dumps(schema["spec"]), words)
    family = Family("schema", {"schema": schema["spec"], "conversion": conversion})
    return tuple(replace(resource, identity=identity, family=family) for resource in served)


def native_resources(group: str, plural: str) -> Sequence[Resource]:
    """Return one of Kubernetes' own types as a hub serves it."""
    return _native(group, plural)


def schema_errors(schema: Mapping[str, Any]) -> list[FieldError]:
    """Return what keeps an APIResourceSchema from being served, or from being called as it is."""
    metadata, spec = schema["metadata"], schema.get("spec")
    if not spec:
        return [FieldError.required("spec")]
    errors = _name_errors(metadata.get("name", ""), spec)
    group, annotations = spec["group"], metadata.get("annotations") or {}
    if NATIVE in annotations:
        return errors
    if group == "core":
        detail = "must be empty string for the core group"
        errors.append(FieldError.invalid("spec.group", group, detail))
    definition = _as_definition(spec)
    definition["metadata"]["annotations"] = annotations
    own = not group or group in _UNDOTTED
    return errors + [
        FieldError(error.type, _schema_path(error.field), error.message)
        for error in crd.validate_crd(definition)
        # Kubernetes' own groups may be offered too, and theirs need no dot. There is no status.
        if not (own and error.field in ("spec.group", "metadata.name"))
        and not error.field.startswith("status.")
    ]


def _name_errors(name: str, spec: Mapping[str, Any]) -> list[FieldError]:
    plural = (spec.get("names") or {}).get("plural", "")
    ending = f".{plural}.{spec['group'] or 'core'}"
    if not name.endswith(ending):
        return [FieldError.invalid("metadata.name", name, f"must end in {ending}")]
    if not _PREFIX.fullmatch(name.removesuffix(ending)):
        detail = f"must match ^{_PREFIX.pattern}$ in front of {ending}"
        return [FieldError.invalid("metadata.name", name, detail)]
    return []


def _schema_path(path: str) -> str:
    """Return where in a schema object stands what a definition has at *path*."""
    whole = path.replace("spec.validation.openAPIV3Schema", "spec.versions[0].schema")
    return whole.replace("].schema.openAPIV3Schema", "].schema")


def conversion_errors(schema: Mapping[str, Any], conversion: Mapping[str, Any]) -> list[FieldError]:
    """Return what is wrong with an APIConversion of a schema."""
    served = _compiled(orjson.dumps(schema["spec"]))
    return compiled(conversion, schema["spec"]["group"], _by_version(served))[1]


def _by_version(served: Sequence[Resource]) -> dict[str, Schema]:
    return {resource.info.version: resource.schema for resource in served}


# As with definitions: what is bound somewhere is kept there.
_KEPT: Final = WeightedCache[tuple[bytes, bytes], tuple[Resource, ...]](8 << 20)


def _converting(spec: bytes, conversion: bytes) -> tuple[Resource, ...]:
    """Return the types of a schema; those that are not stored as they are know how to convert."""
    key = (_digest(spec), _digest(conversion))
    found = _KEPT.get(key)
    if found is None:
        found = _built(spec, conversion)
        _KEPT.put(key, found, len(spec) + len(conversion))
    return found


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=16).digest()


def _built(spec: bytes, conversion: bytes) -> tuple[Resource, ...]:
    served = _compiled(spec)
    if not conversion:
        return served
    group = orjson.loads(spec)["group"]
    ways, errors = compiled({"spec": orjson.loads(conversion)}, group, _by_version(served))
    if errors:
        # Admission has refused it, so the schema is another's by now.
        return served
    return tuple(
        resource
        if resource.info.version == resource.storage_version
        else replace(resource, convert=ways.convert)
        for resource in served
    )


def _compiled(spec: bytes) -> tuple[Resource, ...]:
    return tuple(crd.resources_of(_as_definition(orjson.loads(spec))))


def _as_definition(spec: Mapping[str, Any]) -> Object:
    """Return the CustomResourceDefinition a schema's spec amounts to."""
    group, names = spec["group"], spec["names"]
    versions = [
        {**version, "schema": {"openAPIV3Schema": version["schema"]}}
        for version in spec["versions"]
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {**spec, "versions": versions},
    }


@lru_cache(maxsize=256)
def _native(group: str, plural: str) -> tuple[Resource, ...]:
    """Return a built-in type as a hub serves it: of the right form, but inert.

    Nothing is defaulted, prepared or allocated: an object goes to the edge as it was written.
    """
    wanted = GroupResource(group, plural)
    return tuple(
        Resource(
            info=replace(
                native.info,
                subresources=tuple(
                    sub for sub in native.info.subresources if sub.name in ("status", "scale")
                ),
            ),
            schema=native.schema,
            storage_version=native.storage_version,
            validate_create=partial(_of_form, native.schema),
            validate_update=partial(_still_of_form, native.schema),
            check_name=native.check_name,
            counts_generation=True,
            columns=native.columns,
            selectable_fields=native.selectable_fields,
            scale=native.scale,
        )
        for native in builtin_resources()
        if native.info.group_resource == wanted
    )


def _of_form(schema: Schema, obj: Object) -> list[FieldError]:
    return validate(schema, obj) or _below_zero(obj, {})


def _still_of_form(schema: Schema, obj: Object, old: Object) -> list[FieldError]:
    return validate(schema, obj) or _below_zero(obj, old)


def _below_zero(obj: Object, old: Object) -> list[FieldError]:
    """Refuse counts that no cluster takes where they are written first, not at every edge.

    What was stored before this was looked at may stay.
    """
    spec, before = obj.get("spec"), old.get("spec")
    if not isinstance(spec, dict):
        return []
    kept = before if isinstance(before, dict) else {}
    return count_errors(spec, [name for name in _COUNTS if spec.get(name) != kept.get(name)])
