"""Nulls a client sends, as Kubernetes' decoder reads them.

A null field is an absent one. A null element of a list, or value of a map, is the empty value of
its type: that is what a Go decoder makes of it, and what validation then complains about. Data
without a schema keeps its nulls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from skerry.api.objects import Object
from skerry.api.schema import Schema

_ZERO: dict[str, Callable[[], Any]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": int,
    "boolean": bool,
}


def without_nulls(default: Callable[[Object], None], schema: Schema) -> Callable[[Object], None]:
    """Return *default*, run after nulls have been read as their absence.

    Most objects, and most parts of those that do, hold none: searching the encoded text is cheaper
    than walking the object.
    """

    def run(obj: Object) -> None:
        read_nulls(obj, schema)
        default(obj)

    return run


def read_nulls(obj: Object, schema: Schema) -> None:
    """Read the nulls in *obj* as Kubernetes' decoder does, in place."""
    if b"null" in orjson.dumps(obj):
        _clean_object(obj, schema)


def _keeps_nulls(schema: Schema | None) -> bool:
    """Tell whether nothing is known of values here, so that null may be one of them."""
    return schema is None or not (schema.type or schema.int_or_string or schema.format)


def _empty(schema: Schema) -> Any:
    if schema.format == "quantity":
        return "0"
    return 0 if schema.int_or_string else _ZERO[schema.type]()


def _clean(value: Any, schema: Schema) -> None:
    if b"null" not in orjson.dumps(value):
        return
    if isinstance(value, dict):
        _clean_object(value, schema)
    elif isinstance(value, list):
        _clean_list(value, schema.items)


def _clean_object(obj: Object, schema: Schema) -> None:
    for name in [name for name, value in obj.items() if value is None]:
        if schema.field(name) is not None:
            del obj[name]
        elif schema.additional is not None and not _keeps_nulls(schema.additional):
            obj[name] = _empty(schema.additional)
    for name, value in obj.items():
        found = schema.child(name)
        if found is not None and isinstance(value, dict | list):
            _clean(value, found)


def _clean_list(items: list[Any], schema: Schema | None) -> None:
    if schema is None or _keeps_nulls(schema):
        return
    for index, item in enumerate(items):
        if item is None:
            items[index] = _empty(schema)
        else:
            _clean(item, schema)
