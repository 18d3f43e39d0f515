"""Whether two parts of objects mean the same, and where they differ.

Kubernetes compares decoded structures: null, empty and absent are one, and quantities are equal
as numbers. Where it refuses a change it shows a difference; ours names the fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skerry.api.errors import shown
from skerry.logic.machinery.builtin.amounts import equal_amounts

_MAX_DIFFERENCES = 10


def same(new: Any, old: Any) -> bool:
    """Tell whether two values mean the same."""
    return new == old or next(_differences(old, new, ""), None) is None


def difference_text(old: Any, new: Any, path: str) -> str:
    """Return the differing fields, one line each, ``field: old -> new``."""
    lines: list[str] = []
    for field, before, after in _differences(old, new, path):
        if len(lines) == _MAX_DIFFERENCES:
            lines.append("...")
            break
        lines.append(f"{field}: {shown(before)} -> {shown(after)}")
    return "\n".join(lines)


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if old == new or (_empty(old) and _empty(new)):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            where = f"{path}.{name}" if path else name
            yield from _differences(old.get(name), new.get(name), where)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, f"{path}[{index}]")
    elif not _equal_amounts_at(path, new, old):
        yield path, old, new


def _empty(value: Any) -> bool:
    return value is None or value in ({}, [], "")


_AMOUNTS = ("limits.", "requests.", "capacity.", "hard.", "overhead.", "sizeLimit", "divisor")


def _equal_amounts_at(path: str, new: Any, old: Any) -> bool:
    # Only where a quantity stands: an image tag "1.0" and one "1" are different.
    return any(word in path for word in _AMOUNTS) and equal_amounts(new, old)
