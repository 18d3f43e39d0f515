"""Schemas in the notation of an OpenAPI document.

Built-in definitions come in JSON Schema's notation (``["string", "null"]`` for optional fields,
references into ``$defs``) and are turned back to Kubernetes' own; custom kinds come with the
structural schema of their CustomResourceDefinition and get ``apiVersion``, ``kind`` and
``metadata`` as every object has them. OpenAPI v2 knows less than v3: what it cannot say of a
custom kind is left out, because a client that validates by half a rule would refuse good objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skerry.api.kinds import GroupVersionKind
from skerry.api.schema import RawSchema
from skerry.logic.machinery.builtin.definitions import common_descriptions
from skerry.logic.machinery.openapi.names import META, definition_of, list_definition_of
from skerry.logic.machinery.resource import Resource

_OBJECT_META = f"{META}.ObjectMeta"
_LIST_META = f"{META}.ListMeta"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"


@dataclass(frozen=True, slots=True)
class Notation:
    """How a document writes schemas down."""

    # Where the document keeps its definitions.
    references: str
    # v3 wraps a reference that has text beside it in ``allOf``; v2 writes both side by side.
    wraps_references: bool
    int_or_string: Mapping[str, Any]
    quantity: Mapping[str, Any]


V3 = Notation(
    references="#/components/schemas/",
    wraps_references=True,
    int_or_string={"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    quantity={"oneOf": [{"type": "string"}, {"type": "number"}]},
)
V2 = Notation(
    references="#/definitions/",
    wraps_references=False,
    int_or_string={"type": "string", "format": "int-or-string"},
    quantity={"type": "string"},
)


def reference(name: str, notation: Notation) -> dict[str, Any]:
    """Return a reference to the definition *name*."""
    return {"$ref": notation.references + name}


def built_in_schema(name: str, raw: RawSchema, notation: Notation) -> dict[str, Any]:
    """Return the definition *name* in the document's notation."""
    if name == _INT_OR_STRING:
        return {"description": "A whole number or a text.", **notation.int_or_string}
    if name == _QUANTITY:
        return {"description": "An amount such as 1, 250m or 64Mi.", **notation.quantity}
    schema = _rewritten(raw, notation)
    for key in ("apiVersion", "kind"):
        # The data pins both to one value; Kubernetes leaves them open.
        schema.get("properties", {}).get(key, {}).pop("enum", None)
    return schema


def _rewritten(raw: RawSchema, notation: Notation) -> dict[str, Any]:
    schema = {key: _rewritten_value(key, value, notation) for key, value in raw.items()}
    target = schema.pop("$ref", None)
    if target is None:
        return schema
    pointer = reference(str(target).rsplit("/", 1)[-1], notation)
    if not schema or not notation.wraps_references:
        return {**pointer, **schema}
    return {"allOf": [pointer], **schema}


