"""What a schema rule found wrong, in the words of apiextensions.

A ``Finding`` keeps, beside the error, the node whose rule failed. Ratcheting needs it: an update
is not refused for what was wrong before and was left alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from skerry.api.errors import FieldError, shown
from skerry.logic.machinery.schema.paths import Path, dotted


class Finding(NamedTuple):
    """One error and the node that must change before it may be held against an update."""

    node: Path
    error: FieldError


def type_name(value: Any) -> str:
    """Return the JSON type of *value* as error messages name it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "object" if isinstance(value, dict) else "array"


def wrong_type(path: Path, wanted: str, value: Any) -> Finding:
    """Show the type that was found where other errors show the value, as Kubernetes does."""
    found = type_name(value)
    where = dotted(path)
    text = f"{where} in body must be of type {wanted}: {shown(found)}"
    return Finding(path, FieldError.type_invalid(where, found, text))


def wrong_format(path: Path, wanted: str, value: str) -> Finding:
    """Say that a string is not of its format; Kubernetes calls that a type."""
    where = dotted(path)
    text = f"{where} in body must be of type {wanted}: {shown(value)}"
    return Finding(path, FieldError.type_invalid(where, value, text))


def invalid(path: Path, value: Any, rule: str) -> Finding:
    """Say that the value at *path* breaks *rule* (``should match '^a$'`` and the like)."""
    where = dotted(path)
    return Finding(path, FieldError.invalid(where, value, f"{where} in body {rule}"))


def required(path: Path, field: str) -> Finding:
    """Say that a field is missing; the blame is on the object that should have it."""
    return Finding(path, FieldError.required(dotted((path, field))))


def not_supported(path: Path, value: Any, allowed: list[Any]) -> Finding:
    """Say which values would do, in the order the schema lists them."""
    wanted = ", ".join(f'"{item if isinstance(item, str) else shown(item)}"' for item in allowed)
    text = f"Unsupported value: {shown(value)}: supported values: {wanted}"
    return Finding(path, FieldError("FieldValueNotSupported", dotted(path), text))


def forbidden_property(path: Path, key: str) -> Finding:
    """Say that ``additionalProperties: false`` forbids a key."""
    where = dotted(path)
    text = f"{where}.{key} in body is a forbidden property"
    return Finding(path, FieldError.invalid(where, key, text))


def too_long(path: Path, maximum: int) -> Finding:
    """Say that a string is too long; the words speak of bytes, the count is of characters."""
    return Finding(path, FieldError.too_long(dotted(path), maximum))


def too_many(path: Path, actual: int, maximum: int) -> Finding:
    """Say that a list or map has too many members."""
    return Finding(path, FieldError.too_many(dotted(path), actual, maximum))


def unmet(path: Path, rule: str) -> Finding:
    """Say that a combination (anyOf, oneOf, allOf, not) failed.

    These carry no field of their own in Kubernetes, hence the ``<nil>`` users know.
    """
    text = f"{shown(dotted(path))} {rule}"
    return Finding(path, FieldError.invalid("<nil>", "", text))
