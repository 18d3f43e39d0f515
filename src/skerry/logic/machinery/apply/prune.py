"""Removal on un-apply: what a manager applied last time, not this time, and nobody else owns.

The rule is simple; ownership of what contains and what is contained makes it subtle. The set of
items to remove is found in three steps, each as a removal from the same merged object:

1. take out all that the manager applied last time;
2. put back what anybody owns now, this manager's new configuration included, and with it whatever
   was only taken along;
3. of what is still out, take out for good only what the manager really owned last time.

Until the last step something emptied stays as a ``null``, to distinguish it from what was taken
out itself. Declared fields are rarely members of a set themselves, only what is below them is; for
removal they count as members whenever anything below them does, or empty shells would stay behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply.fieldset import (
    FieldSet,
    difference,
    in_order,
    intersection,
    union,
    union_all,
)
from skerry.logic.machinery.apply.managed import Entry
from skerry.logic.machinery.apply.merge import without
from skerry.logic.machinery.apply.typed import fields_of

ObjectAt = Callable[[Object, str], Object | None]
SchemaOf = Callable[[str], Schema | None]


class Pruned(NamedTuple):
    """An object after removal, as it will be, and as ownership is to see it.

    What only lost all it held is gone from the *object*; *seen* has a ``null`` there, because who
    owned it for its own sake, empty, has not lost it.
    """

    object: Object
    seen: Object


def pruned(
    merged: Object, last: Entry, owners: Iterable[Entry], at: ObjectAt, schema_of: SchemaOf
) -> Pruned:
    """Return *merged* without what only *last* owned; *merged* itself if there is nothing such."""
    version = last.api_version
    full = at(merged, version)
    if full is None:
        return Pruned(merged, merged)
    schema = schema_of(version)
    last_fields = with_declared(last.fields, schema)
    rest: Object = without(full, last_fields, schema, hollow=True) or {}
    owned_at: dict[str, list[FieldSet]] = {version: []}
    for entry in owners:
        owned_at.setdefault(entry.api_version, []).append(entry.fields)
    for owned_version, owned in owned_at.items():
        rest = _with_owned(full, rest, union_all(owned), owned_version, at, schema_of)
    kept = _declared_fields(rest, schema)
    gone = intersection(difference(_declared_fields(full, schema), kept), last_fields)
    result, seen = (without(full, gone, schema, hollow=hollow) or {} for hollow in (False, True))
    return Pruned(_back(merged, full, result, at), _back(merged, full, seen, at))


def _back(merged: Object, full: Object, result: Object, at: ObjectAt) -> Object:
    """Return *result*, made at the version applied last, at the version *merged* came in."""
    if result is full:
        return merged
    if full is merged:
        return result
    converted = at(result, str(merged.get("apiVersion", "")))
    return merged if converted is None else converted


def _with_owned(
    full: Object, rest: Object, owned: FieldSet, version: str, at: ObjectAt, schema_of: SchemaOf
) -> Object:
    """Return *rest* with everything of *full* that is owned at *version* put back."""
    full_at, rest_at = at(full, version), at(rest, version)
    if full_at is None or rest_at is None:
        return rest
    schema = schema_of(version)
    kept = union(_declared_fields(rest_at, schema), with_declared(owned, schema))
    gone = difference(_declared_fields(full_at, schema), kept)
    result: Object = without(full_at, gone, schema, hollow=True) or {}
    back = at(result, str(full.get("apiVersion", "")))
    return rest if back is None else back


def _declared_fields(obj: Object, schema: Schema | None) -> FieldSet:
    return with_declared(fields_of(obj, schema), schema)


def with_declared(fields: FieldSet, schema: Schema | None) -> FieldSet:
    """Return *fields* with every declared field that leads to a member being one itself."""
    result: FieldSet = {}
    for key, node in fields.items():
        if key == "." or not node:
            result[key] = node
            continue
        declared, child = _child(key, schema)
        below = with_declared(node, child)
        result[key] = in_order({".": {}, **below}) if declared and "." not in below else below
    return result


def _child(key: str, schema: Schema | None) -> tuple[bool, Schema | None]:
    """Tell whether a path element is a declared field, and the schema of what it leads to."""
    if schema is None:
        return False, None
    if key[0] == "f":
        declared = schema.field(key[2:])
        return declared is not None, declared or schema.additional
    return False, schema.items