def _rewritten_value(key: str, value: Any, notation: Notation) -> Any:
    if key == "type" and isinstance(value, list):
        return next((each for each in value if each != "null"), "")
    if key == "properties":
        return {name: _rewritten(each, notation) for name, each in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return _rewritten(value, notation)
    return value


def referenced(raw: Any) -> Iterator[str]:
    """Yield the names of all definitions *raw* refers to, wherever it does."""
    pending = [raw]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            target = value.get("$ref")
            if isinstance(target, str):
                yield target.rsplit("/", 1)[-1]
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def closure(names: Iterable[str], definitions: Mapping[str, RawSchema]) -> list[str]:
    """Return *names* and everything they refer to, in order of name.

    A name that has no definition (a custom kind's own) is left out.
    """
    found: set[str] = set()
    pending = [name for name in names if name in definitions]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        pending.extend(each for each in referenced(definitions[name]) if each in definitions)
    return sorted(found)


def custom_definitions(resource: Resource, notation: Notation) -> dict[str, dict[str, Any]]:
    """Return the definitions of a custom kind and of its list."""
    raw = resource.schema.raw
    schema = _custom_schema(raw, notation) if notation is V3 else _reduced(raw)
    if notation is V3 or "properties" in schema or not _is_open(raw):
        schema["properties"] = {
            **(schema.get("properties") or {}),
            **_object_fields(notation),
        }
    elif _is_open(raw):
        # Known fields would be taken for all there are.
        schema = {}
    schema.setdefault("type", "object")
    info = resource.info
    schema["x-kubernetes-group-version-kind"] = [_group_version_kind(info.gvk)]
    list_kind = info.list_kind or f"{info.kind}List"
    return {
        definition_of(resource): schema,
        list_definition_of(resource): _list_schema(resource, list_kind, notation),
    }


def _type_fields() -> dict[str, Any]:
    said = common_descriptions()
    return {name: {"description": said[name], "type": "string"} for name in ("apiVersion", "kind")}


def _object_fields(notation: Notation) -> dict[str, Any]:
    metadata = _described(common_descriptions()["metadata"], _OBJECT_META, notation)
    return {**_type_fields(), "metadata": metadata}


def _is_open(raw: RawSchema) -> bool:
    return bool(raw.get("x-kubernetes-preserve-unknown-fields"))


def _described(text: str, name: str, notation: Notation) -> dict[str, Any]:
    pointer = reference(name, notation)
    if notation.wraps_references:
        return {"description": text, "allOf": [pointer]}
    return {"description": text, **pointer}


def _group_version_kind(kind: GroupVersionKind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _list_schema(resource: Resource, list_kind: str, notation: Notation) -> dict[str, Any]:
    info, said = resource.info, common_descriptions()
    return {
        "description": f"{list_kind} is a list of {info.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_type_fields(),
            "items": {
                "description": f"List of {info.resource}. {said['more']}",
                "type": "array",
                "items": reference(definition_of(resource), notation),
            },
            "metadata": _described(said["list metadata"], _LIST_META, notation),
        },
        "x-kubernetes-group-version-kind": [
            {"group": info.group, "version": info.version, "kind": list_kind}
        ],
    }


def _custom_schema(raw: RawSchema, notation: Notation) -> dict[str, Any]:
    """Return a structural schema for v3, with the fields embedded objects always have."""
    schema = {key: _custom_value(key, value, notation) for key, value in raw.items()}
    if raw.get("x-kubernetes-embedded-resource"):
        schema["properties"] = {
            **_object_fields(notation),
            **(schema.get("properties") or {}),
        }
    return schema


def _custom_value(key: str, value: Any, notation: Notation) -> Any:
    if key == "properties" and isinstance(value, Mapping):
        return {name: _custom_schema(each, notation) for name, each in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, Mapping):
        return _custom_schema(value, notation)
    return value


# What OpenAPI v2 cannot say, or kubectl's validator of old does not understand.
_BEYOND_V2 = frozenset(
    {"allOf", "anyOf", "default", "example", "not", "nullable", "oneOf", "externalDocs"}
)


def _reduced(raw: RawSchema) -> dict[str, Any]:
    """Return as much of a structural schema as OpenAPI v2 can tell without being wrong."""
    schema = {key: value for key, value in raw.items() if key not in _BEYOND_V2}
    if raw.get("nullable"):
        # null is not of the type; without a type anything goes.
        return _only_text(schema)
    if raw.get("x-kubernetes-int-or-string"):
        schema.pop("type", None)
    if _is_open(raw):
        # Unknown fields would be refused if known ones were listed.
        for key in ("items", "properties", "additionalProperties", "type"):
            schema.pop(key, None)
        return schema
    if "properties" in schema:
        schema["properties"] = {
            name: _reduced(each) for name, each in (schema["properties"] or {}).items()
        }
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            schema[key] = _reduced(schema[key])
    return schema


def _only_text(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in schema.items()
        if key in ("description", "title") or key.startswith("x-")
    }
