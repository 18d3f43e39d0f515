"""Forgiveness on update for what was wrong before and was left alone.

A node of the new object is correlated with one of the old: fields and map keys by name, items of
a list-map by their keys. Items of other lists have no counterpart, but if the whole list is
unchanged so are they. A finding is forgiven when its node, or a node around it, equals its
counterpart.
"""

from __future__ import annotations

from typing import Any, Final

from skerry.api.schema import Schema
from skerry.logic.schema.findings import Finding
from skerry.logic.schema.lists import key_of
from skerry.logic.schema.paths import Path, segments
from skerry.logic.schema.values import same

_NONE: Final = object()


def unforgiven(
    schema: Schema, found: list[Finding], new: Any, old: Any, prefix: str = ""
) -> list[Finding]:
    """Return the findings an update must answer for, in their order."""
    known: dict[Path, bool] = {}
    kept = []
    for finding in found:
        forgiven = known.get(finding.node)
        if forgiven is None:
            forgiven = known[finding.node] = unchanged(
                schema, segments(finding.node)[bool(prefix) :], new, old
            )
        if not forgiven:
            kept.append(finding)
    return kept


def unchanged(schema: Schema | None, way: list[str | int], new: Any, old: Any) -> bool:
    """Tell whether the node at *way*, or one around it, is as it was in *old*."""
    for depth in range(len(way) + 1):
        if same(new, old):
            return True
        if depth == len(way):
            return False
        new, old, schema = _next(schema, way[depth], new, old)
        if old is _NONE:
            return False
    return False


def _next(
    schema: Schema | None, segment: str | int, new: Any, old: Any
) -> tuple[Any, Any, Schema | None]:
    """Step into one member of both sides; ``_NONE`` for the old side where nothing answers."""
    if isinstance(segment, int):
        items = schema.items if schema is not None else None
        return new[segment], _counterpart(schema, new[segment], old), items
    child = schema.child(segment) if schema is not None else None
    atomic = schema is not None and schema.map_type == "atomic"
    if atomic or not isinstance(old, dict) or segment not in old:
        return new[segment], _NONE, child
    return new[segment], old[segment], child


def _counterpart(schema: Schema | None, item: Any, old: Any) -> Any:
    """Return the old item with the same keys as *item*, in lists that are maps."""
    if schema is None or schema.list_type != "map" or not isinstance(old, list):
        return _NONE
    wanted = key_of(item, schema.list_keys)
    return next((one for one in old if key_of(one, schema.list_keys) == wanted), _NONE)
