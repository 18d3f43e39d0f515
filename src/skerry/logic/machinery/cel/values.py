"""The values expressions compute with, their equality and their order.

JSON values stand for themselves. What JSON has not: ``UInt``, ``Optional``, times as
``datetime`` and ``timedelta``, quantities, addresses, URLs, and types as ``CelType``.
"""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta
from typing import Any, Final

from skerry.logic.machinery.cel import types
from skerry.logic.machinery.cel.typed import READ_COST, Scope, charge
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.quantity import Quantity


class EvaluationError(Exception):
    """An expression could not be computed; the text is the one cel-go gives."""


class UInt(int):
    """An unsigned 64-bit number; CEL keeps it apart from int."""


class Optional_:  # noqa: N801
    """A value that may be absent."""

    __slots__ = ("present", "value")

    def __init__(self, value: Any = None, *, present: bool = True) -> None:
        self.value = value
        self.present = present


NONE: Final = Optional_(present=False)


class Url:
    """A parsed absolute URL or path."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class NamedFormat:
    """One of Kubernetes' named formats, which can say what is wrong with a string."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


_KINDS: list[tuple[type, str]] = [
    (bool, "bool"),
    (UInt, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (dict, "map"),
    (type(None), "null"),
    (datetime, types.TIMESTAMP.name),
    (timedelta, types.DURATION.name),
    (Optional_, "optional"),
    (Quantity, "kubernetes.Quantity"),
    (ipaddress.IPv4Address, "net.IP"),
    (ipaddress.IPv6Address, "net.IP"),
    (ipaddress.IPv4Interface, "net.CIDR"),
    (ipaddress.IPv6Interface, "net.CIDR"),
    (Url, "kubernetes.URL"),
    (NamedFormat, "kubernetes.NamedFormat"),
    (CelType, "type"),
]
_EXACT = dict(_KINDS)


def name_type(python_type: type, name: str) -> None:
    """Let values of *python_type* be known to expressions as of the CEL type *name*."""
    _EXACT[python_type] = name


def kind_of(value: Any) -> str:
    """Return the name of the CEL type of *value*; objects are maps."""
    return _EXACT.get(type(value), "dyn")


_NUMBERS = frozenset(("int", "uint", "double"))
_SCALARS = frozenset((str, int, bool, float))


# Comparing one member of a list or map takes a third of a microsecond.
MEMBER_COST: Final = 3


def equal(scope: Scope, left: Any, right: Any) -> bool:
    """CEL's equality: numbers across types, values of different types are unequal.

    Charged as it goes: one value may stand in a list many times, and lists of it in others, so
    that a short expression means far more members than it makes.
    """
    if type(left) is type(right) and type(left) in _SCALARS:
        if type(left) is str:
            charge(scope, min(len(left), len(right)) * READ_COST)
        return bool(left == right)
    kind, other = kind_of(left), kind_of(right)
    if kind != other:
        return kind in _NUMBERS and other in _NUMBERS and bool(left == right)
    if kind in ("list", "map"):
        return _equal_members(scope, left, right)
    if kind == "optional":
        if not left.present or not right.present:
            return bool(left.present == right.present)
        return equal(scope, left.value, right.value)
    if kind == "bytes":
        charge(scope, min(len(left), len(right)) * READ_COST)
    if kind == "kubernetes.URL":
        return bool(left.text == right.text)
    if kind == "type":
        return bool(left.name == right.name)
    return bool(left == right)


def holds(scope: Scope, items: list[Any], wanted: Any) -> bool:
    """Tell whether *wanted* is among *items*."""
    charge(scope, len(items))
    return any(equal(scope, item, wanted) for item in items)


def _equal_members(scope: Scope, left: Any, right: Any) -> bool:
    if len(left) != len(right):
        return False
    charge(scope, MEMBER_COST * len(left))
    if isinstance(left, list):
        return all(equal(scope, one, other) for one, other in zip(left, right, strict=True))
    return all(key in right and equal(scope, left[key], right[key]) for key in left)


def zero(value: Any) -> bool:
    """Tell whether *value* is its type's zero: empty, nothing, false."""
    if isinstance(value, datetime):
        return False
    return not value
