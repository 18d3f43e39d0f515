"""Compiled forms of schemas, made once and only as far as they are used.

A compiled rule is a closure per schema node. The closures of an object's fields sit in a
``Fields`` table that compiles a field when it is first met, so that a Pod's thousand nodes (and
the recursive ``JSONSchemaProps``) cost only what requests touch, and afterwards a lookup is one
dict access.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from skerry.api.schema import Schema

Rule = TypeVar("Rule")

# Identities of schemas are only good while the schema lives, so the cache keeps it alive. 4,096
# roots are more kinds than one server sees; beyond, the oldest is compiled again.
_MOST_ROOTS = 4096


class Fields(dict[str, Any], Generic[Rule]):
    """Field name to compiled rule; compiles on first use, never remembers unknown names."""

    __slots__ = ("_compile", "_schema", "_unknown")

    def __init__(self, schema: Schema, compile_: Callable[[Schema], Rule], unknown: Any) -> None:
        super().__init__()
        self._schema = schema
        self._compile = compile_
        self._unknown = unknown

    def __missing__(self, name: str) -> Any:
        child = self._schema.field(name)
        if child is None:
            return self._unknown
        rule = self[name] = self._compile(child)
        return rule


class Roots(Generic[Rule]):
    """Compiled rules of whole schemas, by the schema's identity."""

    def __init__(self, compile_: Callable[[Schema], Rule]) -> None:
        self._compile = compile_
        self._kept: OrderedDict[int, tuple[Schema, Rule]] = OrderedDict()

    def of(self, schema: Schema) -> Rule:
        found = self._kept.get(id(schema))
        if found is not None:
            return found[1]
        rule = self._compile(schema)
        self._kept[id(schema)] = (schema, rule)
        if len(self._kept) > _MOST_ROOTS:
            self._kept.popitem(last=False)
        return rule


def says_nothing(raw: Mapping[str, Any]) -> bool:
    """Tell whether *raw* describes any JSON value at all (``JSON``, ``RawExtension``)."""
    return not any(key in raw for key in ("type", "properties", "items", "additionalProperties"))
