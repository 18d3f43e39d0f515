"""The strategic merge patch between two objects, as ``kubectl`` would write it.

``apply_strategic_patch(original, two_way_merge_patch(original, modified, schema), schema)`` is
*modified*, order of merged lists included, as long as *modified* holds no nulls and no merged list
holds two elements of one key.
"""

from __future__ import annotations

from typing import Any

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.patch.strategic import (
    DELETE_FROM_LIST,
    DIRECTIVE,
    RETAIN_KEYS,
    SET_ORDER,
    list_strategy,
)
from skerry.logic.machinery.patch.values import equal


def two_way_merge_patch(original: Object, modified: Object, schema: Schema | None) -> Object:
    """Return the patch that turns *original* into *modified*; empty when they are equal."""
    patch: Object = {key: None for key in original if key not in modified}
    for key, value in modified.items():
        if key not in original:
            patch[key] = value
        elif not equal(original[key], value):
            child = schema.child(key) if schema is not None else None
            _diff_member(patch, key, original[key], value, child)
    return patch


def _diff_member(patch: Object, key: str, old: Any, new: Any, schema: Schema | None) -> None:
    strategies = schema.patch_strategy if schema is not None else ()
    if isinstance(old, dict) and isinstance(new, dict) and "replace" not in strategies:
        patch[key] = two_way_merge_patch(old, new, schema)
        if "retainKeys" in strategies:
            patch[key][RETAIN_KEYS] = sorted(new)
    elif isinstance(old, list) and isinstance(new, list) and _merges(old, new, schema):
        _diff_lists(patch, key, old, new, schema)
    else:
        patch[key] = new


def _merges(old: list[Any], new: list[Any], schema: Schema | None) -> bool:
    """Tell whether the lists can be patched by their elements."""
    merges, merge_key = list_strategy(schema)
    elements = [*old, *new]
    if not merges or not elements:
        return False
    if merge_key:
        return all(isinstance(element, dict) and merge_key in element for element in elements)
    return not any(isinstance(element, dict | list) for element in elements)


def _diff_lists(
    patch: Object, key: str, old: list[Any], new: list[Any], schema: Schema | None
) -> None:
    _, merge_key = list_strategy(schema)
    if merge_key:
        items = schema.items if schema is not None else None
        changes = _element_changes(old, new, merge_key, items)
        patch[f"{SET_ORDER}/{key}"] = [{merge_key: element[merge_key]} for element in new]
    else:
        changes = [element for element in new if element not in old]
        gone = [element for element in old if element not in new]
        if gone:
            patch[f"{DELETE_FROM_LIST}/{key}"] = gone
        patch[f"{SET_ORDER}/{key}"] = new
    if changes:
        patch[key] = changes


def _element_changes(
    old: list[Any], new: list[Any], merge_key: str, items: Schema | None
) -> list[Any]:
    before = {element[merge_key]: element for element in old}
    after = {element[merge_key] for element in new}
    changes: list[Any] = []
    for element in new:
        name = element[merge_key]
        if name not in before:
            changes.append(element)
        elif not equal(before[name], element):
            changes.append({**two_way_merge_patch(before[name], element, items), merge_key: name})
    changes += [{DIRECTIVE: "delete", merge_key: name} for name in before if name not in after]
    return changes
