"""What every patch format needs of JSON values: strict equality, and names as Go prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.kit.text import float_text


def equal(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are the same value.

    Unlike ``==``, ``True`` is not ``1``: a client that turns one into the other has changed
    something. Numbers compare by value, so ``1`` is ``1.0``.
    """
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(key in right and equal(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def json_kind(value: Any) -> str:
    """Return the JSON type of *value* in the words of Go's decoder."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "object" if isinstance(value, Mapping) else "array"


def go_type(value: Any) -> str:
    """Return the Go type that decoded JSON has in kube-apiserver, for its error texts."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "int64"
    if isinstance(value, float):
        return "float64"
    return "map[string]interface {}" if isinstance(value, Mapping) else "[]interface {}"


def go_text(value: Any) -> str:
    """Return *value* as Go's ``%v`` prints it, for error texts that quote what was sent."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{k}:{go_text(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    return float_text(value) if isinstance(value, float) else str(value)
