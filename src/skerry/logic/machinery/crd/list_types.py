"""The rules of ``x-kubernetes-list-type`` and ``x-kubernetes-map-type``."""

from __future__ import annotations

from collections.abc import Iterator

from skerry.api.errors import FieldError
from skerry.api.objects import Raw
from skerry.logic.machinery.crd.definition import mapping, sequence, text
from skerry.logic.machinery.schema.lists import repetitions


def list_type_errors(raw: Raw, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the list and map types of one node."""
    yield from _map_type(raw, path)
    list_type = raw.get("x-kubernetes-list-type")
    yield from _needs_type(raw, path, "x-kubernetes-list-type", "array")
    where = f"{path}.x-kubernetes-list-type"
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield FieldError.not_supported(where, list_type, ("atomic", "set", "map"))
    if raw.get("x-kubernetes-list-map-keys") and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        if list_type is None:
            yield FieldError.required(where, detail)
        else:
            yield FieldError.invalid(where, list_type, detail)
    if list_type == "set" and raw.get("type") == "array":
        yield from _set_items(mapping(raw.get("items")), path)
    if list_type == "map":
        yield from _list_map(raw, path)
    if list_type in ("set", "map") and mapping(raw.get("items")).get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield FieldError.forbidden(f"{path}.items.nullable", detail)


def _needs_type(raw: Raw, path: str, extension: str, wanted: str) -> Iterator[FieldError]:
    kind = text(raw.get("type"))
    if raw.get(extension) is None or kind == wanted:
        return
    detail = f"must be {wanted} if {extension} is specified"
    where = f"{path}.type"
    yield FieldError.invalid(where, kind, detail) if kind else FieldError.required(where, detail)


def _map_type(raw: Raw, path: str) -> Iterator[FieldError]:
    yield from _needs_type(raw, path, "x-kubernetes-map-type", "object")
    map_type = raw.get("x-kubernetes-map-type")
    if map_type is not None and map_type not in ("atomic", "granular"):
        where = f"{path}.x-kubernetes-map-type"
        yield FieldError.not_supported(where, map_type, ("atomic", "granular"))


def _set_items(items: Raw, path: str) -> Iterator[FieldError]:
    """Members of a set are compared whole, so they must be atomic."""
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array":
        inner = items.get("x-kubernetes-list-type")
        if inner not in (None, "atomic"):
            yield FieldError.invalid(f"{path}.items.x-kubernetes-list-type", inner, detail)
    elif items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        inner = items.get("x-kubernetes-map-type") or "null"
        yield FieldError.invalid(f"{path}.items.x-kubernetes-map-type", inner, detail)


def _list_map(raw: Raw, path: str) -> Iterator[FieldError]:
    keys = [text(key) for key in sequence(raw.get("x-kubernetes-list-map-keys"))]
    keys_at = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield FieldError.required(keys_at, detail)
    items = raw.get("items")
    if items is None:
        detail = "must have a schema if x-kubernetes-list-type is map"
        yield FieldError.required(f"{path}.items", detail)
    elif not isinstance(items, dict):
        detail = "must only have a single schema if x-kubernetes-list-type is map"
        yield FieldError.invalid(f"{path}.items", items, detail)
    elif items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield FieldError.invalid(f"{path}.items.type", text(items.get("type")), detail)
    else:
        yield from _keys(items, keys, path, keys_at)


def _keys(items: Raw, keys: list[str], path: str, keys_at: str) -> Iterator[FieldError]:
    properties = mapping(items.get("properties"))
    repeated = repetitions(keys)
    for index, key in enumerate(keys):
        if key not in properties:
            detail = "entries must all be names of item properties"
            yield FieldError.invalid(keys_at, keys, detail)
        elif mapping(properties[key]).get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            where = f"{path}.items.properties[{key}].type"
            yield FieldError.invalid(where, text(items.get("type")), detail)
        if index in repeated:
            yield FieldError.invalid(keys_at, keys, "must not contain duplicate entries")
    for key in keys:
        if key in properties:
            yield from _key_present(items, key, mapping(properties[key]), path)


def _key_present(items: Raw, key: str, child: Raw, path: str) -> Iterator[FieldError]:
    """A key must always be there: required or defaulted, and never null."""
    where = f"{path}.items.properties[{key}]"
    subject = "this property is in x-kubernetes-list-map-keys, so it"
    if key not in sequence(items.get("required")) and child.get("default") is None:
        yield FieldError.required(
            f"{where}.default", f"{subject} must have a default or be a required property"
        )
    if child.get("nullable"):
        yield FieldError.forbidden(f"{where}.nullable", f"{subject} cannot be nullable")
