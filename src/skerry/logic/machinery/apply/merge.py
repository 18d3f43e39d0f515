"""An applied configuration merged into an object, and fields taken out of one.

Both keep what they do not touch: a result that *is* its input means that nothing changed, which is
how an apply that changes nothing is recognised without comparing.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply.fieldset import FieldSet, is_member
from skerry.logic.machinery.apply.typed import (
    element_of,
    essential_keys,
    grouped,
    is_associative,
    is_granular_map,
)
from skerry.logic.machinery.patch.values import equal

_SCALARS: Final = frozenset((str, int, bool, float))


def merged(live: Object, applied: Object, schema: Schema | None) -> Object:
    """Return *live* with every field of *applied* in it.

    List-map items keep the live order as far as the applied order allows. An applied ``null``
    stays, to distinguish it from a field that was not applied; ``without_nulls`` ends that.
    """
    result: Object = _merge_maps(live, applied, schema)
    return result


def _merge(live: Any, applied: Any, schema: Schema | None) -> Any:
    if isinstance(applied, dict) and isinstance(live, dict) and is_granular_map(schema):
        return _merge_maps(live, applied, schema)
    if isinstance(live, list) and schema is not None and is_associative(schema):
        if isinstance(applied, list):
            return _merge_lists(live, applied, schema) if applied else live
        if applied is None and live:
            return live
    if applied is None and isinstance(live, dict) and live and is_granular_map(schema):
        return live
    return live if equal(live, applied) else applied


def _merge_maps(live: Object, applied: Object, schema: Schema | None) -> Object:
    result = live
    for name, value in applied.items():
        if name not in live:
            merged_value = value
        else:
            before = live[name]
            if type(before) is type(value) and type(value) in _SCALARS:
                merged_value = before if before == value else value
            else:
                child = schema.child(name) if schema is not None else None
                merged_value = _merge(before, value, child)
            if merged_value is before:
                continue
        if result is live:
            result = dict(live)
        result[name] = merged_value
    return result


def _merge_lists(live: list[Any], applied: list[Any], schema: Schema) -> list[Any]:
    theirs = [element_of(item, schema) for item in live]
    ours = {element_of(item, schema): item for item in applied}
    groups = grouped(live, schema)
    result: list[Any] = []
    for element, place in _merge_order(theirs, list(ours)):
        if element in ours:
            group = groups.get(element, [])
            # Of several live items with one key none can be merged into; they make room.
            before = group[0] if len(group) == 1 else None
            item = ours[element]
            result.append(_merge(before, item, schema.items) if before is not None else item)
        else:
            result.append(live[place])
    same = len(result) == len(live) and all(map(_identical, result, live))
    return live if same else result


def _identical(left: Any, right: Any) -> bool:
    return left is right


def _merge_order(live: list[str], applied: list[str]) -> list[tuple[str, int]]:
    """Return the elements of both lists in merged order, each with its place if only live has it.

    Applied elements come in the order applied. One that only live has stays behind whatever it
    stood behind; where that leaves a choice it goes before the next applied element.
    """
    wanted, present = set(applied), set(live)
    shared = iter([element for element in applied if element in present])
    next_shared = next(shared, None)
    done: set[str] = set()
    order: list[tuple[str, int]] = []
    left = right = 0
    while left < len(live) or right < len(applied):
        if left < len(live):
            element = live[left]
            both = right < len(applied)
            if element not in wanted:
                order.append((element, left))
                left += 1
                continue
            matches = both and element == applied[right]
            if both and not matches and next_shared not in (None, element):
                # Shared, but its turn in the applied order has not come, or is over.
                left += 1
                continue
            if matches or element in done:
                left += 1
        if right < len(applied):
            element = applied[right]
            done.add(element)
            order.append((element, -1))
            right += 1
            if element == next_shared:
                next_shared = next(shared, None)
    return order


def without(value: Any, fields: FieldSet, schema: Schema | None, *, hollow: bool = False) -> Any:
    """Return *value* without the members of *fields*; None if that leaves nothing of it.

    A map or list that only lost all it held, not being a member itself, goes too, unless *hollow*
    asks for a ``null`` in its place. An item that stays in a list keeps the key
    fields that have no default.
    """
    if isinstance(value, dict):
        return _map_without(value, fields, schema, hollow) if is_granular_map(schema) else None
    if isinstance(value, list):
        if schema is None or not is_associative(schema):
            return None
        return _list_without(value, fields, schema, hollow)
    return value


def _map_without(
    value: Object, fields: FieldSet, schema: Schema | None, hollow: bool
) -> Object | None:
    result = value
    for name, member in value.items():
        node = fields.get("f:" + name)
        if node is None:
            continue
        rest = None
        if not is_member(node):
            child = schema.child(name) if schema is not None else None
            rest = without(member, node, child, hollow=hollow)
            if rest is member:
                continue
        if result is value:
            result = dict(value)
        if rest is None and (is_member(node) or not hollow):
            del result[name]
        else:
            result[name] = rest
    return result or None


def _list_without(
    value: list[Any], fields: FieldSet, schema: Schema, hollow: bool
) -> list[Any] | None:
    result: list[Any] = []
    changed = False
    for item in value:
        node = fields.get(element_of(item, schema))
        if node is None or not (is_member(node) or isinstance(item, dict)):
            result.append(item)
            continue
        changed = True
        if not is_member(node):
            kept = {name: item[name] for name in essential_keys(schema) if name in item}
            result.append({**kept, **(without(item, node, schema.items, hollow=hollow) or {})})
    if not changed:
        return value
    return result or None


def has_null(value: Any) -> bool:
    """Tell whether a ``null`` stands anywhere in *value*."""
    try:
        # Most have none, and their text tells sooner than a walk.
        return b"null" in orjson.dumps(value) and _has_null(value)
    except TypeError:
        # YAML can say numbers that JSON encoders refuse.
        return _has_null(value)


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    if isinstance(value, list):
        return any(map(_has_null, value))
    return value is None


def without_nulls(value: Any, schema: Schema | None) -> Any:
    """Return *value* without nulls where they mean absence.

    That is everywhere in built-in kinds. A custom field declared ``nullable``, or not declared at
    all, can hold a ``null`` and keeps it.
    """
    if isinstance(value, list):
        items = schema.items if schema is not None else None
        return [without_nulls(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    result: Object = {}
    for name, member in value.items():
        child = schema.child(name) if schema is not None else None
        if member is not None:
            result[name] = without_nulls(member, child)
        elif child is None or child.raw.get("nullable"):
            result[name] = None
    return result
