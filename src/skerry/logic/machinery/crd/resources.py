"""The resources a CustomResourceDefinition defines, one for each served version.

Everything dear (compiled schemas, rules, columns) hangs on the definition's content, not on the
definition: thousands of workspaces with the same definition share one compiled form, found by
the hash of its spec.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from skerry.api.errors import FieldError
from skerry.api.kinds import ALL_VERBS, GroupVersionKind, ResourceInfo, Subresource
from skerry.api.objects import Object, Raw
from skerry.api.schema import Definitions, Schema
from skerry.kit.caching import WeightedCache
from skerry.logic.machinery import names
from skerry.logic.machinery.api_versions import priority
from skerry.logic.machinery.builtin.definitions import common_descriptions
from skerry.logic.machinery.builtin.metadata import finalizer_warnings
from skerry.logic.machinery.cel import check_rules, rules_of
from skerry.logic.machinery.crd import definition
from skerry.logic.machinery.crd.columns import columns_of, find_of, plain_text
from skerry.logic.machinery.crd.conversion import webhook_of
from skerry.logic.machinery.crd.definition import mapping, schema_of, sequence, spec_of, text
from skerry.logic.machinery.crd.jsonpath import Find
from skerry.logic.machinery.patch.values import go_type
from skerry.logic.machinery.resource import Family, Resource, Scale
from skerry.logic.machinery.schema import (
    apply_defaults,
    validate,
    validate_update,
)

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_MAX_REPLICAS = 2**31 - 1
_SCALE_KIND = GroupVersionKind("autoscaling", "v1", "Scale")
# Errors after which rules would only stumble over the same thing.
_BLOCKING = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
_UNCHECKED = FieldError.invalid(
    "<nil>",
    "null",
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
# Bytes of definitions; built, they take about ten times as much. Those that are served are kept by
# the clusters that serve them: what is kept here lets clusters share, and is built again when
# nobody has asked for it lately.
_KEPT: Final = WeightedCache[tuple[bytes, int], tuple[Definitions | None, list[Resource]]](8 << 20)


def resources_of(crd: Raw, definitions: Definitions | None = None) -> list[Resource]:
    """Return the resources *crd* serves, the preferred version first.

    With *definitions* (the built-in ones) metadata is described by ObjectMeta; without, anything
    goes in it. Definitions with equal specs share the result.
    """
    content = _content(crd)
    key = (hashlib.blake2b(content, digest_size=16).digest(), id(definitions))
    found = _KEPT.get(key)
    if found is not None:
        return found[1]
    made = _built(crd, definitions)
    # Keeping the definitions keeps their identity from being reused.
    _KEPT.put(key, (definitions, made), len(content))
    return made


def _content(crd: Raw) -> bytes:
    parts = [spec_of(crd), mapping(crd.get("status")).get("acceptedNames")]
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def _built(crd: Raw, definitions: Definitions | None) -> list[Resource]:
    versions = [version for version in definition.versions_of(crd) if version.get("served")]
    versions.sort(key=lambda version: priority(text(version.get("name"))))
    content = {"spec": spec_of(crd), "status": {"acceptedNames": _accepted(crd)}}
    family = Family("definition", content) if definitions is None else None
    webhook = webhook_of(crd)
    made = [replace(_resource(crd, version, definitions), family=family) for version in versions]
    if webhook is None:
        return made
    # No other process can call it.
    return [
        replace(resource, webhook=webhook, convert=webhook.convert, family=None)
        for resource in made
    ]


def _resource(crd: Raw, version: Raw, definitions: Definitions | None) -> Resource:
    info = _info(crd, version)
    own = schema_of(version)
    raw = own or {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    scale = _scale(version)
    rules = CustomRules(Schema(raw), scale)
    return Resource(
        info=info,
        schema=_served_schema(raw, info, definitions),
        storage_version=definition.storage_version(crd),
        default=rules.default,
        validate_create=rules.create,
        validate_update=rules.update,
        validate_status=rules.update_status,
        warnings=_warnings,
        deprecation=_deprecation(version, info),
        check_name=names.dns1123_subdomain,
        columns=columns_of(version),
        selectable_fields=_selectable(version),
        scale=scale,
        custom=True,
        since=0 if _may_fill(own) or len(definition.versions_of(crd)) > 1 else None,
    )


def _may_fill(schema: Any) -> bool:
    """Tell whether a schema may have defaults, without compiling it.

    Compiling is for whoever writes an object; that a definition is taken in must not take long.
    A property that is called ``default`` counts too, and costs a look in vain.
    """
    stack = [schema]
    while stack:
        value = stack.pop()
        if type(value) is dict:
            if "default" in value:
                return True
            stack += value.values()
        elif type(value) is list:
            stack += value
    return False


class CustomRules:
    """Defaulting and validation of one schema's objects."""

    __slots__ = ("_scale", "_schema")

    def __init__(self, schema: Schema, scale: Scale | None = None) -> None:
        self._schema = schema
        self._scale = scale

    def default(self, obj: Object) -> None:
        apply_defaults(self._schema, obj)

    def create(self, new: Object) -> list[FieldError]:
        errors = validate(self._schema, new)
        if self._scale is not None:
            errors += replicas_errors(new, self._scale.spec_replicas)
        return errors + self._rules(new, None, errors)

    def update(self, new: Object, old: Object) -> list[FieldError]:
        """Forgive what was wrong before and was not touched."""
        return self._changed(new, old, "" if self._scale is None else self._scale.spec_replicas)

    def update_status(self, new: Object, old: Object) -> list[FieldError]:
        """Judge a change of the status alone."""
        return self._changed(new, old, "" if self._scale is None else self._scale.status_replicas)

    def _changed(self, new: Object, old: Object, replicas: str) -> list[FieldError]:
        errors = validate_update(self._schema, new, old)
        if replicas:
            errors += replicas_errors(new, replicas)
        return errors + self._rules(new, old, errors)

    def _rules(
        self, new: Object, old: Object | None, errors: Sequence[FieldError]
    ) -> list[FieldError]:
        if any(error.type in _BLOCKING for error in errors):
            return [_UNCHECKED] if rules_of(self._schema) is not None else []
        return check_rules(self._schema, new, old)


