"""Removal of fields a schema does not know, as structural schemas prescribe.

Where unknown fields are preserved, the fields that *are* declared are still pruned inside. An
embedded resource keeps its apiVersion and kind, and of its metadata what any object has. A schema
that says nothing about structure (``RawExtension``, ``JSON``) keeps everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from skerry.api.schema import Schema
from skerry.logic.machinery.schema.compilation import Fields, Roots, says_nothing
from skerry.logic.machinery.schema.paths import MapKey, Path, dotted

Prune = Callable[[Any, Path, list[Path]], None]
_UNKNOWN: Final = object()
_TYPE_META = frozenset(("apiVersion", "kind"))
_OBJECT_META = frozenset(
    (
        *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels"),
        *("annotations", "ownerReferences", "finalizers", "managedFields"),
    )
)


def prune(schema: Schema, obj: Any) -> list[str]:
    """Remove unknown fields from *obj* in place; return their paths, sorted."""
    rule = _ROOTS.of(schema)
    if rule is None:
        return []
    removed: list[Path] = []
    rule(obj, None, removed)
    return sorted(dotted(path) for path in removed) if removed else []


def unknown_fields(paths: list[str]) -> list[str]:
    """Return the sentences strict decoding says of unknown fields."""
    return [f'unknown field "{path}"' for path in paths]


_STEPS: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def declared_path(schema: Schema, obj: Any, path: str) -> str:
    """Return *path*, as ``prune`` gave it, in the words of server-side apply.

    Members of list-maps are named by their keys: ``.spec.containers[name="web"].imagine``.
    """
    text, node = "", obj
    at: Schema | None = schema
    for index, name in _STEPS.findall(path):
        if name:
            text += f".{name}"
            node = node.get(name) if type(node) is dict else None
            at = at.child(name) if at is not None else None
            continue
        item = node[int(index)] if type(node) is list and int(index) < len(node) else None
        keys = at.list_keys if at is not None and at.list_type == "map" else ()
        if keys and type(item) is dict:
            named = (f"{key}={orjson.dumps(item.get(key)).decode()}" for key in sorted(keys))
            text += f"[{','.join(named)}]"
        else:
            text += f"[{index}]"
        node, at = item, (at.items if at is not None else None)
    return text


def _compile(schema: Schema) -> Prune | None:
    """Return what prunes a value of *schema*; None where nothing can be unknown."""
    if schema.format == "quantity" or schema.int_or_string:
        return None
    by_object = _object_rule(schema)
    by_list = _list_rule(schema)
    if by_object is None:
        return by_list
    if by_list is None or schema.type == "object":
        return by_object

    def either(value: Any, path: Path, removed: list[Path]) -> None:
        if type(value) is dict:
            by_object(value, path, removed)
        else:
            by_list(value, path, removed)

    return either


def _list_rule(schema: Schema) -> Prune | None:
    items = schema.items
    if items is None:
        return None
    cell: list[Prune | object | None] = [_UNKNOWN]

    def prune_list(value: Any, path: Path, removed: list[Path]) -> None:
        if type(value) is not list:
            return
        rule = cell[0]
        if rule is _UNKNOWN:
            rule = cell[0] = _compile(items)
        if callable(rule):
            for index, item in enumerate(value):
                if type(item) is dict or type(item) is list:
                    rule(item, (path, index), removed)

    return prune_list


def _object_rule(schema: Schema) -> Prune | None:
    if schema.additional is not None and not schema.property_names:
        return _map_rule(schema)
    if schema.preserve_unknown or (says_nothing(schema.raw) and not schema.embedded):
        return _preserving_rule(schema) if schema.property_names else None
    if schema.type not in ("object", "") or (schema.name and not schema.property_names):
        # A named definition without fields is one of Go's raw types (FieldsV1, RawExtension).
        return None
    return _closed_rule(schema)


def _fields(schema: Schema) -> Fields[Prune | None]:
    fields = Fields(schema, _compile, _UNKNOWN)
    if schema.embedded:
        # Whatever the schema says of them.
        fields.update(dict.fromkeys(_TYPE_META))
        fields["metadata"] = _prune_metadata
    return fields


def _prune_metadata(value: Any, path: Path, removed: list[Path]) -> None:
    if type(value) is dict:
        for key in value.keys() - _OBJECT_META:
            del value[key]
            removed.append((path, key))


def _closed_rule(schema: Schema) -> Prune:
    fields = _fields(schema)
    additional = schema.additional

    def prune_object(value: Any, path: Path, removed: list[Path]) -> None:
        if type(value) is not dict:
            return
        # Most objects have none: a list is made for the first.
        unknown: list[str] | None = None
        for key, member in value.items():
            rule = fields[key]
            if rule is None:
                continue
            if rule is _UNKNOWN:
                if additional is None:
                    if unknown is None:
                        unknown = []
                    unknown.append(key)
                continue
            if type(member) is dict or type(member) is list:
                rule(member, (path, key), removed)
        for key in unknown or ():
            del value[key]
            removed.append((path, key))

    return prune_object


def _preserving_rule(schema: Schema) -> Prune:
    fields = _fields(schema)

    def prune_known(value: Any, path: Path, removed: list[Path]) -> None:
        if type(value) is not dict:
            return
        for key, member in value.items():
            rule = fields[key]
            if rule is not None and rule is not _UNKNOWN:
                rule(member, (path, key), removed)

    return prune_known


def _map_rule(schema: Schema) -> Prune | None:
    additional = schema.additional
    if additional is None or (says_nothing(additional.raw) and not additional.property_names):
        return None
    cell: list[Prune | object | None] = [_UNKNOWN]

    def prune_map(value: Any, path: Path, removed: list[Path]) -> None:
        if type(value) is not dict:
            return
        rule = cell[0]
        if rule is _UNKNOWN:
            rule = cell[0] = _compile(additional)
        if callable(rule):
            for key, member in value.items():
                if type(member) is dict or type(member) is list:
                    rule(member, (path, MapKey(key)), removed)

    return prune_map


_ROOTS: Final[Roots[Prune | None]] = Roots(_compile)
