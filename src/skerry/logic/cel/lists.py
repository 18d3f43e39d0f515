"""Lists that are sets or maps by their schema compare and add without regard to order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.logic.cel.types import CelType
from skerry.logic.cel.values import equal


def special_list_run(name: str, kinds: list[CelType]) -> Callable[[Any, Any], Any] | None:
    """Return how an operator treats lists of a declared list type; None for all others."""
    if name not in ("_==_", "_!=_", "_+_") or len(kinds) != 2:
        return None
    kind = next((one for one in kinds if one.name == "list" and one.list_type != "atomic"), None)
    if kind is None:
        return None
    if name == "_+_":
        return _union if kind.list_type == "set" else _merged(kind.list_keys)
    if name == "_==_":
        return same_members
    return lambda left, right: not same_members(left, right)


def same_members(left: Any, right: Any) -> bool:
    """Tell whether two lists hold the same members in any order."""
    if not isinstance(left, list) or not isinstance(right, list):
        return equal(left, right)
    return len(left) == len(right) and all(
        any(equal(one, other) for other in right) for one in left
    )


def _union(left: list[Any], right: list[Any]) -> list[Any]:
    return left + [one for one in right if not any(equal(one, other) for other in left)]


def _merged(keys: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    """Return the sum of two list-maps: the right one's members replace the left one's."""

    def key(item: Any) -> list[Any]:
        return [item.get(name) for name in keys]

    def merge(left: list[Any], right: list[Any]) -> list[Any]:
        replaced = {
            at: one for at, item in enumerate(left) for one in right if key(one) == key(item)
        }
        kept = [replaced.get(at, item) for at, item in enumerate(left)]
        return kept + [one for one in right if all(key(one) != key(item) for item in left)]

    return merge
