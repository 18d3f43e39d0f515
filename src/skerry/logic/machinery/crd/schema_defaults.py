"""Whether the defaults of a schema are themselves valid, pruned and agree with its rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.schema import MISSING, Schema
from skerry.logic.machinery.cel import check_rules
from skerry.logic.machinery.schema import prune, validate
from skerry.logic.machinery.schema.defaulting import copied

_META = ("apiVersion", "kind", "metadata")


def default_errors(schema: Schema, path: str, *, root: bool = True) -> Iterator[FieldError]:
    """Yield what is wrong with the defaults at and below *schema*.

    Maps are not followed: defaults are forbidden inside them.
    """
    if schema.default is not MISSING and schema.default is not None:
        yield from _one(schema, schema.default, f"{path}.default")
    if schema.items is not None:
        yield from default_errors(schema.items, f"{path}.items", root=False)
    for name, child in schema.properties():
        # Defaults in metadata at the root are refused elsewhere.
        if not (root and name in _META):
            yield from default_errors(child, f"{path}.properties[{name}]", root=False)


def _one(schema: Schema, default: Any, where: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if prune(schema, copied(default)):
        errors.append(FieldError.invalid(where, default, "must not have unknown fields"))
    found = validate(schema, copied(default), where)
    if found:
        return errors + found
    # As if it were always so, and as if it were new: rules may tell the two apart.
    return errors + (
        check_rules(schema, default, copied(default), where)
        or check_rules(schema, default, None, where)
    )
