"""Forgiveness on update for what was wrong before and was left alone.

A node of the new object is correlated with one of the old: fields and map keys by name, items of
a list-map by their keys. Items of other lists have no counterpart, but if the whole list is
unchanged so are they. A finding is forgiven when its node, or a node around it, equals its
counterpart.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from skerry.api.schema import Schema
from skerry.logic.machinery.schema.findings import Finding
from skerry.logic.machinery.schema.lists import by_key, identity, key_of
from skerry.logic.machinery.schema.paths import Path
from skerry.logic.machinery.schema.values import same

_NONE: Final = object()


def unforgiven(
    schema: Schema, found: list[Finding], new: Any, old: Any, prefix: str = ""
) -> list[Finding]:
    """Return the findings an update must answer for, in their order."""
    correlation = Correlation(schema, new, old, (None, prefix) if prefix else None)
    return [finding for finding in found if not correlation.unchanged(finding.node)]


class _Node(NamedTuple):
    """A node of the new object with its counterpart, ``_NONE`` where it has none."""

    new: Any
    old: Any
    schema: Schema | None
    unchanged: bool


class Correlation:
    """The nodes of a new object beside those of the old one.

    Each node is compared once, however many findings lie below it, so that the work grows with
    the object and its depth and not with the number of findings.
    """

    def __init__(self, schema: Schema, new: Any, old: Any, root: Path = None) -> None:
        self._nodes: dict[Path, _Node] = {root: _Node(new, old, schema, same(new, old))}
        # The items of old lists that are maps, by the list's identity; the old object lives on.
        self._items: dict[int, dict[Any, Any]] = {}

    def unchanged(self, path: Path) -> bool:
        """Tell whether the node at *path*, or one around it, is as it was."""
        way: list[tuple[Path, str | int]] = []
        while path not in self._nodes and path is not None:
            way.append((path, path[1]))
            path = path[0]
        node = self._nodes[path]
        for below, segment in reversed(way):
            node = self._nodes[below] = self._below(node, segment)
        return node.unchanged

    def _below(self, node: _Node, segment: str | int) -> _Node:
        """Step into one member of both sides."""
        if node.unchanged:
            return node
        new, schema = node.new[segment], node.schema
        if isinstance(segment, int):
            below = schema.items if schema is not None else None
            old = self._counterpart(schema, new, node.old)
        else:
            below = schema.child(segment) if schema is not None else None
            atomic = schema is not None and schema.map_type == "atomic"
            known = not atomic and isinstance(node.old, dict)
            old = node.old.get(segment, _NONE) if known else _NONE
        return _Node(new, old, below, old is not _NONE and same(new, old))

    def _counterpart(self, schema: Schema | None, item: Any, old: Any) -> Any:
        """Return the old item with the same keys as *item*, in lists that are maps."""
        if schema is None or schema.list_type != "map" or not isinstance(old, list):
            return _NONE
        items = self._items.get(id(old))
        if items is None:
            items = self._items[id(old)] = by_key(old, schema.list_keys)
        return items.get(identity(key_of(item, schema.list_keys)), _NONE)
