"""Uniqueness in lists that are sets or maps (``x-kubernetes-list-type``).

The first repetition of a value or key is reported, at its index; further ones are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from skerry.api.errors import FieldError
from skerry.api.schema import Schema
from skerry.logic.machinery.schema.findings import Finding
from skerry.logic.machinery.schema.paths import Path, bracketed
from skerry.logic.machinery.schema.values import Check


def identity(value: Any) -> Any:
    """Return something hashable that is equal exactly for equal JSON values."""
    if type(value) is dict or type(value) is list:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return (type(value) is bool, value)


def repetitions(items: Iterable[Any]) -> set[int]:
    """Return the places of items that are equal to one before them."""
    seen: set[Any] = set()
    found: set[int] = set()
    for index, item in enumerate(items):
        known = identity(item)
        if known in seen:
            found.add(index)
        seen.add(known)
    return found


def key_of(item: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields that identify *item* in a list that is a map."""
    if type(item) is not dict:
        return {}
    return {key: item[key] for key in keys if key in item}


def by_key(items: Any, keys: tuple[str, ...]) -> dict[Any, Any]:
    """Return the items of a list that is a map by what identifies them, the first of equals."""
    found: dict[Any, Any] = {}
    for item in items if type(items) is list else ():
        found.setdefault(identity(key_of(item, keys)), item)
    return found


def uniqueness_rule(schema: Schema) -> Check:
    """Return the rule that no item, or no item's key, stands twice."""
    return _map_rule(schema.list_keys) if schema.list_type == "map" else _set_rule


def _set_rule(value: Any, path: Path, found: list[Finding]) -> None:
    if len(value) > 1:
        _report(value, [identity(item) for item in value], path, found)


def _surely_unique(value: list[Any], keys: tuple[str, ...]) -> bool:
    """Tell cheaply that no key repeats, in the usual case of one key that is always given."""
    if len(keys) != 1:
        return False
    (only,) = keys
    try:
        return len({item[only] for item in value}) == len(value)
    except (KeyError, TypeError):
        return False


def _map_rule(keys: tuple[str, ...]) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if _surely_unique(value, keys):
            return
        for index, item in enumerate(value):
            if item is not None and type(item) is not dict:
                where = bracketed((path, index))
                text = "must be an object for an array of list-type map"
                found.append(Finding(path, FieldError.invalid(where, item, text)))
                return
        if len(value) > 1:
            parts = [key_of(item, keys) for item in value]
            _report(parts, _identities(parts, keys), path, found)

    return check


def _identities(parts: list[dict[str, Any]], keys: tuple[str, ...]) -> list[Any]:
    if len(keys) == 1:
        only = keys[0]
        return [identity(part[only]) if only in part else None for part in parts]
    return [identity(part) for part in parts]


def _report(values: list[Any], identities: list[Any], path: Path, found: list[Finding]) -> None:
    if len(set(identities)) == len(identities):
        return
    times: dict[Any, int] = {}
    for index, one in enumerate(identities):
        times[one] = times.get(one, 0) + 1
        if times[one] == 2:
            where = bracketed((path, index))
            found.append(Finding(path, FieldError.duplicate(where, values[index])))
