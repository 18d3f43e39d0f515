"""Lists that are sets or maps by their schema compare and add without regard to order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.logic.machinery.cel.functions import copying
from skerry.logic.machinery.cel.typed import Scope, charge
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.cel.values import equal, holds
from skerry.logic.machinery.schema.lists import identity

Special = Callable[[Scope, Any, Any], Any]


def special_list_run(name: str, kinds: list[CelType]) -> Special | None:
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
    return lambda scope, left, right: not same_members(scope, left, right)


def same_members(scope: Scope, left: Any, right: Any) -> bool:
    """Tell whether two lists hold the same members in any order."""
    if not isinstance(left, list) or not isinstance(right, list):
        return equal(scope, left, right)
    if len(left) != len(right):
        return False
    charge(scope, 2 * len(left))
    try:
        return {identity(one) for one in left} <= {identity(one) for one in right}
    except TypeError:
        # Members that JSON has no text for are compared one by one.
        return all(holds(scope, right, one) for one in left)


def _union(scope: Scope, left: list[Any], right: list[Any]) -> list[Any]:
    charge(scope, copying(left, right))
    return left + [one for one in right if not holds(scope, left, one)]


def _merged(keys: tuple[str, ...]) -> Special:
    """Return the sum of two list-maps: the right one's members replace the left one's."""

    def key(item: Any) -> Any:
        return tuple(identity(item.get(name)) for name in keys)

    def merge(scope: Scope, left: list[Any], right: list[Any]) -> list[Any]:
        charge(scope, (len(left) + len(right)) * 3 * (1 + len(keys)))
        replacing = {key(one): one for one in right}
        kept = [replacing.get(key(item), item) for item in left]
        known = {key(item) for item in left}
        return kept + [one for one in right if key(one) not in known]

    return merge
