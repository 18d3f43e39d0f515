"""Nulls a client sends, as Kubernetes' decoder reads them.

A null field is an absent one. A null element of a list, or value of a map, is the empty value of
its type: that is what a Go decoder makes of it, and what validation then complains about. Data
without a schema keeps its nulls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from skerry.api.schema import Schema
from skerry.logic.resource import Object

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

    Most objects hold none: searching the encoded text is cheaper than walking the object.
    """

    def run(obj: Object) -> None:
        if b"null" in orjson.dumps(obj):
            _clean_object(obj, schema)
        default(obj)

    return run


def _clean(value: Any, schema: Schema) -> None:
    if isinstance(value, dict):
        _clean_object(value, schema)
    elif isinstance(value, list):
        _clean_list(value, schema.items)


def _clean_object(obj: Object, schema: Schema) -> None:
    for name in [name for name, value in obj.items() if value is None]:
        if schema.field(name) is not None:
            del obj[name]
        elif schema.additional is not None and schema.additional.type:
            obj[name] = _ZERO[schema.additional.type]()
    for name, value in obj.items():
        found = schema.child(name)
        if found is not None and isinstance(value, dict | list):
            _clean(value, found)


def _clean_list(items: list[Any], schema: Schema | None) -> None:
    if schema is None or not schema.type:
        return
    for index, item in enumerate(items):
        if item is None:
            items[index] = _ZERO[schema.type]()
        else:
            _clean(item, schema)