def replicas_errors(obj: Object, path: str) -> list[FieldError]:
    """Refuse what a scale subresource could not show as a number of replicas."""
    node: Any = obj
    for name in path.split("."):
        if node is None:
            return []
        if not isinstance(node, dict):
            detail = f".{path} accessor error: {node} is of the type {go_type(node)}"
            detail += ", expected map[string]interface{}"
            return [FieldError.invalid(f".{path}", 0, detail)]
        node = node.get(name)
    if node is None:
        return []
    if type(node) is not int:
        detail = f".{path} accessor error: {node} is of the type {go_type(node)}, expected int64"
        return [FieldError.invalid(f".{path}", 0, detail)]
    if node < 0:
        return [FieldError.invalid(f".{path}", node, "should be a non-negative integer")]
    if node > _MAX_REPLICAS:
        detail = f"should be less than or equal to {_MAX_REPLICAS}"
        return [FieldError.invalid(f".{path}", node, detail)]
    return []


def _info(crd: Raw, version: Raw) -> ResourceInfo:
    wanted = {**definition.names_of(crd), **_accepted(crd)}
    group, name = text(spec_of(crd).get("group")), text(version.get("name"))
    kind = text(wanted.get("kind"))
    return ResourceInfo(
        group=group,
        version=name,
        resource=text(wanted.get("plural")),
        kind=kind,
        namespaced=spec_of(crd).get("scope") == "Namespaced",
        singular=text(wanted.get("singular")) or kind.lower(),
        list_kind=text(wanted.get("listKind")) or f"{kind}List",
        short_names=tuple(map(text, sequence(wanted.get("shortNames")))),
        categories=tuple(map(text, sequence(wanted.get("categories")))),
        verbs=ALL_VERBS,
        subresources=_subresources(version, GroupVersionKind(group, name, kind)),
    )


def _accepted(crd: Raw) -> Raw:
    """Return the names that were granted, where naming has run."""
    accepted = mapping(mapping(crd.get("status")).get("acceptedNames"))
    return accepted if accepted.get("kind") else {}


def _subresources(version: Raw, kind: GroupVersionKind) -> tuple[Subresource, ...]:
    found = mapping(version.get("subresources"))
    made = []
    if found.get("status") is not None:
        made.append(Subresource("status", kind, _SUBRESOURCE_VERBS))
    if found.get("scale") is not None:
        made.append(Subresource("scale", _SCALE_KIND, _SUBRESOURCE_VERBS))
    return tuple(made)


def _served_schema(raw: Raw, info: ResourceInfo, definitions: Definitions | None) -> Schema:
    """Return the schema as it is published: with apiVersion, kind and metadata in it."""
    metadata: Raw = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if definitions is not None and OBJECT_META in definitions.raw:
        metadata = {"$ref": f"#/$defs/{OBJECT_META}"}
    said = common_descriptions()
    properties = {
        **mapping(raw.get("properties")),
        "apiVersion": {"type": "string", "description": said["apiVersion"]},
        "kind": {"type": "string", "description": said["kind"]},
        "metadata": metadata,
    }
    published = {
        **raw,
        "properties": properties,
        "x-kubernetes-group-version-kind": [
            {"group": info.group, "kind": info.kind, "version": info.version}
        ],
    }
    return Schema(published, definitions)


def _warnings(obj: Object) -> Sequence[str]:
    """Warn of finalizers that anybody could call so."""
    finalizers = obj["metadata"].get("finalizers")
    return finalizer_warnings(finalizers) if finalizers else ()


def _deprecation(version: Raw, info: ResourceInfo) -> tuple[str, ...]:
    """Return the warning of a deprecated version, in its own words if it has some."""
    if not version.get("deprecated"):
        return ()
    given = text(version.get("deprecationWarning"))
    return (given or f"{info.group}/{info.version} {info.kind} is deprecated",)


def _selectable(version: Raw) -> dict[str, Callable[[Object], str]]:
    made: dict[str, Callable[[Object], str]] = {}
    for item in sequence(version.get("selectableFields")):
        path = text(mapping(item).get("jsonPath"))
        find = find_of(path)
        if find is not None:
            made[path.removeprefix(".")] = _selected(find)
    return made


def _selected(find: Find) -> Callable[[Object], str]:
    def select(obj: Object) -> str:
        found = find(obj)
        return plain_text(found[0]) if found and found[0] is not None else ""

    return select


def _scale(version: Raw) -> Scale | None:
    found = mapping(version.get("subresources")).get("scale")
    if not isinstance(found, dict):
        return None
    return Scale(
        text(found.get("specReplicasPath")).removeprefix("."),
        text(found.get("statusReplicasPath")).removeprefix("."),
        text(found.get("labelSelectorPath")).removeprefix("."),
    )
