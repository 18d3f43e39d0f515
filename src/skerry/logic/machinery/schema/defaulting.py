"""Defaults of structural schemas, and what happens to null.

A null where null is not allowed counts as absent: the default takes its place, and without a
default the field goes away (an item of a list stays, and validation refuses it). Defaults are
copied, so no two objects share a list. Nothing is compiled for parts of a schema that hold
neither defaults nor anything that could be null, which makes this nearly free for most kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from skerry.api.schema import ANY, MISSING, Schema
from skerry.logic.machinery.schema.compilation import Fields, Roots

Fill = Callable[[Any], None]


def apply_defaults(schema: Schema, obj: Any) -> None:
    """Fill in what *obj* leaves out, in place."""
    rule = _ROOTS.of(schema)
    if rule is not None:
        rule(obj)


def copied(value: Any) -> Any:
    """Return a copy of a JSON value that shares nothing with it."""
    if type(value) is dict:
        return {key: copied(member) for key, member in value.items()}
    if type(value) is list:
        return [copied(item) for item in value]
    return value


def _default_of(schema: Schema) -> Any:
    # A default of null says nothing, as in Kubernetes.
    return MISSING if schema.default is None else schema.default


def _compile(schema: Schema) -> Fill | None:
    if schema.items is not None and schema.type in ("array", ""):
        return _list_rule(schema.items)
    if schema.property_names:
        return _object_rule(schema)
    if schema.additional is not None:
        return _map_rule(schema.additional)
    return None


def _object_rule(schema: Schema) -> Fill:
    additional = _Member(schema.additional) if schema.additional is not None else None
    members = Fields(schema, _Member, additional)
    defaults = {
        name: _default_of(child)
        for name, child in schema.properties()
        if _default_of(child) is not MISSING
    }

    def fill_object(value: Any) -> None:
        if type(value) is not dict:
            return
        for name, default in defaults.items():
            if name not in value:
                value[name] = copied(default)
        nulls: list[str] | None = None
        for key, member in value.items():
            rule = members[key]
            if rule is None:
                continue
            if member is None:
                nulls = _noted(nulls, key)
            elif rule.fill is not None and (type(member) is dict or type(member) is list):
                rule.fill(member)
        for key in nulls or ():
            _replace_null(value, key, members[key])

    return fill_object


class _Member:
    """How one member of an object or map is filled in."""

    __slots__ = ("default", "fill", "nullable")

    def __init__(self, schema: Schema) -> None:
        self.default = _default_of(schema)
        # ``additionalProperties: true`` has no opinion of its values, null among them.
        self.nullable = schema.nullable or schema is ANY
        self.fill = _compile(schema)


def _noted(keys: list[str] | None, key: str) -> list[str]:
    """Return *keys* with one more; most objects have none, and need no list."""
    if keys is None:
        return [key]
    keys.append(key)
    return keys


def _replace_null(value: dict[str, Any], key: str, rule: _Member) -> None:
    """Put the default where a null may not stand, or remove it."""
    if rule.nullable:
        return
    if rule.default is MISSING:
        del value[key]
        return
    value[key] = copied(rule.default)
    if rule.fill is not None:
        rule.fill(value[key])


def _map_rule(additional: Schema) -> Fill:
    rule = _Member(additional)

    def fill_map(value: Any) -> None:
        if type(value) is not dict:
            return
        nulls: list[str] | None = None
        for key, member in value.items():
            if member is None:
                nulls = _noted(nulls, key)
            elif rule.fill is not None:
                rule.fill(member)
        for key in nulls or ():
            _replace_null(value, key, rule)

    return fill_map


def _list_rule(items: Schema) -> Fill | None:
    rule = _Member(items)
    if rule.fill is None and (rule.default is MISSING or rule.nullable):
        return None

    def fill_list(value: Any) -> None:
        if type(value) is not list:
            return
        for index, item in enumerate(value):
            if item is None and not rule.nullable and rule.default is not MISSING:
                value[index] = item = copied(rule.default)  # noqa: PLW2901
            if rule.fill is not None:
                rule.fill(item)

    return fill_list


_ROOTS: Final[Roots[Fill | None]] = Roots(_compile)
